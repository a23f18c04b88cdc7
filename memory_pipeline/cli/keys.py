"""Single keys at a terminal: they act at once if the terminal supports it, else after Enter."""

from __future__ import annotations

import contextlib
import locale
import os
import select
import signal
import sys
from types import FrameType
from typing import Any, NoReturn, Self

from memory_pipeline.markdown.blocks import one_line

try:
    import termios
    import tty
except ImportError:  # Windows: only whole lines
    termios = None  # type: ignore[assignment]

ENTER, ESCAPE, END_OF_INPUT = "\n", "\x1b", "\x04"
LOST = 128 + 1
"""Exit code of a process whose terminal is gone."""


class Keys:
    """A context manager for the keyboard, which restores the terminal and the signal handlers.

    Ctrl-C, SIGTERM, a closed window and the end of input raise `SystemExit` with the corresponding exit code.
    """

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()
        self._modes: list[Any] | None = None
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if termios is not None:
            self._modes = termios.tcgetattr(self._fd)
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            if number := getattr(signal, name, None):  # Windows lacks some
                self._handlers[number] = signal.signal(number, _stop)
        self._set_single_keys()
        return self

    def __exit__(self, *_: object) -> None:
        self._restore_lines()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def key(self) -> str:
        """The next key: one character in lower case, or `ENTER`; arrows and letters beyond ASCII are `ESCAPE`."""
        try:
            if self._modes is None:
                return (input("> ").strip()[:1] or ENTER).lower()
            self._set_single_keys()  # also after Ctrl-Z, when the shell has changed it
            first = os.read(self._fd, 1)
            if first == b"\x1b" or first >= b"\x80":
                while select.select([self._fd], [], [], 0.02)[0] and os.read(self._fd, 1):  # `ESC [ A` is not `a`
                    pass
                return ESCAPE
        except EOFError:
            raise SystemExit(0) from None
        except OSError:
            raise SystemExit(LOST) from None
        if not first or first == END_OF_INPUT.encode():
            raise SystemExit(0 if first else LOST)
        return first.decode().replace("\r", ENTER).lower()

    def line(self, text: str) -> str | None:
        """The text as edited by the user, on one line; None if it is empty or Ctrl-C cancels editing."""
        self._restore_lines()
        interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if can_prefill(text):
                import readline

                readline.set_auto_history(False)
                readline.set_startup_hook(lambda: readline.insert_text(text))
            edited = input("> ").encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            return one_line(edited) or None
        except (KeyboardInterrupt, EOFError):
            return None
        except OSError:
            raise SystemExit(LOST) from None
        finally:
            signal.signal(signal.SIGINT, interrupt)
            if can_prefill(text):
                readline.set_startup_hook()
            self._set_single_keys()

    def _set_single_keys(self) -> None:
        if self._modes is not None:
            with contextlib.suppress(termios.error):  # the terminal is gone, which the next key reports
                tty.setcbreak(self._fd, termios.TCSADRAIN)  # keeps input typed ahead

    def _restore_lines(self) -> None:
        if self._modes is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSADRAIN, self._modes)


def can_prefill(text: str) -> bool:
    """Whether `Keys.line` can start with the text: Python can edit lines, and the terminal can show all of it."""
    try:
        import readline  # noqa: F401

        for encoding in (sys.stdin.encoding, locale.getencoding()):  # `input` uses the former, `insert_text` the latter
            text.encode(encoding)
    except (ImportError, UnicodeEncodeError):
        return False
    return True


def _stop(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
