"""`memory search` and `memory recall`: the hits for a query, and an answer made of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from memory_pipeline.cli.console import AsJson, err, print_json, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.embeddings.index import Filters
from memory_pipeline.recall.answer import Answer, describe_source, extractive_answer, written_answer
from memory_pipeline.recall.filters import describe_filters, parse_filters
from memory_pipeline.recall.search import Found, Results
from memory_pipeline.recall.search import search as search_index
from memory_pipeline.recall.usage import log_use
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip

MAX_SHOWN = 300
"""Maximum characters of a hit; --json has all of it."""
NEAREST = 3
"""Maximum number of hits shown when none seems to answer the question."""
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


def search(
    query: Query,
    first: FromDay = None,
    last: ToDay = None,
    project: Project = None,
    harness: Harness = None,
    session: Session = None,
    priority: Priority = None,
    kind: Kind = None,
    limit: Limit = 10,
    as_json: AsJson = False,
) -> None:
    """List messages, observations and approved lines for a query.

    Searches all sessions by words and by meaning, including those too short to be observed. `memory show ID` prints
    the messages around a hit.
    """
    settings = active_settings()
    names = {"project": project, "harness": harness, "session_id": session, "priority": priority, "kind": kind}
    found, filters = _ask(settings, query, limit, first, last, **names)
    log_use(settings, "search", query=found.query, shown=[hit.source_id for hit in found.hits])
    _print_notes(found.notes)
    if as_json:
        print_json(vars(found) | {"hits": [_fields(hit) for hit in found.hits]})
        return
    _print_hits(found.hits)
    if not found.hits:
        say(f"Nothing found{describe_filters(settings, filters)}.")


def recall(
    query: Query,
    first: FromDay = None,
    last: ToDay = None,
    project: Project = None,
    harness: Harness = None,
    session: Session = None,
    priority: Priority = None,
    kind: Kind = None,
    limit: Limit = 8,
    quotes: Annotated[bool, typer.Option("--quotes", help="Only quotes, even if a model is set.")] = False,
    as_json: AsJson = False,
) -> None:
    """Answer a question from past sessions, with citations.

    The answer consists of quotes, newest first if several match; if the reflector has a model, it writes the answer,
    each sentence with its sources.
    """
    settings = active_settings()
    names = {"project": project, "harness": harness, "session_id": session, "priority": priority, "kind": kind}
    found, filters = _ask(settings, query, limit, first, last, **names)
    answer = extractive_answer(found)
    if settings.reflector.model and answer.quotes and not quotes:
        from memory_pipeline.workspace.workspace import Workspace  # imports polars, which quotes do not need

        answer = written_answer(Workspace.open(settings), answer)
    shown = [quote.hit.source_id for quote in answer.quotes]
    log_use(settings, "recall", query=found.query, shown=shown, cited=answer.cited)
    _print_notes(answer.notes)
    if as_json:
        given = [{"number": i, "quote": q.text} | _fields(q.hit) for i, q in enumerate(answer.quotes, 1)]
        print_json({"query": answer.query, "answer": answer.written, "quotes": given, "notes": answer.notes})
    elif answer.quotes:
        _print_answer(answer)
    else:
        say(f"Nothing found{describe_filters(settings, filters)}." + (" The nearest hits:\n" if found.hits else ""))
        _print_hits(found.hits[:NEAREST])


def _ask(
    settings: Settings, query: list[str], limit: int, first: str | None, last: str | None, **names: list[str] | None
) -> tuple[Results, Filters]:
    """The hits and the filters of the options; an invalid option or an empty query ends the command."""
    chosen = parse_filters(settings, first, last, **names)
    return search_index(settings, " ".join(query), chosen, limit=limit), chosen


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        err.print(note, style="yellow", soft_wrap=True)


def _print_hits(hits: Sequence[Found]) -> None:
    for hit in hits:
        say(f"{hit.score:.2f}  {describe_source(hit)}", "dim")
        say(f"      {clip(hit.text, MAX_SHOWN)}")
        say(f"      {hit.source_id}", "dim")


def _print_answer(answer: Answer) -> None:
    for sentence in answer.written:
        say(sentence)
    if answer.written:
        say("")
    for number, quote in enumerate(answer.quotes, 1):
        say(f"[{number}] {quote.text}")
        say(f"    {describe_source(quote.hit)} · {quote.hit.source_id}", "dim")


def _fields(hit: Found) -> dict[str, object]:
    return {name: value for name, value in vars(hit).items() if value not in ("", 0)}
