"""`memory log`: what was observed on a day."""

import re
from datetime import date, timedelta
from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, fail, one_sentence, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.daily_log.render import optimize_for_context
from memory_pipeline.days import parse_day, today

_FENCE = re.compile(r"^<!-- /?memory:[^\n]*-->\r?\n?", re.MULTILINE)
"""A line that bounds a block of ours in the file, where a later run looks for it; nobody needs to read it."""


def log(
    day: Annotated[
        str | None,
        typer.Argument(metavar="DAY", help="YYYY-MM-DD, today or yesterday; without it the last day with a log."),
    ] = None,
    high: Annotated[bool, typer.Option("--high", help="Only what is high, for a model's context.")] = False,
) -> None:
    """Show the log of a day, memory/YYYY-MM-DD.md."""
    settings = active_settings()
    with one_sentence(ValueError, code=MISUSED):
        wanted = f"{_day_of(day, today(settings.zone))}" if day else "????-??-??"
    found = sorted(settings.log_dir.glob(f"{wanted}.md")) or sorted(settings.log_dir.glob(f"archive/{wanted}.md"))
    if not found:
        raise fail(f"There is no log of {wanted if day else 'any day'} in {settings.log_dir}.")
    text = found[-1].read_text("utf-8", "replace")
    if high:
        text = re.sub(r"\n{3,}", "\n\n", _FENCE.sub("", optimize_for_context(text)))
    say(_FENCE.sub("", text).rstrip("\n"))


def _day_of(text: str, now: date) -> date:
    named = {"today": now, "yesterday": now - timedelta(days=1)}
    return named.get(text.lower()) or parse_day(text)
