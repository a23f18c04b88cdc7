"""The options and the search that `memory recall` and `memory search` share."""

from __future__ import annotations

from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, one_sentence
from memory_pipeline.embeddings.index import Filters
from memory_pipeline.recall.filters import FilterError, parse_filters
from memory_pipeline.recall.folders import UnknownProjectError
from memory_pipeline.recall.search import QueryError, Results, search
from memory_pipeline.settings import Settings

Query = Annotated[list[str], typer.Argument(metavar="QUERY", help="What to look for, in your own words.")]
FromDay = Annotated[str | None, typer.Option("--from", help="First day, YYYY-MM-DD.", metavar="DAY")]
ToDay = Annotated[str | None, typer.Option("--to", help="Last day, YYYY-MM-DD.", metavar="DAY")]
Project = Annotated[list[str] | None, typer.Option(help="Only this project; may be repeated.", metavar="NAME")]
Harness = Annotated[list[str] | None, typer.Option(help="Only this agent: pi, claude_code, …", metavar="NAME")]
Session = Annotated[list[str] | None, typer.Option(help="Only this session.", metavar="ID")]
Priority = Annotated[
    list[str] | None, typer.Option(help="Only observations of this priority: high, medium, low.", metavar="NAME")
]
Kind = Annotated[
    list[str] | None, typer.Option(help="Only observations of this kind: rule, decision, …", metavar="NAME")
]
Limit = Annotated[int, typer.Option(help="Maximum number of hits.", min=1, max=100, metavar="N")]
AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


def ask(
    settings: Settings,
    query: list[str],
    limit: int,
    first: str | None,
    last: str | None,
    **names: list[str] | None,
) -> tuple[Results, Filters]:
    """The hits and the filters of the options; an invalid option or an empty query ends the command."""
    with one_sentence(FilterError, UnknownProjectError, QueryError, code=MISUSED):
        chosen = parse_filters(settings, first, last, **names)
        return search(settings, " ".join(query), chosen, limit=limit), chosen
