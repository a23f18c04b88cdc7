"""`memory admin push`: uploads the redacted sessions of this machine to a lake that a server processes."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from memory_pipeline.cli.choosing import SESSIONS, left_out, progress, read_catalogue, session_files
from memory_pipeline.cli.console import INTERRUPTED, MISUSED, AsJson, err, fail, print_json, say
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.lake.shared_marks import is_shared
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.pushing import Pushed, prepare, push_days
from memory_pipeline.settings import Settings


def push(
    lake: Annotated[
        str | None, typer.Argument(metavar="[LAKE]", help="Such as s3://bucket/ana; by default MEMORY_LAKE.")
    ] = None,
    sessions: SESSIONS = None,
    as_json: AsJson = False,
) -> None:
    """Upload this machine's redacted sessions to a shared lake.

    Sessions are read and redacted on this machine. Only rows of sessions, messages and windows are sent, the list of
    their files, and hashes of forgotten words. No model is called. Rows are sent once, and an interrupted push resumes.
    `memory run` with the same lake, on any machine, processes them.
    """
    try:
        settings = _settings(lake, sessions)
        directories, sources = session_files(settings)
        if not sources:
            where = f" in {', '.join(map(str, directories))}" if directories else ", and no directory to look in"
            raise fail(f"No session was found{where}: name a directory of session files with --sessions.")
        prepare(settings)
        catalogue = read_catalogue(settings, sources, is_stored=False)
        done = _pushed(catalogue)
    except KeyboardInterrupt:
        raise fail("The push was stopped. The next one sends the rest.", INTERRUPTED) from None
    failed = [day for day in done if day.failure]
    if as_json:
        print_json({"lake": settings.lake, "owner": settings.owner, "days": [asdict(day) for day in done]})
    else:
        _print(catalogue, done)
    if failed:
        raise fail(f"{len(failed)} of {len(done)} days could not be sent. Push again for the rest.")


def _settings(lake: str | None, sessions: list[Path] | None) -> Settings:
    """The settings of the call with the given lake. Raises `typer.Exit` for a lake that is not in object storage, and
    if secrets would be sent."""
    if lake is not None:
        os.environ["MEMORY_LAKE"] = lake
    settings = settings_of_call(sessions or [])
    if not is_shared(settings):
        raise fail(
            "There is no bucket to push to: give one such as s3://bucket/prefix, gs:// or az://, here or as "
            "MEMORY_LAKE.",
            MISUSED,
        )
    if not settings.redact:
        raise fail("MEMORY_REDACT=false would send secrets to the bucket: turn it on to push.", MISUSED)
    return settings


def _pushed(catalogue: Catalogue) -> list[Pushed]:
    done = []
    with progress() as bar:
        pushing = bar.add_task("pushing days", total=len(catalogue.days()))
        for day in push_days(catalogue):
            done.append(day)
            bar.update(pushing, advance=1, description=f"pushing {day.day}")
    return done


def _print(catalogue: Catalogue, done: list[Pushed]) -> None:
    for day in done:
        if day.failure:
            err.print(f"{day.day}: {day.failure}", style="red", soft_wrap=True)
        elif not day.is_complete:
            say(f"{day.day}: a session cannot be read now; the next push sends the rest.", "yellow")
    sent = [day for day in done if day.is_sent]
    days, rows = f"{len(sent)} of {len(done)} days", f"{sum(day.messages for day in sent)} messages"
    place = catalogue.settings.lake
    say(f"Sent to {place}: {days}, with {rows}." if sent else f"{place} is up to date: nothing was sent.")
    if outside := left_out(catalogue):
        say(outside)
