"""The `memory` command as a person runs it: a process of its own with an empty home.

To start Python and to import Dagster and torch takes longer than what most commands do. So one process imports the
libraries, and each command is forked from it: with its own environment, streams, caches and exit code.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SECONDS = 500.0
_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(["memory_pipeline_tests.cli.preloaded"])


class Command:
    """`memory ARGS` in a process of its own, already started. Nothing of this machine's home is seen."""

    def __init__(self, home: Path, *args: str, env: Mapping[str, str] | None = None) -> None:
        home.mkdir(parents=True, exist_ok=True)
        variables = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC", **(env or {})}
        self._args, self._streams = args, TemporaryDirectory()
        out, err = self._paths()
        self.process = _FORKED.Process(target=_command, args=(args, variables, Path.cwd(), out, err))
        self.process.start()

    def send_signal(self, number: signal.Signals) -> None:
        assert self.process.pid
        os.kill(self.process.pid, number)

    def result(self, seconds: float = SECONDS) -> subprocess.CompletedProcess[str]:
        """Wait for its end. A signal that ended it is a negative exit code."""
        self.process.join(seconds)
        if hangs := self.process.is_alive():
            self.process.kill()
            self.process.join()
        out, err = (path.read_text("utf-8") for path in self._paths())
        self._streams.cleanup()
        assert not hangs, f"memory {' '.join(self._args)} did not end in {seconds:.0f} s:\n{out}{err}"
        assert self.process.exitcode is not None
        return subprocess.CompletedProcess(self._args, self.process.exitcode, out, err)

    def _paths(self) -> tuple[Path, Path]:
        return Path(self._streams.name, "out"), Path(self._streams.name, "err")


def memory(home: Path, *args: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `memory ARGS` and return what it printed and its exit code."""
    return Command(home, *args, env=env).result()


def memory_json(home: Path, *args: str, env: Mapping[str, str] | None = None) -> Any:
    """The parsed output of `memory ARGS --json`, which must succeed."""
    result = memory(home, *args, "--json", env=env)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def _command(args: tuple[str, ...], env: dict[str, str], folder: Path, out: Path, err: Path) -> None:
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    os.chdir(folder)
    for stream, path in ((1, out), (2, err)):
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, stream)
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background lets Ctrl-C be ignored
    sys.argv = ["memory", *args]
    from memory_pipeline.cli.main import main

    main()
