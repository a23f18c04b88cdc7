"""Passages of a day's messages, which are found by their words, by surrounding words, and by their meaning.

A passage is a message, or a part of a long one. Each session of the day also has a point with all its words and its
date, as questions often describe a session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import polars as pl

from memory_pipeline.embeddings.index import CONTEXT, PASSAGE, SESSION, WHOLE_SESSION, WORDS, Point
from memory_pipeline.embeddings.sparse import weigh
from memory_pipeline.harnesses.speakers import is_prompt
from memory_pipeline.lake.rows import MessageRow, SessionRow, typed_rows
from memory_pipeline.text.terms import terms

MAX_CHARACTERS = 1_000
"""Maximum characters of a passage: about the input limit of the bundled model (256 tokens)."""
MIN_CHARACTERS = 400
"""Minimum characters of a passage, which is cut at the last end of a paragraph, line or sentence after these."""
SPEAKERS = ("user", "assistant")
PROGRAM = "injected"
"""The role of text that a program or harness inserted."""
_ENDS = (re.compile(r"\n\s*\n"), re.compile(r"\n"), re.compile(r"(?<=[.!?。！？])\s*"))


@dataclass(frozen=True)
class Passage:
    """A part of a message; `start` and `end` are offsets into the message's text, `position` counts the passages of its
    session on that day."""

    day: date
    session_id: str
    message_id: str
    role: str
    said_at: str
    position: int
    start: int
    end: int
    text: str

    @property
    def point_id(self) -> str:
        return str(uuid5(NAMESPACE_URL, f"{self.session_id}/{self.message_id}#{self.start}"))


def spoken(messages: pl.DataFrame) -> pl.DataFrame:
    """The messages of users and models, and a program's prompts in a session without a user; text inserted by harnesses
    is left out."""
    role = pl.col("role")
    attended = messages.filter(role == "user")["session_id"].unique().to_list()
    programs = messages.filter((role == PROGRAM) & ~pl.col("session_id").is_in(attended))
    prompts = programs.filter(pl.Series([is_prompt(text) for text in programs["text"]], dtype=pl.Boolean))
    said = role.is_in(SPEAKERS)
    return messages.filter(said | pl.col("message_id").is_in(prompts["message_id"].to_list()))


def passages_of(messages: pl.DataFrame) -> list[Passage]:
    """The passages of users, models and, in sessions without a user, programs, by session and in order, without tool
    output and withdrawn messages."""
    said = spoken(messages).filter(~pl.col("voided").fill_null(False), pl.col("text").str.strip_chars() != "")
    rows = typed_rows(said.sort("session_id", "said_at", "source_line", "message_id"), MessageRow)
    found: list[Passage] = []
    for session_id, group in groupby(rows, key=lambda row: row["session_id"]):
        position = 0
        for message in group:
            for start, end in _cut(message["text"]):
                at = "" if message["untimed"] else message["said_at"].isoformat()
                found.append(
                    Passage(
                        message["day"],
                        session_id,
                        message["message_id"],
                        message["role"],
                        at,
                        position,
                        start,
                        end,
                        message["text"][start:end],
                    )
                )
                position += 1
    return found


def points_of(passages: Sequence[Passage], sessions: Mapping[str, SessionRow], owner: str) -> list[Point]:
    """The points of a day's passages and sessions, without dense vectors."""
    points = []
    for session_id, group in groupby(passages, key=lambda p: p.session_id):
        inside = list(group)
        session = sessions.get(session_id)
        words = [terms(passage.text) for passage in inside]
        shared = _shared_payload(inside[0], session, owner)
        for i, passage in enumerate(inside):
            around = [t for near in words[max(i - 1, 0) : i + 2] for t in near]
            sparse = {WORDS: weigh(words[i], WORDS), CONTEXT: weigh(around, CONTEXT)}
            points.append(Point(passage.point_id, None, shared | _payload(passage, inside, i), sparse))
        everything = [*_date_terms(inside[0].day), *terms(_title(session)), *(t for w in words for t in w)]
        name = str(uuid5(NAMESPACE_URL, f"{session_id}@{inside[0].day}"))
        head = {"record": WHOLE_SESSION, "source_id": session_id, "text": _title(session), "passages": len(inside)}
        points.append(Point(name, None, shared | head, {SESSION: weigh(everything, SESSION)}))
    return points


def _cut(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while len(text) - start > MAX_CHARACTERS:
        end = start + _cut_at(text[start : start + MAX_CHARACTERS])
        yield start, end
        start = end
    if text[start:].strip():
        yield start, len(text)


def _cut_at(part: str) -> int:
    for kind in _ENDS:
        ends = [m.end() for m in kind.finditer(part) if m.end() >= MIN_CHARACTERS]
        if ends:
            return ends[-1]
    space = part.rfind(" ", MIN_CHARACTERS)
    return space + 1 if space > 0 else len(part)


def _shared_payload(passage: Passage, session: SessionRow | None, owner: str) -> dict[str, Any]:
    return {
        "date": f"{passage.day}",
        "session_id": passage.session_id,
        "harness": session["harness"] if session else "",
        "project": (session["project"] if session else None) or "",
        "session_name": session["name"] if session else "",
        "owner": owner,
    }


def _payload(passage: Passage, inside: Sequence[Passage], i: int) -> dict[str, Any]:
    return {
        "record": PASSAGE,
        "source_id": passage.message_id,
        "role": passage.role,
        "timestamp": passage.said_at,
        "position": passage.position,
        "start": passage.start,
        "end": passage.end,
        "text": passage.text,
        "before": inside[i - 1].point_id if i else "",
        "after": inside[i + 1].point_id if i + 1 < len(inside) else "",
    }


def _title(session: SessionRow | None) -> str:
    return " ".join(filter(None, (session["name"], session["project"]))) if session else ""


def _date_terms(day: date) -> list[str]:
    """The terms of a date in a query: its month by name, its day, its year, and the whole date."""
    return [*terms(f"{day:%d %B %Y} {day:%A} {day}"), f"{day.day}"]
