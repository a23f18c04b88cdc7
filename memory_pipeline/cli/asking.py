"""The filters of `memory recall` and `memory search`."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, fail
from memory_pipeline.recall.fusion import Filters

Query = Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for, in your own words.")]
FromDay = Annotated[datetime | None, typer.Option("--from", formats=["%Y-%m-%d"], help="First day.", metavar="DAY")]
ToDay = Annotated[datetime | None, typer.Option("--to", formats=["%Y-%m-%d"], help="Last day.", metavar="DAY")]
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


def filters_of(
    first: datetime | None,
    last: datetime | None,
    project: list[str] | None,
    harness: list[str] | None,
    session: list[str] | None,
    priority: list[str] | None,
    kind: list[str] | None,
) -> Filters:
    """The options as filters; a range that holds no day is a mistake."""
    first_day, last_day = (d.date() if d else None for d in (first, last))
    if first_day and last_day and last_day < first_day:
        raise fail(f"--from {first_day} is after --to {last_day}; no day lies between them.", MISUSED)
    given = {"project": project, "harness": harness, "session_id": session, "priority": priority, "kind": kind}
    return Filters(first_day, last_day, {name: values for name, values in given.items() if values})


def what_matches(filters: Filters) -> str:
    """The filters in words, for a search that found nothing."""
    parts = [f"{name} {' or '.join(values)}" for name, values in filters.equals.items()]
    parts += [f"{word} {day}" for word, day in (("from", filters.first_day), ("to", filters.last_day)) if day]
    future = filters.first_day and filters.first_day > date.today()
    return (f" with {', '.join(parts)}" if parts else "") + ("; that day is in the future" if future else "")
