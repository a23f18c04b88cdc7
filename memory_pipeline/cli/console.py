"""How commands speak: Rich on the terminal, plain JSON for programs, one sentence for an error."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console

PIPED_WIDTH = 240
"""Columns when nobody looks at a terminal: a table that is squeezed into 80 cannot be searched."""
out = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
err = Console(stderr=True, width=None if sys.stderr.isatty() else PIPED_WIDTH)

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
"""Exit codes: something went wrong; the call or a setting was wrong; a user stopped it, as shells say it."""


def print_json(data: Any) -> None:
    """To stdout, without colour or wrapping; dates as text."""
    typer.echo(json.dumps(data, default=str, ensure_ascii=False, indent=1))


def fail(sentence: str, code: int = FAILED) -> typer.Exit:
    """Say what went wrong and what to do; `raise` what comes back."""
    err.print(sentence, style="red", markup=False, soft_wrap=True)
    return typer.Exit(code)


def say(text: str, style: str = "") -> None:
    """A line on stdout as it is: no markup, no wrapping, so that it can be searched and copied."""
    out.print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def say_pair(name: str, value: object) -> None:
    """A line of a list of names and values."""
    say(f"{name:<24}{value}")


@contextmanager
def one_sentence(*errors: type[Exception], code: int = FAILED) -> Iterator[None]:
    """These errors are the user's to fix: report them without a traceback."""
    try:
        yield
    except errors as error:
        raise fail(str(error), code) from None
