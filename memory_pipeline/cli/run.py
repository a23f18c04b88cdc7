"""`memory run`: sessions in, memory out, through Dagster."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from memory_pipeline.cli.console import MISUSED, err, fail, one_sentence, print_json
from memory_pipeline.cli.dagster_runs import close_dead_runs, instance_of, only_run, run_job
from memory_pipeline.cli.summary import print_summary, summarise
from memory_pipeline.cli.workspace import settings_of_call, use_examples
from memory_pipeline.days import parse_day
from memory_pipeline.lake import Lake
from memory_pipeline.planning import Stages
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.sessions.model import Source
from memory_pipeline.settings import Settings, WrongSetting

RECENT_DAYS = 7
STAGES_WITH_PROGRESS = 6


def run(
    first: Annotated[str | None, typer.Option("--from", metavar="DAY", help="First day, YYYY-MM-DD.")] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="DAY", help="Last day, YYYY-MM-DD.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All days that have sessions.")] = False,
    sessions: Annotated[
        list[Path] | None,
        typer.Option("--sessions", metavar="DIR", help="Read only this directory; may be given again."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Bring the last 7 days that have sessions, or the days named, up to date and show what came of it."""
    span = _span(first, last, everything)
    settings = settings_of_call(sessions or [])
    with one_sentence(WrongSetting, code=MISUSED):
        directories = roots(settings)
    sources = list(find_sources(directories))
    if not sources and (sessions or settings.session_dirs):
        raise fail(f"There is no session in {', '.join(map(str, directories))}.")
    catalogue = _look(settings, sources)
    if not catalogue.has_sessions and not (sessions or settings.session_dirs):
        settings = use_examples(settings)
        err.print(
            "No sessions of a coding agent were found on this machine, so the bundled examples are used. "
            "They are written examples, not recorded sessions, and have a workspace of their own.",
            style="yellow",
        )
        catalogue = _look(settings, list(find_sources(roots(settings))))
    with only_run(settings):
        failure, days = _bring_up_to_date(settings, catalogue, span, everything)
    if failure:
        err.print("The run did not finish; this is what is stored:", style="red")
    with instance_of(settings) as instance:
        summary = summarise(settings, instance, days)
    print_json(summary | {"failure": failure}) if as_json else print_summary(settings, summary)
    if failure:
        raise fail(f"The run did not finish: {failure}")


def _span(first: str | None, last: str | None, everything: bool) -> tuple[date, date] | None:
    with one_sentence(ValueError, code=MISUSED):
        if everything and (first or last):
            raise ValueError("--all takes every day; leave out --from and --to, or --all.")
        if not first and not last:
            return None
        start, end = parse_day(first) if first else date.min, parse_day(last) if last else date.max
        if start > end:
            raise ValueError(f"--from {start} is after --to {end}.")
        return start, end


def _look(settings: Settings, sources: list[Source]) -> Catalogue:
    """Read the files that are new or changed."""
    catalogue = Catalogue(Lake(settings.lake_dir), settings)
    if sources:
        with _progress() as bar:
            reading = bar.add_task("reading session files", total=len(sources))
            refresh = catalogue.refresh(sources, on_file=lambda _: bar.advance(reading))
            bar.update(reading, completed=len(sources))
        err.print(f"{refresh.files} session files, {refresh.changed} new or changed.", style="dim")
    return catalogue


def _bring_up_to_date(
    settings: Settings, catalogue: Catalogue, span: tuple[date, date] | None, everything: bool
) -> tuple[str | None, list[date]]:
    """Run what is out of date of the days asked for; returns what failed, if anything, and the days."""
    days = catalogue.days()
    if span:
        days = [day for day in days if span[0] <= day <= span[1]]
    elif not everything:
        days = days[-RECENT_DAYS:]
    ranges = Stages.of(settings, catalogue, datetime.now(UTC)).runs_for(days)
    out_of_date = sum((last - first).days + 1 for first, last in ranges)
    todo = f"{len(ranges)} run(s) over {out_of_date} days to do" if ranges else "all up to date"
    outside = len(catalogue.days_outside())
    left_out = f" {outside} days before MEMORY_START_DATE or in the future are left out." if outside else ""
    err.print(f"{len(days)} days with sessions chosen, {todo}.{left_out}", style="dim")
    with instance_of(settings) as instance:
        close_dead_runs(instance)
        failures = _execute(instance, ranges, out_of_date) if ranges else [run_job(instance, "review_job")]
    return next((f for f in failures if f), None), days


def _execute(instance: object, ranges: list[tuple[date, date]], days: int) -> list[str | None]:
    from memory_pipeline.orchestration import on_progress

    with _progress() as bar:
        task = bar.add_task("starting Dagster", total=days * STAGES_WITH_PROGRESS)
        token = on_progress.set(lambda table, day: bar.update(task, advance=1, description=f"{table} {day}"))
        try:
            return [run_job(instance, "day_job", span) for span in ranges]
        finally:
            on_progress.reset(token)


def _progress() -> Progress:
    columns = (TextColumn("{task.description:<32}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=err)
