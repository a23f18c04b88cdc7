"""Keys of a user at a terminal: they act at once where the terminal allows it, else with Enter.

Ctrl-C, a polite kill and a closed terminal end the keys, and only while one is waited for: what is being written
meanwhile gets written to its end.
"""

from __future__ import annotations

import contextlib
import locale
import os
import select
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.markdown.blocks import one_line

try:
    import termios
    import tty
except ImportError:  # not on Windows: lines there
    termios = None  # type: ignore[assignment]

ENTER, ESCAPE = "\n", "\x1b"
_STOPS = [s for s in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", None)) if s is not None]


class NoMoreKeysError(MemoryPipelineError):
    """Ctrl-C, the end of input, a lost terminal or a polite kill; `code` is the exit code that tells which."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit {code}")
        self.code = code


class _CancelledError(MemoryPipelineError):
    """Ctrl-C while a line is edited."""


LOST = 128 + 1
"""The exit code of a process whose terminal is gone."""


class Keys:
    """The keyboard, from entering until leaving; then the terminal and the signals are as they were."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._modes: list[Any] | None = None
        self._handlers: dict[int, Any] = {}
        self._waiting = self._editing = False
        self._stopped: int | None = None
        self._pipe: tuple[int, ...] = ()
        """What a signal writes to, so that waiting for a key ends."""

    def __enter__(self) -> Keys:
        if termios is not None and os.environ.get("TERM") != "dumb":  # dumb: an editor's shell, which sends lines
            self._modes = termios.tcgetattr(self._fd)
        for number in _STOPS:
            self._handlers[number] = signal.signal(number, self._stop)
        if hasattr(signal, "SIGCONT"):  # back from Ctrl-Z: the shell has set the terminal as it likes it
            self._handlers[signal.SIGCONT] = signal.signal(signal.SIGCONT, self._continue)
        if self._modes is not None:
            self._woken, wake = os.pipe()
            self._pipe = (self._woken, wake)
            for end in self._pipe:
                os.set_blocking(end, False)
            self._woken_before = signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self._at_once()
        return self

    def __exit__(self, *_: object) -> None:
        self._in_lines()
        if self._pipe:
            signal.set_wakeup_fd(self._woken_before)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        for end in self._pipe:
            os.close(end)

    def key(self) -> str:
        """The next key: one character in lower case, `ENTER` or `ESCAPE`; arrows and the like are `ESCAPE`.

        Raises `NoMoreKeysError`.
        """
        with self._waits():
            if self._modes is None:
                return (input("> ").strip()[:1] or ENTER).lower()
            first = self._byte()
            if first == b"\x04":  # Ctrl-D ends the input here as it does in lines
                raise NoMoreKeysError(0)
            if first == b"\x1b":
                return self._escape()
            following = sum(first[0] >= least for least in (0xC0, 0xE0, 0xF0))
            letter = first + b"".join(self._byte() for _ in range(following))
            return letter.decode("utf-8", "replace").replace("\r", ENTER).lower()

    def line(self, text: str) -> str | None:
        """A text as the user edits it, on one line; None when nothing is left or the edit is given up (Ctrl-C)."""
        self._in_lines()
        self._editing = True
        try:
            with self._waits(), _prefilled(text):
                return one_line(_as_utf8(input("> "))) or None
        except (_CancelledError, EOFError):
            return None
        finally:
            self._editing = False
            self._at_once()

    def _byte(self) -> bytes:
        # a signal may reach another thread than this one, and then a read would go on waiting
        while self._fd not in (ready := select.select([self._fd, self._woken], [], [])[0]):
            os.read(ready[0], 64)
        byte = os.read(self._fd, 1)
        if not byte:
            raise EOFError
        return byte

    def _escape(self) -> str:
        """The rest of an arrow or function key belongs to it: `ESC [ A` is no `a`."""

        def follows() -> bool:
            return bool(select.select([self._fd], [], [], 0.02)[0])

        if follows() and self._byte() in (b"[", b"O"):
            while follows() and not b"\x40" <= self._byte() <= b"\x7e":
                pass
        return ESCAPE

    @contextlib.contextmanager
    def _waits(self) -> Iterator[None]:
        """Here a signal may end the keys; one that came before ends them now."""
        try:
            self._waiting = True
            if self._stopped is not None:
                raise NoMoreKeysError(self._stopped)
            yield
        except EOFError:
            if self._editing:
                raise
            raise NoMoreKeysError(LOST if self._modes else 0) from None
        except OSError:
            raise NoMoreKeysError(LOST) from None
        finally:
            self._waiting = False

    def _stop(self, number: int, _: FrameType | None) -> None:
        if self._editing and number == signal.SIGINT:
            if self._waiting:
                raise _CancelledError
            return
        self._stopped = 128 + number
        if self._waiting:
            self._waiting = False  # a second signal must not meet the way out of here
            raise NoMoreKeysError(self._stopped)

    def _continue(self, *_: object) -> None:
        if not self._editing:
            self._at_once()

    def _at_once(self) -> None:
        if self._modes is not None:
            with contextlib.suppress(termios.error):  # the terminal is gone: the next key will tell
                tty.setcbreak(self._fd, termios.TCSADRAIN)  # what was typed ahead stays

    def _in_lines(self) -> None:
        if self._modes is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._modes)


def can_prefill(text: str) -> bool:
    """Whether `Keys.line` starts with the text: Python can edit lines, and the terminal can show all of it."""
    try:
        import readline  # noqa: F401

        for encoding in (sys.stdin.encoding, locale.getencoding()):  # `input` uses the one, `insert_text` the other
            text.encode(encoding)
    except (ImportError, UnicodeEncodeError):
        return False
    return True


@contextlib.contextmanager
def _prefilled(text: str) -> Iterator[None]:
    if not can_prefill(text):
        yield
        return
    import readline

    readline.set_auto_history(False)
    readline.set_startup_hook(lambda: readline.insert_text(text))
    try:
        yield
    finally:
        readline.set_startup_hook()


def _as_utf8(text: str) -> str:
    """What the terminal sent, read as UTF-8 where the locale could make nothing of it."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
