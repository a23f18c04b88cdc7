"""Selection of sessions and days: options that several commands share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from memory_pipeline.cli.console import MISUSED, err, fail
from memory_pipeline.cli.workspace import settings_of_call, use_examples
from memory_pipeline.days import today
from memory_pipeline.harnesses.model import Source
from memory_pipeline.lake.store import Lake
from memory_pipeline.recall.filters import parse_range
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.settings import Settings, keep_first_day
from memory_pipeline.settings.marks import keep_private, stored_first_day
from memory_pipeline.workspace.daily_log.notes import days_with_notes
from memory_pipeline.workspace.free_space import require_space
from memory_pipeline.workspace.workspace import Workspace

RECENT_DAYS = 7
FIRST = Annotated[str | None, typer.Option("--from", metavar="DAY", help="First day, YYYY-MM-DD.")]
LAST = Annotated[str | None, typer.Option("--to", metavar="DAY", help="Last day, YYYY-MM-DD.")]
EVERYTHING = Annotated[bool, typer.Option("--all", help="All days that have sessions.")]
SESSIONS = Annotated[
    list[Path] | None,
    typer.Option("--sessions", metavar="DIR", help="Read only this directory; may be given again."),
]


def span_of(first: str | None, last: str | None, everything: bool) -> tuple[date, date] | None:
    """The first and last day given; None if there are none."""
    if everything and (first or last):
        raise fail("--all selects every day; remove --all, or --from and --to.", MISUSED)
    if not first and not last:
        return None
    start, end = parse_range(first, last)
    return start or date.min, end or date.max


def days_in(catalogue: Catalogue, span: tuple[date, date] | None, everything: bool) -> list[date]:
    """The requested days with sessions or notes; by default the recent ones with sessions, and earlier days on which a
    session was too short that has enough messages now."""
    if not span and not everything:
        return sorted({*catalogue.days()[-RECENT_DAYS:], *catalogue.days_no_longer_short()})
    first, last = span or (date.min, date.max)
    settings = catalogue.settings
    noted = days_with_notes(Workspace(settings, catalogue.lake))
    kept = [day for day in noted if settings.start_date <= day <= today(settings.zone)]
    return sorted(day for day in {*catalogue.days(), *kept} if first <= day <= last)


def sessions_of_call(sessions: list[Path] | None, *, with_examples: bool = True) -> tuple[Settings, Catalogue]:
    """The settings, and the catalogue of session files after reading new and changed ones.

    If there are none and none were given, the bundled examples are used, if allowed.
    """
    settings = settings_of_call(sessions or [])
    directories, sources = session_files(settings)
    named = bool(sessions or settings.session_dirs)
    if not sources and named:
        raise fail(f"No session was found in {', '.join(map(str, directories))}.")
    catalogue = read_catalogue(settings, sources)
    if catalogue.has_sessions or named:
        return catalogue.settings, catalogue
    if not with_examples:
        raise fail(
            f"No session was found on this machine, and nothing was pushed to {settings.lake or 'a lake'}: run "
            f"`memory admin push` on the machine with the sessions, with the same MEMORY_LAKE."
        )
    settings = use_examples(settings)
    err.print(
        "No sessions of a coding agent were found on this machine, so the bundled examples are used. "
        "They are written examples, not recorded sessions, and have a workspace of their own.",
        style="yellow",
    )
    catalogue = read_catalogue(settings, session_files(settings)[1])
    return catalogue.settings, catalogue


def session_files(settings: Settings) -> tuple[Sequence[Path], list[Source]]:
    """The directories of sessions and the session files in them. A wrong directory ends the command."""
    directories = roots(settings)
    return directories, list(find_sources(directories))


def keep_first_session_day(settings: Settings) -> None:
    """Set the workspace's first day before Dagster creates partitions: that of the oldest session, today if there is
    none."""
    if stored_first_day(settings.workspace) is None:
        keep_first_day(read_catalogue(settings, session_files(settings)[1]).settings, ())


def left_out(catalogue: Catalogue) -> str:
    """A note on days with sessions that are not days of the workspace, if there are any."""
    outside = len(catalogue.days_outside())
    if not outside:
        return ""
    first = catalogue.settings.start_date
    return f"{outside} days before {first} or in the future are left out; see `memory status`."


def read_catalogue(settings: Settings, sources: list[Source], *, is_stored: bool = True) -> Catalogue:
    """The catalogue of these session files, after reading new and changed ones; it is stored unless that is left to
    `Catalogue.send`."""
    if sources:
        require_space(settings.workspace)
        keep_private(settings.workspace)
    catalogue = Catalogue(Lake.from_settings(settings), settings)
    if sources:
        with progress() as bar:
            reading = bar.add_task("reading session files", total=len(sources))
            refresh = catalogue.refresh(sources, on_file=lambda _: bar.advance(reading), is_stored=is_stored)
            bar.update(reading, completed=len(sources))
        err.print(f"{refresh.files} session files, {refresh.changed} new or changed.", style="dim")
    return catalogue


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A running clock for work without countable parts, which leaves no line."""
    with Progress(TextColumn("{task.description:<32}"), TimeElapsedColumn(), console=err, transient=True) as bar:
        bar.add_task(what, total=None)
        yield


def progress() -> Progress:
    columns = (TextColumn("{task.description:<32}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=err)
