"""`memory log`: what was observed on a day, and why of some sessions nothing was."""

import re
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, err, fail, one_sentence, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.daily_log.render import optimize_for_context
from memory_pipeline.days import parse_day, today
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.observations.silence import Silence, silences
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip

NAME = 60
"""Characters of a session's name."""
_FENCE = re.compile(r"^<!-- /?memory:[^\n]*-->\r?\n?", re.MULTILINE)
"""A line that bounds a block of ours in the file, where a later run looks for it; nobody needs to read it."""


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
        wanted = f"{_day_of(day, today(settings.zone))}" if day else "????-??-??"
    found = sorted(settings.log_dir.glob(f"{wanted}.md")) or sorted(settings.log_dir.glob(f"archive/{wanted}.md"))
    shown = date.fromisoformat(found[-1].stem) if found else date.fromisoformat(wanted) if day else None
    reasons = list(_silences(settings, shown)) if shown else []
    if not found and not reasons:
        raise fail(f"There is no log of {wanted if day else 'any day'} in {settings.log_dir}.")
    if found:
        text = found[-1].read_text("utf-8", "replace")
        if high:
            text = re.sub(r"\n{3,}", "\n\n", _FENCE.sub("", optimize_for_context(text)))
        say(_FENCE.sub("", text).rstrip("\n"))
    for line in reasons:
        if high:  # which goes into a model's context
            err.print(line, style="dim")
        else:
            say(line, "dim")


def _silences(settings: Settings, day: date) -> Iterator[str]:
    """A line for each window of the day of which nothing was kept, after one that counts them."""
    lake = Lake(settings.lake_dir)
    found = silences(lake, Catalogue(lake, settings), [day])
    if not found:
        return
    yield f"\nNothing was kept of {len(found)} of the {_windows(lake, day, found)} windows of {day}:"
    for silence in found:
        at = f"{silence.started_at.astimezone(settings.zone):%H:%M} " if silence.started_at else ""
        detail = f" ({silence.detail})" if silence.detail else ""
        yield f"  {one_line(f'{at}{clip(silence.session, NAME)}: {silence.reason}{detail}')}"


def _windows(lake: Lake, day: date, found: Sequence[Silence]) -> int:
    """Of the day, with the sessions that have none."""
    return lake.read("windows", [day], ["day"]).height + sum(not silence.is_window for silence in found)


def _day_of(text: str, now: date) -> date:
    named = {"today": now, "yesterday": now - timedelta(days=1)}
    return named.get(text.lower()) or parse_day(text)
