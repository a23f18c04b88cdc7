"""The filters of `memory recall` and `memory search`, and how both ask."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, fail, one_sentence
from memory_pipeline.days import parse_day, today
from memory_pipeline.recall.folders import MAX_NAME, UnknownProjectError, project_named
from memory_pipeline.recall.fusion import Filters
from memory_pipeline.recall.search import QueryError, Results, search
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import PRIORITIES
from memory_pipeline.text.sentences import clip

Query = Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for, in your own words.")]
FromDay = Annotated[str | None, typer.Option("--from", help="First day, YYYY-MM-DD.", metavar="DAY")]
ToDay = Annotated[str | None, typer.Option("--to", help="Last day, YYYY-MM-DD.", metavar="DAY")]
Project = Annotated[list[str] | None, typer.Option(help="Only of this project; may be given again.", metavar="NAME")]
Harness = Annotated[list[str] | None, typer.Option(help="Only of this agent: pi, claude_code, …", metavar="NAME")]
Session = Annotated[list[str] | None, typer.Option(help="Only of this session.", metavar="ID")]
Priority = Annotated[
    list[str] | None, typer.Option(help="Only observations of this priority: high, medium, low.", metavar="NAME")
]
Kind = Annotated[
    list[str] | None, typer.Option(help="Only observations of this kind: rule, decision, …", metavar="NAME")
]
Limit = Annotated[int, typer.Option(help="Hits at most.", min=1, max=100, metavar="N")]
AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]

_PANIC = re.compile(r"\n?thread '[^\n]*panicked at .*?(?:\nnote: run with `RUST_BACKTRACE[^\n]*\n|\Z)", re.DOTALL)


def filters_of(
    settings: Settings,
    first: str | None,
    last: str | None,
    project: list[str] | None,
    harness: list[str] | None,
    session: list[str] | None,
    priority: list[str] | None,
    kind: list[str] | None,
) -> Filters:
    """The options as filters. A range that holds no day is a mistake, and so is a name that nothing has."""
    with one_sentence(ValueError, code=MISUSED):
        first_day, last_day = (parse_day(day) if day else None for day in (first, last))
    if first_day and last_day and last_day < first_day:
        raise fail(f"--from {first_day} is after --to {last_day}; no day lies between them.", MISUSED)
    given = {"project": project, "harness": harness, "session_id": session, "priority": priority, "kind": kind}
    return Filters(first_day, last_day, {name: _known(settings, name, of) for name, of in given.items() if of})


def _known(settings: Settings, field: str, values: list[str]) -> list[str]:
    """The values as they are stored. The tables are read for it only where a session, agent or project is named."""
    if field == "priority":
        return [_one_of(value, PRIORITIES, "priority") for value in values]
    if field == "kind":
        from memory_pipeline.observations.parsing.marks import KINDS

        return [_one_of(value, KINDS, "kind") for value in values]
    from memory_pipeline.lake.store import Lake

    lake = Lake(settings.lake_dir)
    if field == "project":
        with one_sentence(UnknownProjectError, code=MISUSED):
            return [project_named(lake, value) or "" for value in values]
    stored: list[str] = sorted(set(lake.read("sessions", columns=[field])[field].drop_nulls()))
    if field == "harness":
        return [_one_of(value, stored, "agent whose sessions were read") for value in values]
    for value in values:
        if value not in stored:
            name = clip(value, MAX_NAME)
            raise fail(f"No session {name!r} was read; `memory search --json` has their ids.", MISUSED)
    return values


def _one_of(value: str, known: tuple[str, ...] | list[str], what: str) -> str:
    name = value.strip().casefold().replace("-", "_").replace(" ", "_")
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "there is none"
        raise fail(f"{clip(value, MAX_NAME)!r} is no {what}; {there}.", MISUSED)
    return name


def found_for(settings: Settings, query: list[str], filters: Filters, limit: int) -> Results:
    """What is found; a query that says nothing to look for ends the command."""
    with one_sentence(QueryError, code=MISUSED), _without_panics():
        return search(settings, " ".join(query), filters, limit=limit)


@contextmanager
def _without_panics() -> Iterator[None]:
    """The engine writes the trace of a panic past Python to stderr, beside the exception of which we tell."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as held:
        own = os.dup(2)
        os.dup2(held.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(own, 2)
            os.close(own)
            held.seek(0)
            sys.stderr.write(_PANIC.sub("", held.read().decode("utf-8", "replace")))


def what_matches(settings: Settings, filters: Filters) -> str:
    """The filters in words, for a search that found nothing."""
    parts = [f"{name.removesuffix('_id')} {' or '.join(values)}" for name, values in filters.equals.items()]
    parts += [f"{word} {day}" for word, day in (("from", filters.first_day), ("to", filters.last_day)) if day]
    future = filters.first_day and filters.first_day > today(settings.zone)
    return (f" ({', '.join(parts)})" if parts else "") + ("; that day is in the future" if future else "")
