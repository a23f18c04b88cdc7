"""`memory log`: what was observed on a day, and why of some sessions nothing was."""

import re
from datetime import date, timedelta
from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, err, fail, one_sentence, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.days import parse_day, today
from memory_pipeline.recall.day_log import day_log, without_fences
from memory_pipeline.workspace.daily_log.render import optimize_for_context


def log(
    day: Annotated[
        str | None,
        typer.Argument(metavar="DAY", help="YYYY-MM-DD, today or yesterday; without it the last day with a log."),
    ] = None,
    high: Annotated[bool, typer.Option("--high", help="Only what is high, for a model's context.")] = False,
) -> None:
    """Show the log of a day, memory/YYYY-MM-DD.md.

    Of sessions of which nothing was kept it says why.
    """
    settings = active_settings()
    with one_sentence(ValueError, code=MISUSED):
        wanted = _day_of(day, today(settings.zone)) if day else None
    found = day_log(settings, wanted)
    if found is None:
        raise fail(f"There is no log of {wanted or 'any day'} in {settings.log_dir}.")
    if found.text is not None:
        text = optimize_for_context(found.text) if high else found.text
        text = without_fences(text)
        say((re.sub(r"\n{3,}", "\n\n", text) if high else text).rstrip("\n"))
    for number, line in enumerate(found.silences):
        line = line if number else f"\n{line}"
        if high:  # which goes into a model's context
            err.print(line, style="dim")
        else:
            say(line, "dim")


def _day_of(text: str, now: date) -> date:
    named = {"today": now, "yesterday": now - timedelta(days=1)}
    return named.get(text.lower()) or parse_day(text)
