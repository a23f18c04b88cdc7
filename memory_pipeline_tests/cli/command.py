"""The `memory` command as a user runs it, with an empty home.

`memory` runs commands that only read tables or write a few lines in the process of the test; `test_asking` compares
what they print with what a process of their own prints. `Command` always starts a process, and so does `memory` for
commands that run jobs, leave by `os._exit` or are killed. To start Python and to import Dagster and torch takes longer
than what most commands do, so one process imports the libraries, and each command is forked from it.
"""

from __future__ import annotations

import gc
import hashlib
import io
import json
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from array import array
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

SECONDS = 500.0
IN_PROCESS = {
    *("admin audit", "admin push", "agents", "context --pack", "friction", "import", "recall"),
    *("remember", "review", "run --estimate", "search", "settings", "show", "sql", "status", "why"),
}
"""Commands that `memory` calls as a function."""
VECTORS: list[Path] = []
"""The folder in which the commands of all workers share the vectors of texts, once `conftest` has named it."""
_FORKED = multiprocessing.get_context("forkserver")
_FORKED.set_forkserver_preload(["memory_pipeline_tests.cli.preloaded"])


class Command:
    """`memory ARGS` in a process of its own, already started. Nothing of this machine's home is seen."""

    def __init__(self, home: Path, *args: str, env: Mapping[str, str] | None = None) -> None:
        variables = _variables(home, env)
        self._args, self._streams = args, TemporaryDirectory()
        out, err = self._paths()
        self.process = _FORKED.Process(target=_command, args=(args, variables, Path.cwd(), out, err, VECTORS))
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
    if not IN_PROCESS.isdisjoint({" ".join(args[:1]), " ".join(args[:2])}):
        return called(home, *args, env=env)
    return Command(home, *args, env=env).result()


def called(home: Path, *args: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run `memory ARGS` in this process, with the environment that a process of its own would have."""
    from memory_pipeline.cli.main import main

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape") for _ in range(2))
    threshold, mask, code = gc.get_threshold(), os.umask(0o077), 0
    with (
        patch.dict(os.environ, _variables(home, env), clear=True),
        patch.object(sys, "argv", ["memory", *args]),
        patch.object(sys, "stdin", io.StringIO()),
        redirect_stdout(out),
        redirect_stderr(err),
        patch.object(logging.getLogger(), "handlers", []),  # pytest's would keep warnings from standard error
    ):
        time.tzset()
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        finally:
            gc.set_threshold(*threshold)
            os.umask(mask)
    time.tzset()
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(args, code, *texts)


def memory_json(home: Path, *args: str, env: Mapping[str, str] | None = None) -> Any:
    """The parsed output of `memory ARGS --json`, which must succeed."""
    result = memory(home, *args, "--json", env=env)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def _variables(home: Path, env: Mapping[str, str] | None) -> dict[str, str]:
    home.mkdir(parents=True, exist_ok=True)
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC", **(env or {})}


def _command(
    args: tuple[str, ...], env: dict[str, str], folder: Path, out: Path, err: Path, vectors: list[Path]
) -> None:
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
    if vectors:
        _share_vectors(*vectors)
    from memory_pipeline.cli.main import main

    main()


def _share_vectors(folder: Path) -> None:
    """Let the bundled model encode each text once in a test run; `text/test_minilm.py` and the benchmarks test it."""
    from memory_pipeline.text.encoder import BUNDLED_MODEL, Encoder

    encode = Encoder.encode

    def shared(self: Encoder, texts: Sequence[str]) -> list[list[float]]:
        if self.name != BUNDLED_MODEL:
            return encode(self, texts)
        places = {text: folder / hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts}
        new = [text for text, place in places.items() if not place.exists()]
        for text, vector in zip(new, encode(self, new), strict=True):
            own = places[text].with_suffix(f".{os.getpid()}")
            own.write_bytes(array("f", vector).tobytes())
            own.replace(places[text])
        return [array("f", places[text].read_bytes()).tolist() for text in texts]

    Encoder.encode = shared  # type: ignore[method-assign]
