"""Messages of users and models around a message."""

from datetime import date
from typing import Any

import polars as pl

from memory_pipeline.embeddings.passages import spoken
from memory_pipeline.lake.store import Lake


def messages_around(lake: Lake, identifier: str, around: int) -> list[dict[str, Any]]:
    """The messages around the message with this id, or all messages of the session with this id. Empty for an unknown
    id."""
    days = lake.days("messages")
    for day in sorted(days, reverse=True):
        said = spoken(lake.read("messages", [day])).filter(pl.col("text").str.strip_chars() != "")
        inside = said.filter(pl.col("session_id") == identifier)
        if inside.height:
            whole = [lake.read("messages", [d]).filter(pl.col("session_id") == identifier) for d in sorted(days)]
            return spoken(pl.concat(whole)).sort("said_at", "source_line").to_dicts()
        hit = said.filter(pl.col("message_id") == identifier)
        if hit.height:
            session = said.filter(pl.col("session_id") == hit["session_id"][0]).sort("said_at", "source_line")
            at = session["message_id"].to_list().index(identifier)
            return session.slice(max(0, at - around), around + 1 + min(at, around)).to_dicts()
    return []


def day_not_kept(lake: Lake, identifier: str) -> date | None:
    """The last day of a message or session whose text was deleted by retention; None if there is none."""
    for day in sorted(lake.days("messages"), reverse=True):
        ids = lake.read("messages", [day], ["message_id", "session_id"]) if lake.is_retired("messages", day) else None
        if ids is not None and (identifier in ids["message_id"] or identifier in ids["session_id"]):
            return day
    return None
