"""The sources of the lines of a memory file, found by words in all messages at once.

Only messages of users and agents are sources. Text inserted by a harness, such as the AGENTS.md of the folder, would
make a line its own source. Vectors are not compared: a text that is only near in meaning is on the same topic, but does
not say it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from heapq import nlargest
from typing import Any, NamedTuple

import polars as pl

from memory_pipeline.embeddings.messages import SPEAKERS
from memory_pipeline.lake.store import Lake
from memory_pipeline.redaction import Redactor
from memory_pipeline.text.relation import AGAIN, differs, is_same, statement, stem
from memory_pipeline.text.sentences import clip, sentences, squeeze
from memory_pipeline.text.similarity import content_words, words

USER = "user"
RAREST = 6
"""Number of a line's rarest words, half of which a candidate message must have."""
CANDIDATES = 16
"""Maximum messages that are compared with a line."""
MAX_MESSAGE = 50_000
"""Maximum characters of a message that is compared; longer ones are pastes."""
MAX_WORDS = 300
"""Maximum characters of a quote."""
MIN_SHARED = 3
"""Minimum common content words of a line and its source."""


@dataclass(frozen=True)
class Source:
    """A sentence that is the source of a line."""

    day: date
    session_id: str
    session: str
    role: str
    words: str
    message_id: str
    project: str | None
    is_verbatim: bool
    """Whether it contains the line verbatim."""


class _Sentence(NamedTuple):
    text: str
    run: str
    """All words in order, with a space around each."""
    stems: frozenset[str]


class Transcripts:
    """All messages of users and agents."""

    def __init__(self, lake: Lake, redactor: Redactor) -> None:
        self._redactor = redactor
        columns = ("day", "session_id", "message_id", "role", "said_at", "text", "voided")
        said = lake.read("messages", columns=columns)
        said = said.filter(pl.col("role").is_in(SPEAKERS) & ~pl.col("voided").fill_null(False) & (pl.col("text") != ""))
        self._messages = said.sort("said_at", "message_id")
        sessions = lake.read("sessions", columns=("session_id", "name", "project"))
        self._sessions = {i: (name or "", project) for i, name, project in sessions.iter_rows()}
        self.count = said.height
        self.last_day: date | None = max(said["day"].to_list(), default=None)

    def sources(self, lines: Sequence[str]) -> list[list[Source]]:
        """The sources of each line: users before agents, verbatim ones before others, oldest first."""
        parts = [[_compared(part) for part in _sentences(line)] for line in lines]
        candidates = self._candidates(lines)
        texts = self._messages["text"]
        heard = {row: [_compared(s) for s in _sentences(texts[row][:MAX_MESSAGE])] for row in set().union(*candidates)}
        found = []
        for wanted, rows in zip(parts, candidates, strict=True):
            pairs = ((row, _source(wanted, heard[row])) for row in rows)
            said = [self._source_of(self._messages.row(row, named=True), *source) for row, source in pairs if source]
            found.append(sorted(said, key=lambda s: (s.role != USER, not s.is_verbatim, s.day)))
        return found

    def _candidates(self, lines: Sequence[str]) -> list[list[int]]:
        """The messages with most of the rarest words of each line, in order."""
        asked_words = [content_words(line) for line in lines]
        wanted = [{word for word in found if len(word) > 2} or found for found in asked_words]
        vocabulary = sorted(set[str]().union(*wanted))
        having: defaultdict[str, list[int]] = defaultdict(list)
        if vocabulary:
            each = (
                self._messages["text"].str.to_lowercase().str.extract_many(vocabulary, overlapping=True).list.unique()
            )
            for row, found in enumerate(each.to_list()):
                for word in found:
                    having[word].append(row)
        result = []
        for asked in wanted:
            rarest = sorted((word for word in asked if word in having), key=lambda w: (len(having[w]), w))[:RAREST]
            weights: defaultdict[int, list[float]] = defaultdict(list)
            for word in rarest:
                for row in having[word]:
                    weights[row].append(math.log(1 + self.count / (1 + len(having[word]))))
            enough = [(sum(of), -row) for row, of in weights.items() if len(of) >= min(RAREST, len(asked)) // 2]
            result.append(sorted(-row for _, row in nlargest(CANDIDATES, enough)))
        return result

    def _source_of(self, message: Mapping[str, Any], words: str, is_verbatim: bool) -> Source:
        name, project = self._sessions.get(message["session_id"], ("", None))
        shown = clip(self._redactor.redact(words), MAX_WORDS)
        place = (message["session_id"], name, message["role"], shown, message["message_id"], project)
        return Source(message["day"], *place, is_verbatim)


def _sentences(text: str) -> Iterator[str]:
    return (squeeze(text[s.start : s.end]) for s in sentences(text))


def _compared(text: str) -> _Sentence:
    return _Sentence(text, f" {' '.join(words(text))} ", frozenset(map(stem, content_words(text))))


def _source(wanted: Sequence[_Sentence], heard: Sequence[_Sentence]) -> tuple[str, bool] | None:
    """The first sentence that contains a part of the line verbatim, else the first with the same meaning, and whether
    it is verbatim."""
    pairs = [(part, said) for part in wanted for said in heard if len(part.stems & said.stems) >= MIN_SHARED]
    pairs = [(part, said) for part, said in pairs if not _contradicts(part.text, said.text)]
    quoted = next((said.text for part, said in pairs if part.run in said.run), None)
    if quoted is not None:
        return quoted, True
    return next(((said.text, False) for part, said in pairs if is_same(said.text, part.text, AGAIN)), None)


def _contradicts(line: str, sentence: str) -> bool:
    """Whether one drops what the other keeps, or only one of them is a refusal."""
    return differs(line, sentence) or bool(statement(line).denied) != bool(statement(sentence).denied)
