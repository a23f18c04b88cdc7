"""Who said the lines of a file, and when: looked for by words in all that was said, read once from the tables.

All lines are looked for at a time: a search of its own for each would take as many seconds as there are lines. Vectors
are not asked: of the lines of real AGENTS.md, what was near by meaning alone was about the same and never said it.
Only users and agents say something. What a harness put into a session, such as the AGENTS.md of the folder, and what
tools printed is no source of a line: it would be its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

import polars as pl

from memory_pipeline.embeddings.passages import SPEAKERS
from memory_pipeline.lake.store import Lake
from memory_pipeline.redaction import Redactor
from memory_pipeline.settings import Settings
from memory_pipeline.text.relation import AGAIN, differs, statement, stem
from memory_pipeline.text.sentences import clip, sentences, squeeze
from memory_pipeline.text.similarity import content_words, overlap, words
from memory_pipeline.text.specifics import differ_in_numbers, specifics

USER = "user"
RAREST = 6
"""Words of a line that are looked for: what has none of them does not say the same."""
CANDIDATES = 16
"""Messages that are read for a line."""
MAX_MESSAGE = 50_000
"""Characters of a message that are read: what is longer is a paste."""
MAX_WORDS = 300
"""Characters that are told of what was said."""
MIN_SHARED = 3
"""Words of content that a line and a sentence have in common when they say the same."""


@dataclass(frozen=True)
class Said:
    """Words that say what a line says."""

    day: date
    session_id: str
    session: str
    role: str
    words: str
    message_id: str
    project: str | None
    is_verbatim: bool
    """Whether the line stands in them word for word."""


class Transcripts:
    """All that users and agents said, read once."""

    def __init__(self, settings: Settings, lake: Lake, redactor: Redactor) -> None:
        self.settings, self.redactor = settings, redactor
        columns = ("day", "session_id", "message_id", "role", "said_at", "text", "voided")
        said = lake.read("messages", columns=columns)
        said = said.filter(pl.col("role").is_in(SPEAKERS) & ~pl.col("voided").fill_null(False) & (pl.col("text") != ""))
        sessions = lake.read("sessions", columns=("session_id", "name", "project"))
        self.sessions = {i: (name or "", project) for i, name, project in sessions.iter_rows()}
        self.messages = said.sort("said_at", "message_id").with_row_index("row")
        self.count = said.height
        self.last_day: date | None = max(self.messages["day"].to_list(), default=None)

    def sources(self, lines: Sequence[str]) -> dict[int, list[Said]]:
        """By the position of each line, who said it: users before agents, quotations before other words, oldest first.
        A line that nobody said is not there."""
        found = self._said_by_line(lines)
        order = {i: sorted(said, key=lambda s: (s.role != USER, not s.is_verbatim, s.day)) for i, said in found.items()}
        return {i: said for i, said in order.items() if said}

    def _said_by_line(self, lines: Sequence[str]) -> dict[int, list[Said]]:
        wanted = {i: _looked_for(line) for i, line in enumerate(lines)}
        vocabulary = sorted(frozenset[str]().union(*wanted.values()))
        if not vocabulary or not self.count:
            return {}
        has = self.messages.select(
            "row",
            pl.col("text")
            .str.to_lowercase()
            .str.extract_many(vocabulary, overlapping=True)
            .list.unique()
            .alias("word"),
        ).explode("word", empty_as_null=False)
        frequency = Counter(dict(has["word"].value_counts().iter_rows()))
        pairs = [(i, word) for i, looked_for in wanted.items() for word in _rarest(looked_for, frequency)]
        needed = {i: min(RAREST, len(looked_for)) // 2 for i, looked_for in wanted.items()}
        by_line = pl.DataFrame(pairs, schema={"line": pl.Int64(), "word": pl.String()}, orient="row")
        weights = pl.DataFrame(
            [(word, math.log(1 + self.count / (1 + n))) for word, n in frequency.items()],
            schema={"word": pl.String(), "weight": pl.Float64()},
            orient="row",
        )
        best = (
            has.join(by_line.join(weights, on="word"), on="word")
            .group_by("line", "row")
            .agg(pl.col("weight").sum(), pl.len().alias("shared"))
            .filter(pl.col("shared") >= pl.col("line").replace_strict(needed))
            .sort(["line", "weight", "row"], descending=[False, True, False])
            .group_by("line", maintain_order=True)
            .head(CANDIDATES)
        )
        rows = self.messages[best["row"].unique().sort().to_list()].to_dicts()
        messages = {row["row"]: (row, [_heard(s) for s in _sentences(row["text"][:MAX_MESSAGE])]) for row in rows}
        found: dict[int, list[Said]] = {}
        for line, row in best.select("line", "row").iter_rows():
            message, heard = messages[row]
            wanted_line = _heard(lines[line])
            quoted = next((h for h in heard if _is_verbatim(wanted_line, h)), None)
            again = quoted or next((h for h in heard if _says_the_same(wanted_line, h)), None)
            if again:
                found.setdefault(line, []).append(self._told(message, again.text, quoted is not None))
        return found

    def _told(self, message: Mapping[str, Any], sentence: str, is_verbatim: bool) -> Said:
        name, project = self.sessions.get(message["session_id"], ("", None))
        shown = clip(self.redactor.redact(sentence), MAX_WORDS)
        place = (message["session_id"], name, message["role"], shown, message["message_id"], project)
        return Said(message["day"], *place, is_verbatim)


class _Heard(NamedTuple):
    """A line or a sentence with what of it is compared, so that it is worked out once."""

    text: str
    run: str
    """All words as they follow each other, with a space around each."""
    stems: frozenset[str]


def _heard(text: str) -> _Heard:
    return _Heard(text, f" {' '.join(words(text))} ", frozenset(map(stem, content_words(text))))


def _sentences(text: str) -> Iterable[str]:
    return (squeeze(text[s.start : s.end]) for s in sentences(text))


def _is_verbatim(line: _Heard, said: _Heard) -> bool:
    """Whether the line stands in the sentence word for word."""
    return len(line.stems) >= MIN_SHARED and line.run in said.run and not _opposed(line.text, said.text)


def _says_the_same(line: _Heard, said: _Heard) -> bool:
    """Whether the sentence says what the line says, by the words of both."""
    if len(line.stems & said.stems) < MIN_SHARED or overlap(line.stems, said.stems) < AGAIN.overlap:
        return False
    if differ_in_numbers(line.text, said.text) or not set(specifics(line.text)) <= set(specifics(said.text)):
        return False
    return not _opposed(line.text, said.text)


def _opposed(line: str, sentence: str) -> bool:
    """Whether one gives up what the other holds on to, or refuses anything while the other does not."""
    return differs(line, sentence) or bool(statement(line).denied) != bool(statement(sentence).denied)


def _looked_for(line: str) -> frozenset[str]:
    found = content_words(line)
    return frozenset(word for word in found if len(word) > 2) or found


def _rarest(found: frozenset[str], frequency: Mapping[str, int]) -> list[str]:
    """Those that were said, the rarest first."""
    said = sorted((word for word in found if frequency.get(word)), key=lambda word: (frequency[word], word))
    return said[:RAREST]
