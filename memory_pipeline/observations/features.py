"""What is measured about a unit before it is weighed. Few numbers, each of which a person can check by eye."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_pipeline.observations import cues
from memory_pipeline.observations.kinds import is_momentary, kind_of_user
from memory_pipeline.observations.language import is_english
from memory_pipeline.observations.observer import Said
from memory_pipeline.observations.units import Unit
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.tokens import estimate

FEATURES: Mapping[str, str] = {
    "length": "log(1 + tokens) / 5",
    "specific": "mean rarity of its words in the window: 0 in every message, 1 in one only",
    "named": "paths, identifiers, versions and numbers: 1 for four or more",
    "fragment": "ends without a full stop",
    "bullet": "begins a list item",
    "new_words": "share of its words that nobody said before",
    "final_words": "share of its words that the model's last message has too",
    "later_words": "share of its words that are said again later",
    "whole": "a person's short message",
    "own": "a person's words around a paste, or a message of many lines",
    "pasted": "what a person only passed on",
    "first_wish": "in the first message of the person",
    "user_rule": "a person's rule or preference",
    "user_correction": "a person's correction",
    "user_claim": "a person's decision, cause, change or convention",
    "user_question": "a person's question",
    "user_order": "a person's order for this moment",
    "found": "the model tells a cause",
    "changed": "the model tells of a decision, a change or how things are kept",
    "turn_end": "in the model's last message before the person speaks",
    "turn_end_changed": "both of the two above",
    "last": "in the last message of the model",
    "rejected": "the person's next message says no",
    "hedge": "the model doubts it",
    "praise": "the model's verdict, not a fact: great, ready, successfully",
}
"""Name and meaning of each, in the order of a row."""
FULL = 4
"""Names and numbers from which more of them say nothing more."""


@dataclass(frozen=True)
class Window:
    """What the features need to know about the messages around a unit."""

    messages: Sequence[Said]
    reply: Sequence[int]
    """For each message the position of the next one by the person, or the number of messages."""
    ends_turn: Sequence[bool]
    is_english: Mapping[str, bool]
    """Whether the person, and the model, speak English."""
    frequency: Mapping[str, int]
    """In how many messages that were said a word is."""
    first_said: Mapping[str, int]
    last_said: Mapping[str, int]
    said: int
    first_wish: int
    last_answer: int
    final: frozenset[str]

    @classmethod
    def of(cls, messages: Sequence[Said]) -> Window:
        spoken = [i for i, m in enumerate(messages) if m.role in ("user", "assistant")]
        frequency: Counter[str] = Counter()
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for i in spoken:
            for word in content_words(messages[i].text):
                frequency[word] += 1
                first.setdefault(word, i)
                last[word] = i
        reply, upcoming = [0] * len(messages), len(messages)
        for i in reversed(range(len(messages))):
            reply[i] = upcoming
            upcoming = i if messages[i].role == "user" else upcoming
        ends = [False] * len(messages)
        awaiting = True
        for i in reversed(range(len(messages))):
            if messages[i].role == "assistant" and awaiting:
                ends[i], awaiting = True, False
            elif messages[i].role in ("user", "injected"):
                awaiting = True
        answers = [i for i in spoken if messages[i].role == "assistant"]
        return cls(
            messages,
            reply,
            ends,
            {role: is_english(m.own for m in messages if m.role == role) for role in ("user", "assistant")},
            frequency,
            first,
            last,
            len(spoken),
            next((i for i in spoken if messages[i].role == "user"), -1),
            answers[-1] if answers else -1,
            content_words(messages[answers[-1]].text) if answers else frozenset(),
        )

    def is_rejected(self, position: int) -> bool:
        reply = self.reply[position]
        if reply == len(self.messages) or not self.is_english["user"]:
            return False
        return bool(cues.NEGATIVE_REPLY.search(self.messages[reply].own.lstrip("\n")))


def rows(found: Sequence[Unit], window: Window) -> list[list[float]]:
    """The features of each unit, in the order of `FEATURES`."""
    known: dict[str, Mapping[str, float]] = {}
    answers = []
    for unit in found:
        values = dict.fromkeys(FEATURES, 0.0) | _of_words(unit, window)
        if unit.form == "said":
            for part in unit.parts:
                if part not in known:
                    known[part] = _of_model(part) if window.is_english["assistant"] else {}
                for name, value in known[part].items():
                    values[name] = max(values[name], value)
            values["turn_end"] = float(window.ends_turn[unit.position])
            values["turn_end_changed"] = values["turn_end"] * values["changed"]
            values["last"] = float(unit.position == window.last_answer)
            values["rejected"] = float(window.is_rejected(unit.position))
        else:
            values |= _of_user(unit, window)
        answers.append([values[name] for name in FEATURES])
    return answers


def _of_words(unit: Unit, window: Window) -> dict[str, float]:
    words = content_words(unit.text)
    count = max(1, len(words))
    scale = math.log(1 + window.said)
    rarity = sum(math.log((1 + window.said) / window.frequency.get(w, 1)) for w in words) / scale / count
    return {
        "length": math.log1p(estimate(unit.text)) / 5,
        "specific": rarity,
        "named": min(FULL, len(cues.SPECIFIC.findall(unit.text))) / FULL,
        "fragment": float(not unit.text.rstrip("\"')”`").endswith((".", "!", "?", "。", "！", "？"))),
        "bullet": float(unit.is_bullet),
        "new_words": sum(window.first_said.get(w, unit.position) >= unit.position for w in words) / count,
        "final_words": len(words & window.final) / count if unit.position != window.last_answer else 0.0,
        "later_words": sum(window.last_said.get(w, unit.position) > unit.position for w in words) / count,
    }


def _of_user(unit: Unit, window: Window) -> dict[str, float]:
    values = {
        "whole": unit.form == "whole",
        "own": unit.form in ("own", "dense"),
        "pasted": unit.form == "paste",
        "first_wish": unit.position == window.first_wish,
    }
    if window.is_english["user"] and unit.form != "paste":
        kind = kind_of_user(unit.text)
        values |= {
            "user_rule": kind in ("rule", "preference"),
            "user_correction": kind == "correction",
            "user_claim": kind in ("decision", "root_cause", "state_change", "convention"),
            "user_question": kind == "question",
            "user_order": is_momentary(kind, unit.text),
        }
    return {name: float(value) for name, value in values.items()}


def _of_model(words: str) -> dict[str, float]:
    return {
        "found": float(bool(cues.ROOT_CAUSE.search(words))),
        "changed": float(any(c.search(words) for c in (cues.DECIDED, cues.DECISION, cues.STATE_CHANGE, cues.CONVENTION))),
        "hedge": float(bool(cues.HEDGE.search(words))),
        "praise": float(bool(cues.VERDICT.search(words))),
    }
