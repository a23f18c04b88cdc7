"""The conversation around a line's evidence: a correction is meaningless without it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from typing import TypedDict

import polars as pl

from memory_pipeline.lake.rows import typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.text.sentences import clip

TURNS = ("user", "assistant")
NOT_KEPT = "its text is no longer kept"
"""The text that replaces messages deleted by retention; see the setting `retention.messages`."""
_COLUMNS = ("session_id", "message_id", "role", "said_at", "untimed", "source_line", "text", "voided", "answered")


@dataclass(frozen=True)
class Context:
    """One line before and one after, without control or hidden characters; empty if there is none."""

    before: str
    """The turn before the message, or the question, plan or call that it answers."""
    after: str
    is_answer: bool
    """Whether it answers a question, plan or call."""


class Turn(TypedDict):
    """A message of a conversation, unabridged."""

    session_id: str
    message_id: str
    role: str
    said_at: datetime
    untimed: str | None
    text: str


def contexts(lake: Lake, days: Iterable[date], message_ids: Collection[str]) -> dict[str, Context]:
    """The context of each of these messages; tools and withdrawn turns are left out."""
    if not message_ids:
        return {}
    turns = _session_turns(lake, days, message_ids).with_columns(
        pl.col("text").shift(1).over("session_id").alias("before"),
        pl.col("text").shift(-1).over("session_id").alias("after"),
    )
    return {
        m["message_id"]: Context(
            one_line(m["answered"] or m["before"] or ""), one_line(m["after"] or ""), bool(m["answered"])
        )
        for m in turns.filter(pl.col("message_id").is_in(list(message_ids))).iter_rows(named=True)
    }


def conversations(lake: Lake, days: Iterable[date], message_ids: Collection[str], around: int) -> dict[str, list[Turn]]:
    """For each id, the message with `around` turns before and after it, oldest first; tools and withdrawn turns are
    left out."""
    if not message_ids:
        return {}
    turns = _session_turns(lake, days, message_ids).with_row_index("at")
    found = {}
    for at, session, message in (
        turns.filter(pl.col("message_id").is_in(list(message_ids))).select("at", "session_id", "message_id").iter_rows()
    ):
        near = turns.slice(max(0, at - around), min(at, around) + 1 + around).filter(pl.col("session_id") == session)
        found[message] = typed_rows(near.select(*Turn.__annotations__), Turn)
    return found


def _session_turns(lake: Lake, days: Iterable[date], message_ids: Collection[str]) -> pl.DataFrame:
    """The turns of the sessions of these messages, in order, and the messages themselves even if they are not turns."""
    messages = lake.read("messages", days, _COLUMNS)
    wanted = pl.col("message_id").is_in(list(message_ids))
    sessions = messages.filter(wanted)["session_id"].unique()
    said = pl.col("role").is_in(TURNS) & (pl.col("text").str.strip_chars() != "") & ~pl.col("voided").fill_null(False)
    own = pl.col("session_id").is_in(sessions.implode())
    turns = messages.filter(own, wanted | said).unique("message_id", keep="first", maintain_order=True)
    return turns.sort("session_id", "said_at", "source_line", maintain_order=True)


def text_before(context: Context, length: int) -> str:
    """At most `length` characters of the turn before: its end, which reports or asks something; the beginning of a
    question."""
    text = context.before
    if context.is_answer or len(text) <= length:
        return clip(text, length)
    return f"…{text[-length:].partition(' ')[2] or text[-length:]}"
