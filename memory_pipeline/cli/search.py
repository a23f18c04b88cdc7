"""`memory search`: the hits for a query."""

from collections.abc import Sequence

from memory_pipeline.cli import asking
from memory_pipeline.cli.console import err, print_json, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.recall.answer import describe_source
from memory_pipeline.recall.filters import describe_filters
from memory_pipeline.recall.search import Found
from memory_pipeline.recall.usage import log_use
from memory_pipeline.text.sentences import clip

MAX_SHOWN = 300
"""Maximum characters of a hit; --json has all of it."""


def search(
    query: asking.Query,
    first: asking.FromDay = None,
    last: asking.ToDay = None,
    project: asking.Project = None,
    harness: asking.Harness = None,
    session: asking.Session = None,
    priority: asking.Priority = None,
    kind: asking.Kind = None,
    limit: asking.Limit = 10,
    as_json: asking.AsJson = False,
) -> None:
    """List messages, observations and approved lines for a query.

    Searches all sessions by words and by meaning, including those too short to be observed. `memory show ID` prints
    the messages around a hit.
    """
    settings = active_settings()
    names = {"project": project, "harness": harness, "session_id": session, "priority": priority, "kind": kind}
    found, filters = asking.ask(settings, query, limit, first, last, **names)
    log_use(settings, "search", query=found.query, shown=[hit.source_id for hit in found.hits])
    for note in found.notes:
        err.print(note, style="yellow", soft_wrap=True)
    if as_json:
        print_json(vars(found) | {"hits": [hit_fields(hit) for hit in found.hits]})
        return
    print_hits(found.hits)
    if not found.hits:
        say(f"Nothing found{describe_filters(settings, filters)}.")


def print_hits(hits: Sequence[Found]) -> None:
    for hit in hits:
        say(f"{hit.score:.2f}  {describe_source(hit)}", "dim")
        say(f"      {clip(hit.text, MAX_SHOWN)}")
        say(f"      {hit.source_id}", "dim")


def hit_fields(hit: object) -> dict[str, object]:
    return {name: value for name in hit.__dataclass_fields__ if (value := getattr(hit, name)) not in ("", 0)}  # type: ignore[attr-defined]
