"""Output of commands: Rich on the terminal, plain JSON for programs, one sentence for an error."""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

PIPED_WIDTH = 240
"""Columns of a table in a pipe: a table squeezed into 80 cannot be searched."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that move the cursor, write the clipboard or change the direction of a line, as sessions contain output of
tools. Rich removes fewer, and not the start of an escape sequence."""


def printable(text: str) -> str:
    """The text without control characters."""
    return _CONTROL.sub("", text)


def escape_control(text: str) -> str:
    """The text on one line, with control characters escaped as in Python."""
    return re.sub(rf"{_CONTROL.pattern}|[\t\n]", lambda found: found[0].encode("unicode_escape").decode(), text)


class _SafeConsole(Console):
    """A console that prints text unchanged: nothing in it is markup, and control characters are removed; only Rich's
    own colours reach the terminal."""

    def __init__(self, *, stderr: bool) -> None:
        stream = sys.stderr if stderr else sys.stdout
        width = None if stream.isatty() else PIPED_WIDTH
        super().__init__(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


out = _SafeConsole(stderr=False)
err = _SafeConsole(stderr=True)

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
"""Exit codes: failure; an invalid call or setting; interruption by the user, as in shells."""

AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def print_json(data: Any) -> None:
    """Print JSON to stdout, without colour or wrapping; dates as text."""
    text = json.dumps(data, default=str, ensure_ascii=False, indent=1)
    typer.echo(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def fail(sentence: str, code: int = FAILED) -> typer.Exit:
    """Print the problem and what to do; `raise` the returned exception."""
    err.print(sentence, style="red", soft_wrap=True)
    return typer.Exit(code)


def say(text: str, style: str = "") -> None:
    """Print a line on stdout unchanged: no markup, no wrapping, so that it can be searched and copied."""
    out.print(text, style=style, soft_wrap=True)


def say_pair(name: str, value: object, style: str = "") -> None:
    """Print a name and its value."""
    say(f"{name:<24}{value}", style)


def counted(number: int, noun: str) -> str:
    """The number with the noun in singular or plural."""
    return f"{number} {noun}{'s' * (number != 1)}"


def confirm(question: str, yes: bool, declined: str = "Nothing was changed.", *, default: bool = True) -> None:
    """Ask for confirmation unless ``yes`` is given. Raises typer.Exit if the answer is no, or there is no terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise fail(f"{declined} There is no terminal to ask for confirmation; `--yes` skips it.", MISUSED)
    if not typer.confirm(question, default=default, err=True):
        err.print(declined, style="dim")
        raise typer.Exit


def show_change(path: Path, old: bytes | None, new: bytes | None) -> None:
    """Print the path, the kind of change and a diff."""
    from difflib import unified_diff

    became = "new file" if old is None else "deleted, as it did not exist before" if new is None else "changed"
    say(f"{path} ({became})", "bold")
    for line in list(unified_diff(_lines(old), _lines(new), n=2, lineterm=""))[2:]:
        say(f"  {line}", "green" if line.startswith("+") else "red" if line.startswith("-") else "dim")


def _lines(data: bytes | None) -> list[str]:
    from memory_pipeline.markdown.safe_write import decode

    text = decode(data or b"").encode("utf-8", "replace").decode()
    return text.replace("\r\n", "\n").split("\n") if text else []


@contextmanager
def unless_unwritable(path: Path) -> Iterator[None]:
    """Report a file that cannot be read or written, which the user has to fix."""
    try:
        yield
    except OSError as error:
        why = (error.strerror or "cannot be used").lower()
        named = Path(error.filename or path)
        where = path if named.parent == path.parent else named  # not the temporary file next to it
        raise fail(f"{where}: {why}. {path} was not changed; fix that and run it again.") from None
