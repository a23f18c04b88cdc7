"""The screens for reading: hits of a search, and a session as a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import polars as pl

from memory_pipeline.embeddings.messages import spoken
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.context import Context, contexts
from memory_pipeline.recall.filters import describe_filters, parse_filters
from memory_pipeline.recall.origin import is_line
from memory_pipeline.recall.search import MEMORY_LINE, Found, search
from memory_pipeline.recall.usage import log_use
from memory_pipeline.settings import Settings

HITS = 10
MESSAGES_SHOWN = 200
"""The number of messages of a session that a page shows."""


class PageNotFoundError(MemoryPipelineError):
    """The requested page does not exist."""


@dataclass(frozen=True)
class Hit:
    """A hit with the words around it."""

    found: Found
    around: Context | None

    @property
    def is_line(self) -> bool:
        """Whether the hit is a line, whose origin `why` shows, rather than a message."""
        return is_line(self.found.source_id)

    @property
    def speaker(self) -> str:
        """The speaker, or the kind of line."""
        if self.found.record == MEMORY_LINE:
            return f"MEMORY.md, {self.found.kind}"
        if self.found.role:
            return {"user": "you", "injected": "a program"}.get(self.found.role, self.found.role)
        return f"{self.found.record} {self.found.kind}".strip()


def search_screen(settings: Settings, asked: Mapping[str, str]) -> dict[str, Any]:
    """The search screen; without a query nothing is searched. The notes are limits of the answer, or the reason why
    there is none, such as an invalid query."""
    lake = Lake.from_settings(settings)
    known = lake.read("sessions", columns=["project", "harness"])
    projects, harnesses = (sorted(set(known[name].drop_nulls())) for name in ("project", "harness"))
    screen = {"asked": asked, "projects": projects, "harnesses": harnesses, "hits": (), "notes": (), "nothing": ""}
    if not asked.get("q", "").strip():
        return screen
    given = {name: [value] for name in ("project", "harness", "priority", "kind") if (value := asked.get(name))}
    try:
        filters = parse_filters(settings, asked.get("from") or None, asked.get("to") or None, **given)
        results = search(settings, asked["q"], filters, limit=HITS)
    except MemoryPipelineError as error:
        return screen | {"notes": [f"{error}"]}
    log_use(settings, "search", query=results.query, shown=[hit.source_id for hit in results.hits])
    messages = {hit.source_id: date.fromisoformat(hit.day) for hit in results.hits if hit.role and hit.day}
    around = contexts(lake, set(messages.values()), set(messages))
    hits = [Hit(hit, around.get(hit.source_id)) for hit in results.hits]
    nothing = "" if hits else f"Nothing found{describe_filters(settings, filters)}."
    return screen | {"hits": hits, "notes": results.notes, "is_likely": results.is_likely, "nothing": nothing}


def session_screen(settings: Settings, asked: Mapping[str, str]) -> dict[str, Any]:
    """A session by its id: a page of the messages of users and models, oldest first, with the observations by the first
    message of their evidence. The message `at` is on the page, and shown in full. Raises `PageNotFoundError`."""
    lake, session_id, at = Lake.from_settings(settings), asked.get("id", ""), asked.get("at", "")
    rows = lake.read("sessions").filter(pl.col("session_id") == session_id).sort("day")
    if rows.is_empty():
        raise PageNotFoundError("There is no such session; it may have been forgotten. Use the search to find others.")
    days = rows["day"].to_list()
    not_kept = [day for day in days if lake.is_retired("messages", day)]  # speaker and time are still shown
    said = spoken(lake.read("messages", days).filter(pl.col("session_id") == session_id)).filter(
        (pl.col("text").str.strip_chars() != "") | pl.col("day").is_in(not_kept),
    )
    said = said.unique("message_id", keep="first", maintain_order=True).sort("said_at", "source_line")
    ids = said["message_id"].to_list()
    first = asked.get("from", "0")
    start = ids.index(at) // MESSAGES_SHOWN * MESSAGES_SHOWN if at in ids else int(first) if first.isdecimal() else 0
    page = said.slice(start, MESSAGES_SHOWN).to_dicts()
    columns = ["session_id", "observation_id", "priority", "kind", "text", "evidence"]
    observed = lake.read("observations", days, columns).filter(pl.col("session_id") == session_id)
    notes: dict[str, list[dict[str, Any]]] = {}
    for row in observed.to_dicts():
        if row["evidence"]:
            notes.setdefault(row["evidence"][0]["message_id"], []).append(row)
    session = rows.row(0, named=True)  # of several days the first
    shown = {"messages": page, "observations": notes, "start": start, "total": len(ids)}
    return {"session": session, "days": days, "at": at} | shown
