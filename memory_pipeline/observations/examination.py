"""The entrance examination of a model: its facts about a bundled, labelled session, compared with quoted ones.

One session is enough to reject an unusable model. It does not rank usable ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.llm.answers.degenerate import before_repetition, copied
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.observations.model.answer import parse_answer
from memory_pipeline.observations.types import UNGROUNDED, UNPARSED, Fact
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import HIGH

VERSION = "1"
"""Increase it when the session, its labels or the limits change, so that every model is examined again."""
LABELS = Path(__file__).with_suffix(".json")
"""Labels of the session. They are not stored next to it, where they would be read as a session."""
LESS_RECALL, MORE_JUNK = 0.25, 0.35
"""How much lower the recall and how much higher the junk of a model may be than that of the quotes. The recall may be
three of thirteen labels lower because quotes find ten of them here, more than elsewhere; the limit of junk is wider
because a model may state a true fact that has no label."""
COPIED = 2
"""Minimum number of passages copied from the format at which a model fails; a single one is dropped as a slip."""
TOO_HIGH, MIN_TOO_HIGH = 0.75, 3
"""Share and minimum number of facts without a high label at which marking them as high fails a model."""


@dataclass(frozen=True)
class Score:
    """The recall and junk of a list of facts."""

    recall: float
    """The share of the labels that are found."""
    junk: float
    """The share of facts that match no label, or that were retracted in the session."""


class Result(BaseModel):
    """The result of an examination."""

    model: str
    """The name of the model without secrets."""
    examined_at: datetime
    recall: float
    quotes_recall: float
    junk: float
    quotes_junk: float
    tokens_per_second: float | None = None
    """Tokens in and out per second of its answer; None where it was examined before this was kept."""
    reason: str = ""
    """Why the model failed; empty if it passed."""

    @property
    def sentence(self) -> str:
        """The figures of the model and those of the quotes in one sentence."""
        return (
            f"{'failed' if self.reason else 'passed'} the examination: recall {self.recall:.2f} (quotes "
            f"{self.quotes_recall:.2f}), junk {self.junk:.2f} ({self.quotes_junk:.2f})"
        )


_RESULTS = TypeAdapter(dict[str, Result])


@cache
def session() -> str:
    """The path of the labelled session below the examples."""
    return str(_labels()["session"])


def examine(model: str, facts: Sequence[Fact], answers: Sequence[str], quotes: Sequence[Fact]) -> Result:
    """The result of a model: `facts` were extracted from its answers and checked; `quotes` were found without a
    model."""
    own, without = score(facts), score(quotes)
    return Result(
        model=model,
        examined_at=datetime.now(UTC),
        recall=own.recall,
        quotes_recall=without.recall,
        junk=own.junk,
        quotes_junk=without.junk,
        reason=_reason(own, without, answers),
    )


def fails_alone(answer: str) -> bool:
    """Whether this answer fails the examination, whatever else the model answers."""
    return _repeats(answer) or copied(answer) >= COPIED


def _repeats(answer: str) -> bool:
    return before_repetition(answer)[1]


def _reason(own: Score, without: Score, answers: Sequence[str]) -> str:
    """Why the model fails, compared with quotes; empty if it passes."""
    if any(map(_repeats, answers)):
        return "It repeats itself."
    if (times := sum(map(copied, answers))) >= COPIED:
        return f"It copies the format of the answer, {times} times, instead of filling it in."
    if own.recall < without.recall - LESS_RECALL:
        return f"It finds {own.recall:.2f} of the facts; quotes without a model find {without.recall:.2f}."
    if own.junk > without.junk + MORE_JUNK:
        return f"{own.junk:.2f} of its facts are not worth keeping; of the quotes, {without.junk:.2f}."
    facts = (fact for answer in answers for fact in parse_answer(answer).facts)
    minor = [fact.priority == HIGH for fact in facts if not _is_high(fact.text)]
    if len(minor) >= MIN_TOO_HIGH and sum(minor) >= TOO_HIGH * len(minor):
        return "It marks everything as high, including facts that matter only for hours."
    return ""


def score(facts: Iterable[Fact]) -> Score:
    """The recall and junk of these facts. Ungrounded facts, and facts from an unparsed answer, match no label."""
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
    """Whether the text contains all of the words; `a|b` matches either."""
    return all(any(word in text for word in alternatives.split("|")) for alternatives in words)


@cache
def _labels() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(LABELS.read_text("utf-8"))
    return found


def result_of(settings: Settings) -> Result | None:
    """The stored result of the observer's model, at its address; None if it was not examined."""
    return _results(settings).get(_key(settings)) if settings.observer.model else None


def keep(settings: Settings, result: Result) -> None:
    """Store the result of the observer's model of these settings."""
    path = _path(settings)
    before = path.read_bytes() if path.exists() else None
    data = _RESULTS.dump_json(_results(settings) | {_key(settings): result}, indent=1)
    write_atomically(path, data, expected=before, backups=None)


def _results(settings: Settings) -> dict[str, Result]:
    """The stored results, or none if the file is damaged: an examination costs one request."""
    try:
        return _RESULTS.validate_json(_path(settings).read_bytes())
    except (OSError, ValidationError):
        return {}


def _path(settings: Settings) -> Path:
    return settings.workspace / "examinations.json"


def _key(settings: Settings) -> str:
    return fingerprint_of(VERSION, settings.observer.model, settings.observer.base_url)[:16]  # both may hold a secret
