"""What is to be forgotten: a session, a message, a line by its id, or words, and what of them every room looks for.

A session or message is forgotten with its own words: what others say too stays theirs. A line or a text is forgotten
wherever its words were said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import polars as pl

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.lake.rows import typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.memory_file import PROPOSAL_ID
from memory_pipeline.recall.origin import NoSuchLineError, is_line, origin
from memory_pipeline.redaction import Redactor, Unredacted
from memory_pipeline.redaction.forgotten import MESSAGE, SESSION, Phrases, Runs, words_in
from memory_pipeline.sessions.forks import Lineage, left_out
from memory_pipeline.settings import Settings, salt_of
from memory_pipeline.text.sentences import clip

LINE, TEXT = "line", "text"
LEAST_CHARACTERS = 4
"""Of the words of a text, without what stands between them."""
FEW_WORDS = 3
"""The words that carry a line are forgotten wherever they were said; of fewer than these only the message goes."""
MAX_SHARE, ALWAYS = 0.1, 20
"""A text is refused that stands in more than a tenth of all messages, unless these are at most twenty."""
MAX_SHOWN = 60
_OWN_FORM = re.compile(
    r"[a-z]+-[0-9a-f]{12,}|[nodwmrgs]-\d{8}-[0-9a-f]{6,}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)


class CannotForgetError(MemoryPipelineError):
    """What is named is not known, or cannot be forgotten so; the message says why and what to do."""


@dataclass
class Aim:
    """It holds the words, so that it is kept only until all is done."""

    what: str
    """session, message, line or text."""
    name: str
    sessions: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    """Ids of those that go as a whole."""
    phrases: list[str] = field(default_factory=list)
    """Words that go wherever they stand."""
    told: list[str] = field(default_factory=list)
    """What was said and what was made of it, by which it is known in logs and caches."""
    days: list[str] = field(default_factory=list)
    """That are made anew by the next run."""
    files: list[str] = field(default_factory=list)
    """Transcripts that say it, as the catalogue names them; they stay."""
    windows: list[str] = field(default_factory=list)
    rows: dict[str, list[str]] = field(default_factory=dict)
    """Ids of the rows that go, by table."""
    evidence: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The evidence that is left to proposals and fixes, where it is less or elsewhere than before."""
    points: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    by_hand: bool = False
    """Whether lines that a user wrote go too."""

    @cached_property
    def wanted(self) -> Phrases:
        return Phrases(self.phrases)

    @cached_property
    def repeated(self) -> Runs:
        return Runs([*self.phrases, *self.told])


def aim_at(settings: Settings, named: str, *, by_hand: bool = False) -> Aim:
    """What is meant by a session, an id or a text. Raises `CannotForgetError`."""
    lake, name = Lake.from_settings(settings), named.strip()
    if not name:
        raise CannotForgetError("Nothing is named: give a session, an id or a text.")
    aim = _session(lake, name) or _message(lake, name) or _line(settings, name)
    if aim is None:
        if PROPOSAL_ID.fullmatch(name) or _OWN_FORM.fullmatch(name):
            raise CannotForgetError(
                f"There is no session, message or line {name}; `memory search --json` has the ids of messages and "
                "sessions, `memory review` those of proposals. Nothing was forgotten."
            )
        aim = _text(settings, name)
    aim.by_hand = by_hand
    return aim


def _session(lake: Lake, name: str) -> Aim | None:
    """By its id, or by the path of its file."""
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
    return Aim(SESSION, wanted, sessions=sorted({wanted, *started}))


def _message(lake: Lake, name: str) -> Aim | None:
    if not re.fullmatch(r"[a-z_]+-[0-9a-f]{16}", name):
        return None
    known = any(name in lake.read("messages", [day], ["message_id"])["message_id"] for day in lake.days("messages"))
    return Aim(MESSAGE, name, messages=[name]) if known else None


def _line(settings: Settings, name: str) -> Aim | None:
    """By its id: its own words and those that carry it."""
    if not is_line(name):
        return None
    try:
        found = origin(settings, name)
    except NoSuchLineError:
        return None
    row, aim = found["row"], Aim(LINE, name)
    own = [row.get(column) for column in ("text", "title", "narrative", "adds", "change")]
    log = ProposalLog(Lake.from_settings(settings))
    for table in ("decisions", "promotions"):
        own += log.table(table).filter(proposal_id=name)["text"].to_list()
    said = [s for s in found["said"] if not s.get("missing")]
    for text in filter(None, [*own, *(s["quote"] for s in said if s["message_id"] != name)]):
        if _count(text) >= FEW_WORDS:
            aim.phrases.append(text)
        aim.told.append(text)
    of_messages = [s for s in said if s.get("session_id")]
    if name.startswith("f-"):  # of what recurs not the words are its own, but the places
        aim.phrases = [text for text in aim.phrases if text in own]
        aim.messages = [s["message_id"] for s in of_messages]
    else:
        aim.messages = [s["message_id"] for s in of_messages if _count(s["quote"]) < FEW_WORDS]
    aim.phrases, aim.messages = _unique(aim.phrases), _unique(aim.messages)
    if found["table"] in ("proposals", "remembered", "friction_clusters", "friction_fixes"):
        for table in ("proposals", "remembered", "friction_fixes", "friction_clusters"):
            aim.rows[table] = [name]
    else:
        aim.rows[found["table"]] = [name]
    return aim


def _text(settings: Settings, text: str) -> Aim:
    shown = clip(text, MAX_SHOWN)
    if sum(len(word.text) for word in words_in(text)) < LEAST_CHARACTERS:
        raise CannotForgetError(
            f"“{shown}” is too short to be forgotten wherever it stands: give at least {LEAST_CHARACTERS} letters or "
            "digits, or the id of the message, which `memory search --json` has."
        )
    plain = Redactor(salt_of(settings)) if settings.redact else Unredacted()
    redacted = plain.redact(text)  # as it is stored
    return Aim(TEXT, shown, phrases=_unique([text, redacted]))


def refuse_common(aim: Aim, said_in: int, messages: int) -> None:
    """Raises `CannotForgetError` for words that would take much of the memory."""
    if aim.phrases and said_in > ALWAYS and said_in > messages * MAX_SHARE:
        raise CannotForgetError(
            f"“{aim.name}” stands in {said_in:,} of {messages:,} messages; that much is not forgotten at once. Give "
            "more of the words, or a session or message by its id."
        )


def _count(text: str) -> int:
    return len(words_in(text))


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
