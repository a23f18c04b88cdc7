"""`memory recall`: an answer with its sources."""

from typing import Annotated

import typer

from memory_pipeline.cli import asking
from memory_pipeline.cli.console import err, print_json, say
from memory_pipeline.cli.search import hit_fields, print_hits
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.recall.answer import Answer, describe_source, extractive_answer, written_answer
from memory_pipeline.recall.filters import describe_filters
from memory_pipeline.recall.usage import log_use

NEAREST = 3
"""Maximum number of hits shown when none seems to answer the question."""


def recall(
    query: asking.Query,
    first: asking.FromDay = None,
    last: asking.ToDay = None,
    project: asking.Project = None,
    harness: asking.Harness = None,
    session: asking.Session = None,
    priority: asking.Priority = None,
    kind: asking.Kind = None,
    limit: asking.Limit = 8,
    quotes: Annotated[bool, typer.Option("--quotes", help="Only quotes, even if a model is set.")] = False,
    as_json: asking.AsJson = False,
) -> None:
    """Answer a question from past sessions, with citations.

    The answer consists of quotes, newest first if several match; if the reflector has a model, it writes the answer,
    each sentence with its sources.
    """
    settings = active_settings()
    names = {"project": project, "harness": harness, "session_id": session, "priority": priority, "kind": kind}
    found, filters = asking.ask(settings, query, limit, first, last, **names)
    answer = extractive_answer(found)
    if settings.reflector.model and answer.quotes and not quotes:
        from memory_pipeline.workspace.workspace import Workspace  # imports polars, which quotes do not need

        answer = written_answer(Workspace.open(settings), answer)
    shown = [quote.hit.source_id for quote in answer.quotes]
    log_use(settings, "recall", query=found.query, shown=shown, cited=answer.cited)
    for note in answer.notes:
        err.print(note, style="yellow", soft_wrap=True)
    if as_json:
        print_json(_fields(answer))
        return
    if not answer.quotes:
        say(f"Nothing found{describe_filters(settings, filters)}." + (" The nearest hits:\n" if found.hits else ""))
        print_hits(found.hits[:NEAREST])
        return
    _print(answer)


def _print(answer: Answer) -> None:
    for sentence in answer.written:
        say(sentence)
    if answer.written:
        say("")
    for number, quote in enumerate(answer.quotes, 1):
        say(f"[{number}] {quote.text}")
        say(f"    {describe_source(quote.hit)} · {quote.hit.source_id}", "dim")


def _fields(answer: Answer) -> dict[str, object]:
    quotes = [{"number": i, "quote": q.text} | hit_fields(q.hit) for i, q in enumerate(answer.quotes, 1)]
    return {"query": answer.query, "answer": list(answer.written), "quotes": quotes, "notes": list(answer.notes)}
