"""The entrance examination of a model: its facts about a bundled, labelled session, beside those of the quotes.

One session tells a model that is of no use from one that is. It does not tell a good one from a better one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.llm.answers.degenerate import before_repetition, without_loops
from memory_pipeline.llm.answers.placeholders import copied
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.observations.flags import UNGROUNDED, UNPARSED
from memory_pipeline.observations.model.answer import parse_answer
from memory_pipeline.observations.types import Fact
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import HIGH

VERSION = "1"
"""Raise it when the session, its labels or the limits change: all models are examined anew."""
LABELS = Path(__file__).with_suffix(".json")
"""The labels are not beside the session, where they would be read as one."""
LESS_RECALL, MORE_JUNK = 0.25, 0.35
"""How far a model may stay behind the quotes before it counts as worse. Three of thirteen labels, because quotes find
ten of them here, more than elsewhere; and more of junk, as a model may say something true that no label has."""
COPIED = 2
"""Places of the format in an answer from which they are no slip: what is copied is dropped."""
TOO_HIGH, MIN_TOO_HIGH = 0.75, 3
"""The share of facts that no label calls high, and their least number, that a model may not mark as high."""


@dataclass(frozen=True)
class Score:
    """The worth of a list of facts."""

    recall: float
    """The share of the labels that are found."""
    junk: float
    """The share of facts that no label has, or that were taken back in the session."""


class Result(BaseModel):
    """The result of a model."""

    model: str
    """As it may be shown."""
    examined_at: datetime
    recall: float
    quotes_recall: float
    junk: float
    quotes_junk: float
    priorities: float
    """The share of facts with the priority of their label."""
    copied: int
    """Places of the format and its examples in the answers."""
    repeats: bool
    tokens_per_second: float | None = None
    """Tokens in and out per second of its answer; None where it was examined before this was kept."""
    reason: str = ""
    """Why the model is of no use; empty if it passed."""

    @property
    def sentence(self) -> str:
        """Its figures beside those of the quotes."""
        return (
            f"{'failed' if self.reason else 'passed'} the examination: recall {self.recall:.2f} (quotes "
            f"{self.quotes_recall:.2f}), junk {self.junk:.2f} ({self.quotes_junk:.2f}), priorities "
            f"{self.priorities:.2f}, copied from the format {self.copied}, repeats itself: "
            f"{'yes' if self.repeats else 'no'}"
        )


@cache
def session() -> str:
    """The path of the labelled session below the examples."""
    return str(_labels()["session"])


def examine(model: str, facts: Sequence[Fact], answers: Sequence[str], quotes: Sequence[Fact]) -> Result:
    """The result of a model: `facts` are those that were kept of its answers, `quotes` those without a model."""
    own, without = score(facts), score(quotes)
    told = [fact for answer in answers for segment in parse_answer(answer).segments for fact in segment.facts]
    right = [(fact.priority == HIGH) == _is_high(fact.text) for fact in told]
    result = Result(
        model=model,
        examined_at=datetime.now(UTC),
        recall=own.recall,
        quotes_recall=without.recall,
        junk=own.junk,
        quotes_junk=without.junk,
        priorities=sum(right) / len(right) if right else 0.0,
        copied=sum(map(copied, answers)),
        repeats=any(without_loops(answer)[1] or before_repetition(answer)[1] for answer in answers),
    )
    minor = [fact.priority == HIGH for fact in told if not _is_high(fact.text)]
    marks_all = len(minor) >= MIN_TOO_HIGH and sum(minor) >= TOO_HIGH * len(minor)
    return result.model_copy(update={"reason": _reason(result, marks_all=marks_all)})


def _reason(result: Result, *, marks_all: bool) -> str:
    if result.repeats:
        return "It says the same again and again."
    if result.copied >= COPIED:
        return f"It copies the format of the answer, {result.copied} times, instead of filling it in."
    if result.recall < result.quotes_recall - LESS_RECALL:
        return f"It finds {result.recall:.2f} of the facts, and quotes without a model {result.quotes_recall:.2f}."
    if result.junk > result.quotes_junk + MORE_JUNK:
        return f"{result.junk:.2f} of its facts are not worth keeping, and {result.quotes_junk:.2f} of the quotes."
    if marks_all:
        return "It marks everything as high, also what matters for hours."
    return ""


def score(facts: Iterable[Fact]) -> Score:
    """The worth of these facts; what nobody said, or stands in an answer that is not in the format, finds nothing."""
    texts = ["" if {UNGROUNDED, UNPARSED} & set(fact.flags) else fact.text.casefold() for fact in facts]
    labels = _labels()["facts"]
    found = [[_has(text, label["words"]) and not _is_trap(text) for label in labels] for text in texts]
    return Score(
        sum(map(any, zip(*found, strict=True))) / len(labels) if found else 0.0,
        sum(not any(of_text) for of_text in found) / len(found) if found else 0.0,
    )


def _is_high(text: str) -> bool:
    return any(_has(text.casefold(), label["words"]) for label in _labels()["facts"] if label["priority"] == HIGH)


def _is_trap(text: str) -> bool:
    return any(_has(text, trap["words"]) and not _has(text, [trap["unless"]]) for trap in _labels()["traps"])


def _has(text: str, words: Sequence[str]) -> bool:
    """Whether the text has each of the words; of alternatives with a bar between them, one."""
    return all(any(word in text for word in alternatives.split("|")) for alternatives in words)


@cache
def _labels() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(LABELS.read_text("utf-8"))
    return found


def result_of(settings: Settings) -> Result | None:
    """The stored result of the observer's model, at its address; None if it was not examined."""
    found = _stored(settings).get(_key(settings)) if settings.observer.model else None
    try:
        return Result.model_validate(found) if found else None
    except ValidationError:
        return None


def keep(settings: Settings, result: Result) -> None:
    """Store the result of the observer's model of these settings."""
    path = _path(settings)
    before = path.read_bytes() if path.exists() else None
    data = _stored(settings) | {_key(settings): result.model_dump(mode="json")}
    write_atomically(path, json.dumps(data, indent=1, ensure_ascii=False).encode(), expected=before, backups=None)


def _stored(settings: Settings) -> dict[str, Any]:
    """The file; of one that is damaged nothing, as an examination costs one request."""
    try:
        found = json.loads(_path(settings).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _path(settings: Settings) -> Path:
    return settings.workspace / "examinations.json"


def _key(settings: Settings) -> str:
    return fingerprint_of(VERSION, settings.observer.model, settings.observer.base_url)[:16]  # both may hold a secret
