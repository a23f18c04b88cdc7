"""A request to forget a session, a message, a line by its id, or words.

Forgetting a session or message removes only its own words, which others may also have said. A line or text is removed
wherever its words were said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import polars as pl
from pydantic import TypeAdapter

from memory_pipeline.errors import MisuseError
from memory_pipeline.lake.rows import typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.memory_file import PROPOSAL_ID
from memory_pipeline.recall.origin import NoSuchLineError, is_line, origin
from memory_pipeline.redaction import Redactor, Unredacted
from memory_pipeline.redaction.forgotten import MESSAGE, SESSION, Phrases, Runs, words_in
from memory_pipeline.sessions.forks import Lineage, left_out
from memory_pipeline.settings import Settings, workspace_salt
from memory_pipeline.text.sentences import clip

LINE, TEXT = "line", "text"
LEAST_CHARACTERS = 4
"""Minimum letters and digits of a text."""
FEW_WORDS = 3
"""Minimum words of a line that are removed everywhere; for a shorter line only its messages are."""
MAX_SHARE, ALWAYS = 0.1, 20
"""A text is refused if it occurs in more than a tenth of all messages, unless these are at most twenty."""
MAX_SHOWN = 60
_ID_FORM = re.compile(r"[a-z]+-[0-9a-f]{12,}|[nodwmrgs]-\d{8}-[0-9a-f]{6,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class CannotForgetError(MisuseError):
    """The name is unknown, or cannot be forgotten; the message says why and what to do."""


@dataclass
class ForgetRequest:
    """A user's request with all data for carrying it out. It contains the words, so it is stored only until then."""

    what: str
    """session, message, line or text."""
    name: str
    sessions: set[str] = field(default_factory=set)
    messages: set[str] = field(default_factory=set)
    """Ids of the messages to be removed entirely."""
    phrases: list[str] = field(default_factory=list)
    """Words to be removed everywhere."""
    told: list[str] = field(default_factory=list)
    """Original and derived texts, which identify entries of logs and caches."""
    days: set[str] = field(default_factory=set)
    """The days that the next run rebuilds."""
    files: set[str] = field(default_factory=set)
    """Keys of transcripts that contain it, which are not changed."""
    windows: set[str] = field(default_factory=set)
    rows: dict[str, set[str]] = field(default_factory=dict)
    """Ids of the rows to be removed, by table."""
    evidence: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The remaining evidence of proposals and fixes whose evidence changes."""
    points: set[str] = field(default_factory=set)
    answers: set[str] = field(default_factory=set)
    by_hand: bool = False
    """Whether lines that a user wrote are removed too."""

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """The request written by `to_json`. Raises `ValueError` for anything else."""
        return TypeAdapter(cls).validate_json(text)

    def to_json(self) -> bytes:
        """The request with its words, for the next call in case this one is killed."""
        return TypeAdapter(type(self)).dump_json(self)

    def add(self, table: str, ids: Iterable[str]) -> None:
        """Mark these rows of the table for removal."""
        self.rows[table] = self.ids(table) | set(ids)

    def ids(self, *tables: str) -> set[str]:
        """Ids of the rows of these tables to be removed."""
        return {one for table in tables for one in self.rows.get(table, ())}

    @cached_property
    def wanted(self) -> Phrases:
        return Phrases(self.phrases)

    @cached_property
    def repeated(self) -> Runs:
        return Runs([*self.phrases, *self.told])


def request_for(settings: Settings, named: str, *, by_hand: bool = False) -> ForgetRequest:
    """The request for a session, an id or a text. Raises `CannotForgetError`."""
    lake, name = Lake.from_settings(settings), named.strip()
    if not name:
        raise CannotForgetError("Nothing to forget was given: name a session, an id or a phrase.")
    request = _session(lake, name) or _message(lake, name) or _line(settings, name)
    if request is None:
        if PROPOSAL_ID.fullmatch(name) or _ID_FORM.fullmatch(name):
            raise CannotForgetError(
                f"There is no session, message or line {name}; `memory search --json` has the ids of messages and "
                "sessions, `memory review` those of proposals. Nothing was forgotten."
            )
        request = _text(settings, name)
    request.by_hand = by_hand
    return request


def _session(lake: Lake, name: str) -> ForgetRequest | None:
    """The request for a session by its id or the path of its file, with the sessions that it started."""
    files = lake.read("files", columns=["path", "session_id", "parent_id", "excluded", "days"])
    of_file = files.filter(pl.col("path") == name)["session_id"].drop_nulls().to_list()
    wanted = of_file[0] if of_file else name
    known = set(files["session_id"].drop_nulls()) | set(lake.read("sessions", columns=["session_id"])["session_id"])
    if wanted not in known:
        return None
    rows = typed_rows(files, Lineage)
    before = left_out(rows)
    excluded = [row | {"excluded": row["excluded"] or ("" if row["session_id"] != wanted else "x")} for row in rows]
    started = left_out(excluded) - before
    started |= {one for one in known if one.partition("/")[0] == wanted}
    return ForgetRequest(SESSION, wanted, sessions={wanted, *started})


def _message(lake: Lake, name: str) -> ForgetRequest | None:
    if not re.fullmatch(r"[a-z_]+-[0-9a-f]{16}", name):
        return None
    known = any(name in lake.read("messages", [day], ["message_id"])["message_id"] for day in lake.days("messages"))
    return ForgetRequest(MESSAGE, name, messages={name}) if known else None


def _line(settings: Settings, name: str) -> ForgetRequest | None:
    """The request for a line by its id: its own words and those of its evidence."""
    if not is_line(name):
        return None
    try:
        found = origin(settings, name)
    except NoSuchLineError:
        return None
    row, request = found["row"], ForgetRequest(LINE, name)
    own = [row.get(column) for column in ("text", "title", "narrative", "adds", "change")]
    log = ProposalLog(Lake.from_settings(settings))
    own += log.table("events").filter(proposal_id=name)["text"].to_list()
    said = [s for s in found["said"] if not s.get("missing")]
    for text in filter(None, [*own, *(s["quote"] for s in said if s["message_id"] != name)]):
        if len(words_in(text)) >= FEW_WORDS:
            request.phrases.append(text)
        request.told.append(text)
    if name.startswith("f-"):  # a pattern owns no words, only its occurrences
        request.phrases = [text for text in request.phrases if text in own]
    request.phrases = list(dict.fromkeys(request.phrases))
    request.messages = {
        s["message_id"]
        for s in said
        if s.get("session_id") and (name.startswith("f-") or len(words_in(s["quote"])) < FEW_WORDS)
    }
    offered = ("proposals", "remembered", "friction_fixes", "friction_clusters")
    tables = offered if found["table"] in offered else (found["table"],)
    for table in tables:
        if table != "segments":  # the words of a segment are removed, and its row is rebuilt
            request.add(table, [name])
    return request


def _text(settings: Settings, text: str) -> ForgetRequest:
    shown = clip(text, MAX_SHOWN)
    if sum(len(word.text) for word in words_in(text)) < LEAST_CHARACTERS:
        raise CannotForgetError(
            f"“{shown}” is too short to be forgotten wherever it occurs: give at least {LEAST_CHARACTERS} letters or "
            "digits, or the id of the message, which `memory search --json` prints."
        )
    plain = Redactor(workspace_salt(settings)) if settings.redact else Unredacted()
    redacted = plain.redact(text)  # in its stored form
    return ForgetRequest(TEXT, shown, phrases=list(dict.fromkeys([text, redacted])))


def refuse_common(request: ForgetRequest, said_in: int, messages: int) -> None:
    """Raise `CannotForgetError` for words that occur in much of the memory."""
    if request.phrases and said_in > ALWAYS and said_in > messages * MAX_SHARE:
        raise CannotForgetError(
            f"“{request.name}” occurs in {said_in:,} of {messages:,} messages, too many to forget at once. Give a "
            f"longer phrase, or the id of a session or message."
        )
