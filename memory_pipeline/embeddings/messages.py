"""The stage that writes a day's rows of `message_embeddings`, and its points in the collection of messages.

A message, or a part of a long one, is a passage, which is found by its words, by surrounding words, and by its meaning.
Each session of the day also has a point with all its words and its date, as questions often describe a session.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import groupby
from typing import Any

import polars as pl

from memory_pipeline.embeddings.index import CONTEXT, MESSAGES, PASSAGE, SESSION, WHOLE_SESSION, WORDS, Point, weigh
from memory_pipeline.embeddings.stage import (
    EmbeddingsStage,
    IndexStage,
    Row,
    SummaryEmbeddingsStage,
    point_id,
    switch_when_complete,
)
from memory_pipeline.harnesses.speakers import is_prompt
from memory_pipeline.lake.rows import MessageRow, SessionRow, typed_rows
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.text.terms import terms
from memory_pipeline.workspace.workspace import Workspace

MAX_CHARACTERS = 1_000
"""Maximum characters of a passage: about the input limit of the bundled model (256 tokens)."""
MIN_CHARACTERS = 400
"""Minimum characters of a passage, which is cut at the last end of a paragraph, line or sentence after these."""
SPEAKERS = ("user", "assistant")
PROGRAM = "injected"
"""The role of text that a program or harness inserted."""
_ENDS = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"(?<=[.!?。！？])\s*"))


class MessageEmbeddingsStage(IndexStage):
    """The stage that indexes all messages of a day, including those of sessions that are too short to be observed.

    The lexical index needs no model: without one, or while it cannot be loaded, the points have sparse vectors only and
    the day waits for the rest. Existing vectors are not computed again.
    """

    tables = ("message_embeddings",)
    inputs = ("messages", "sessions")
    records = (PASSAGE, WHOLE_SESSION)
    collection = MESSAGES
    needs_model = False

    def days_read(self, day: date) -> list[date]:
        return [day]

    def points(self, day: date) -> list[Point]:
        """The points of the messages of the day and of its sessions, without dense vectors; none for a day that
        retention has removed from search."""
        if self.lake.is_retired(self.tables[0], day):
            return []
        found = self.lake.read("sessions", [day]).unique("session_id", keep="first")
        sessions = {row["session_id"]: row for row in typed_rows(found, SessionRow)}
        return points_of(self.lake.read("messages", [day]), sessions, self.settings.owner)

    def _has_vector(self, point: Point, row: Row | None) -> bool:
        return super()._has_vector(point, row) and row is not None and row["content_hash"] == self._hash(point)

    def _reusable(self, point: Point, old: Mapping[str, Row]) -> None:
        """None: a point names its neighbours, so the whole day is replaced."""

    def _hash(self, point: Point) -> str:
        return hashlib.sha256(point.payload["text"].encode()).hexdigest()

    def _row(self, day: date, point: Point, has_vector: bool) -> Row:
        return {
            "day": day,
            "point_id": point.point_id,
            "record": point.payload["record"],
            "source_id": point.payload["source_id"],
            "session_id": point.payload["session_id"],
            "start": point.payload.get("start", 0),
            "end": point.payload.get("end", 0),
            "model": self.settings.embedding_model if has_vector else None,
            "dimension": self.encoder.dimension if has_vector else 0,
            "content_hash": self._hash(point),
        }


def rebuild(workspace: Workspace, days: Iterable[date], report: Callable[[date], None]) -> None:
    """Fill the collections of the configured model from the tables, in the given order of days. If interrupted, the
    next run does the rest."""
    stages = [
        kind.from_workspace(workspace) for kind in (EmbeddingsStage, SummaryEmbeddingsStage, MessageEmbeddingsStage)
    ]
    for day in days:
        for stage in stages:
            bring_up_to_date(stage, workspace.lake, day)
        report(day)
    switch_when_complete(workspace)


def spoken(messages: pl.DataFrame) -> pl.DataFrame:
    """The messages of users and models, and a program's prompts in a session without a user; text inserted by harnesses
    is left out."""
    role = pl.col("role")
    attended = messages.filter(role == "user")["session_id"].unique().to_list()
    programs = messages.filter((role == PROGRAM) & ~pl.col("session_id").is_in(attended))
    prompts = programs.filter(pl.Series([is_prompt(text) for text in programs["text"]], dtype=pl.Boolean))
    said = role.is_in(SPEAKERS)
    return messages.filter(said | pl.col("message_id").is_in(prompts["message_id"].to_list()))


def points_of(messages: pl.DataFrame, sessions: Mapping[str, SessionRow], owner: str) -> list[Point]:
    """The points of a day's passages and sessions, without dense vectors: what users, models and, in sessions without a
    user, programs said, without tool output and withdrawn messages."""
    said = spoken(messages).filter(~pl.col("voided").fill_null(False), pl.col("text").str.strip_chars() != "")
    rows = typed_rows(said.sort("session_id", "said_at", "source_line", "message_id"), MessageRow)
    points: list[Point] = []
    for session_id, group in groupby(rows, key=lambda row: row["session_id"]):
        passages = [passage for message in group for passage in _passages(message)]
        points += _points_of_session(passages, sessions.get(session_id), owner)
    return points


def _passages(message: MessageRow) -> Iterator[tuple[MessageRow, int, int]]:
    """The passages of a message, by their first and last characters."""
    text, start = message["text"], 0
    while len(text) - start > MAX_CHARACTERS:
        end = start + _cut_at(text[start : start + MAX_CHARACTERS])
        yield message, start, end
        start = end
    if text[start:].strip():
        yield message, start, len(text)


def _cut_at(part: str) -> int:
    for kind in _ENDS:
        ends = [m.end() for m in kind.finditer(part) if m.end() >= MIN_CHARACTERS]
        if ends:
            return ends[-1]
    space = part.rfind(" ", MIN_CHARACTERS)
    return space + 1 if space > 0 else len(part)


def _points_of_session(
    passages: Sequence[tuple[MessageRow, int, int]], session: SessionRow | None, owner: str
) -> Iterator[Point]:
    """The points of the passages of a session on a day, and then that of the session."""
    day, session_id = passages[0][0]["day"], passages[0][0]["session_id"]
    shared = {
        "date": f"{day}",
        "session_id": session_id,
        "harness": session["harness"] if session else "",
        "project": (session["project"] if session else None) or "",
        "session_name": session["name"] if session else "",
        "owner": owner,
    }
    words = [terms(message["text"][start:end]) for message, start, end in passages]
    names = ["", *(point_id(f"{session_id}/{m['message_id']}#{start}") for m, start, _ in passages), ""]
    for i, passage in enumerate(passages):
        around = [t for near in words[max(i - 1, 0) : i + 2] for t in near]
        sparse = {WORDS: weigh(words[i], WORDS), CONTEXT: weigh(around, CONTEXT)}
        neighbours = {"position": i, "before": names[i], "after": names[i + 2]}
        yield Point(names[i + 1], None, shared | _passage_payload(*passage) | neighbours, sparse)
    title = " ".join(filter(None, (session["name"], session["project"]))) if session else ""
    everything = [*_date_terms(day), *terms(title), *(t for w in words for t in w)]
    whole = {"record": WHOLE_SESSION, "source_id": session_id, "text": title, "passages": len(passages)}
    yield Point(point_id(f"{session_id}@{day}"), None, shared | whole, {SESSION: weigh(everything, SESSION)})


def _passage_payload(message: MessageRow, start: int, end: int) -> dict[str, Any]:
    return {
        "record": PASSAGE,
        "source_id": message["message_id"],
        "role": message["role"],
        "timestamp": "" if message["untimed"] else message["said_at"].isoformat(),
        "start": start,
        "end": end,
        "text": message["text"][start:end],
    }


def _date_terms(day: date) -> list[str]:
    """The terms of a date in a query: its month by name, its day, its year, and the whole date."""
    return [*terms(f"{day:%d %B %Y} {day:%A} {day}"), f"{day.day}"]
