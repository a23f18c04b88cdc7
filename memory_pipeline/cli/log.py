"""`memory log`: what was observed on a day."""

from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, fail, one_sentence, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.daily_log.render import optimize_for_context
from memory_pipeline.days import parse_day


def log(
    day: Annotated[str | None, typer.Argument(metavar="DAY", help="YYYY-MM-DD; without it the last day.")] = None,
    high: Annotated[bool, typer.Option("--high", help="Only what is high, for a model's context.")] = False,
) -> None:
    """Show the day's log, memory/YYYY-MM-DD.md."""
    settings = active_settings()
    with one_sentence(ValueError, code=MISUSED):
        wanted = f"{parse_day(day)}" if day else "????-??-??"
    found = sorted(settings.log_dir.glob(f"{wanted}.md")) or sorted(settings.log_dir.glob(f"archive/{wanted}.md"))
    if not found:
        raise fail(f"There is no log of {day or 'any day'} in {settings.log_dir}.")
    text = found[-1].read_text("utf-8", "replace")
    say((optimize_for_context(text) if high else text).rstrip("\n"))
