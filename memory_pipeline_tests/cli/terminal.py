"""The `memory` command at a terminal: a pseudo-terminal on which a test presses keys and reads what is shown.

::

    with Terminal(home, "review") as terminal:
        terminal.sees("1 of 3")
        terminal.press("a")
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_STYLES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SECONDS = 300.0


class Terminal:
    """`memory ARGS` on a terminal of its own. `text` is all that it has shown so far, without styles."""

    def __init__(self, home: Path, *args: str, env: Mapping[str, str] | None = None, columns: int = 100) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self.text, self._read_to = "", 0
        self._raw = b""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.modes = termios.tcgetattr(slave)
        variables = {"PATH": os.environ["PATH"], "HOME": str(home), "TZ": "UTC", "TERM": "xterm", "LANG": "C.UTF-8"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memory_pipeline.cli.main", *args],
            env=variables | dict(env or {}),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C and hanging up reach it
        )
        self._slave: int | None = slave

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.hang_up()

    def press(self, keys: str | bytes) -> None:
        os.write(self._master, keys.encode() if isinstance(keys, str) else keys)

    def sees(self, text: str) -> None:
        """Wait until the text is shown, after what was seen before."""
        end = time.monotonic() + SECONDS
        while (found := self.text.find(text, self._read_to)) < 0:
            assert time.monotonic() < end, f"{text!r} never came; it shows:\n{self.text[self._read_to :]}"
            assert self._take_in(0.1) or self.process.poll() is None, f"ended without {text!r}:\n{self.text}"
        self._read_to = found + len(text)

    def ends(self) -> int:
        """Wait for the end; the exit code."""
        end = time.monotonic() + SECONDS
        while self.process.poll() is None or self._take_in(0):
            assert time.monotonic() < end, f"it did not end; it shows:\n{self.text[self._read_to :]}"
            self._take_in(0.1)
        return int(self.process.returncode)

    def modes_now(self) -> list[Any]:
        assert self._slave is not None
        return termios.tcgetattr(self._slave)

    def hang_up(self) -> None:
        """Close the terminal's window, as a lost connection does."""
        for end in (self._slave, self._master):
            if end is not None and end >= 0:
                os.close(end)
        self._slave, self._master = None, -1

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def _take_in(self, seconds: float) -> bool:
        if self._master < 0 or not select.select([self._master], [], [], seconds)[0]:
            return False
        self._raw += os.read(self._master, 65536)
        self.text = _STYLES.sub("", self._raw.decode("utf-8", "replace")).replace("\r\n", "\n")
        return True
