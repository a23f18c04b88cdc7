"""Features of a unit, a few numbers that can be checked by eye, and the first speaker of its words.

Text from a page, a file or a paste keeps its source when it is repeated: an agent reads "Always add the deploy key" on
a page and repeats it, or a user copies it, and neither makes it the user's rule. Pairs of adjacent content words are
compared, so a repetition is found inside another sentence; a paraphrase is not.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise

from memory_pipeline.harnesses.model import CHOICES
from memory_pipeline.observations.quotes.units import Unit
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.text.kinds import RULES, kind_of_user
from memory_pipeline.text.languages.identify import ENGLISH, cues_of, english, has_cues, language_of_speaker
from memory_pipeline.text.lines import orders
from memory_pipeline.text.similarity import content_words, content_words_in_order
from memory_pipeline.text.specifics import COUNTED
from memory_pipeline.text.tokens import estimate

REPEATED = 0.5
"""Minimum share of word pairs seen before for an agent's text to be a repetition: an agent adds its own words."""
COPIED, MIN_COPIED = 0.8, 4
"""Minimum share and number of word pairs for a user's text to be a copy: users also describe in their own words what
they see."""
STEM = 6
"""Length in characters of the prefix that identifies a word, so that inflected forms match."""
SIDES = ("user", "assistant")
"""Speakers who take part in the conversation; text of all others was only read."""


def is_order(text: str, kind: str) -> bool:
    """Whether the text is an instruction, whatever its kind."""
    return kind in RULES or orders(text)


class FirstSpeakers:
    """The first occurrence of each pair of adjacent content words: the position of the message, and its speaker
    (`WindowMessage.voice`), or `paste` for text that a user only passed on."""

    def __init__(self, messages: Sequence[WindowMessage]) -> None:
        self.first: dict[tuple[str, str], tuple[int, str]] = {}
        for position, message in enumerate(messages):
            pastes = ((message.text[start:end], "paste") for start, end in message.quoted)
            for text, speaker in ((message.own, message.voice), *pastes):
                for pair in _word_pairs(text):
                    self.first.setdefault(pair, (position, speaker))

    def repeated(self, text: str, position: int) -> str | None:
        """The speaker outside the conversation whose text the agent repeats at this position, or None."""
        return self._earlier_source(set(_word_pairs(text)), position, REPEATED)

    def copied(self, text: str, position: int) -> str | None:
        """The speaker outside the conversation whose text the user copied verbatim at this position, or None."""
        pairs = set(_word_pairs(text))
        return self._earlier_source(pairs, position, COPIED) if len(pairs) >= MIN_COPIED else None

    def _earlier_source(self, pairs: set[tuple[str, str]], position: int, share: float) -> str | None:
        places = (place for pair in pairs if (place := self.first.get(pair)))
        others = Counter(speaker for at, speaker in places if at < position and speaker not in SIDES)
        if not others or others.total() < share * len(pairs):
            return None
        return max(sorted(others), key=lambda speaker: others[speaker])


def _word_pairs(text: str) -> Iterator[tuple[str, str]]:
    return pairwise(word[:STEM] if word.isalpha() else word for word in content_words_in_order(text))


FEATURES: Mapping[str, str] = {
    "length": "log(1 + tokens) / 5",
    "named": "paths, identifiers, versions and numbers: 1 for four or more",
    "new_words": "share of its words that nobody said before",
    "final_words": "share of its words that the model's last message has too",
    "later_words": "share of its words that are said again later",
    "whole": "a user's short message, or their acceptance with the proposal that it answers",
    "pasted": "what a user only passed on",
    "first_wish": "in the first message of the user",
    "user_rule": "a user's rule or preference",
    "user_correction": "a user's correction",
    "user_claim": "a user's decision, cause, change or convention",
    "user_question": "a user's question",
    "found": "the model tells a cause",
    "changed": "the model tells of a decision, a change or how things are kept",
    "rejected": "the user's next message says no",
    "hedge": "the model doubts it",
    "praise": "the model's verdict, not a fact: great, ready, successfully",
}
"""Name and meaning of each, in the order of a row."""
FULL = 4
"""Count of names and numbers at which the feature reaches its maximum."""

NEAR = 6
"""Maximum distance in messages between a statement and a result that confirms it."""


class Conversation:
    """The context of a unit that its features need."""

    def __init__(self, messages: Sequence[WindowMessage]) -> None:
        self.messages = messages
        spoken = [i for i, m in enumerate(messages) if m.role in SIDES]
        answers = [i for i in spoken if messages[i].role == "assistant"]
        self.said = len(spoken)
        self.frequency: Counter[str] = Counter()
        """The number of messages with a word."""
        self.first_said: dict[str, int] = {}
        self.last_said: dict[str, int] = {}
        for i in spoken:
            for word in content_words(messages[i].text):
                self.frequency[word] += 1
                self.first_said.setdefault(word, i)
                self.last_said[word] = i
        self.reply = [0] * len(messages)
        """For each message the position of the user's next message, or the number of messages."""
        self.ends_turn = [False] * len(messages)
        self._find_turns()
        self.language = {side: language_of_speaker(m.own for m in messages if m.role == side) for side in SIDES}
        """The languages of the user and of the model."""
        self.first_wish = next((i for i in spoken if messages[i].role == "user"), -1)
        self.last_answer = answers[-1] if answers else -1
        self.final = content_words(messages[answers[-1]].text) if answers else frozenset()

    def _find_turns(self) -> None:
        upcoming, awaiting = len(self.messages), True
        for i, message in reversed(list(enumerate(self.messages))):
            self.reply[i] = upcoming
            if message.role == "user" and message.answer_to not in CHOICES:
                upcoming = i
            if message.role == "assistant" and awaiting:
                self.ends_turn[i], awaiting = True, False
            elif message.role in ("user", "injected"):
                awaiting = True

    @cached_property
    def first_speakers(self) -> FirstSpeakers:
        """The first speakers, computed only if the window has an instruction."""
        return FirstSpeakers(self.messages)

    def is_english(self, role: str) -> bool:
        return self.language.get(role) == ENGLISH

    def has_cues(self, role: str) -> bool:
        """Whether there are cues for the language of this speaker."""
        return has_cues(self.language[role])

    def rarity(self) -> dict[str, float]:
        """The rarity of each word; 0 if all messages have it."""
        return {word: math.log((1 + self.said) / count) for word, count in self.frequency.items()}

    def is_confirmed(self, position: int) -> bool:
        """Whether a result or the user's reply after the model's message does not reject it."""
        if self.is_rejected(position):
            return False
        reply = self.reply[position]
        results = (m for m in self.messages[position + 1 : min(reply, position + 1 + NEAR)] if m.role == "tool")
        return any(not m.is_error and not m.answer_to for m in results) or (
            self.ends_turn[position] and reply < len(self.messages)
        )

    def is_rejected(self, position: int) -> bool:
        reply = self.reply[position]
        if reply == len(self.messages) or not self.has_cues("user"):
            return False
        words = self.messages[reply].own.lstrip("\n")
        return bool(cues_of(words).rejection.search(words))


def rows(found: Sequence[Unit], window: Conversation) -> list[list[float]]:
    """The features of each unit, in the order of `FEATURES`."""
    known: dict[str, Mapping[str, float]] = {}
    answers = []
    for unit in found:
        values = dict.fromkeys(FEATURES, 0.0) | _word_features(unit, window)
        if unit.form == "said":
            for part in unit.parts:
                if part not in known:
                    known[part] = _model_features(part) if window.is_english("assistant") else {}
                for name, value in known[part].items():
                    values[name] = max(values[name], value)
            values["rejected"] = float(window.is_rejected(unit.position))
        else:
            values |= _user_features(unit, window)
        answers.append([values[name] for name in FEATURES])
    return answers


def _word_features(unit: Unit, window: Conversation) -> dict[str, float]:
    words = content_words(unit.text)
    count = max(1, len(words))
    return {
        "length": math.log1p(estimate(unit.text)) / 5,
        "named": min(FULL, len(COUNTED.findall(unit.text))) / FULL,
        "new_words": sum(window.first_said.get(w, unit.position) >= unit.position for w in words) / count,
        "final_words": len(words & window.final) / count if unit.position != window.last_answer else 0.0,
        "later_words": sum(window.last_said.get(w, unit.position) > unit.position for w in words) / count,
    }


def _user_features(unit: Unit, window: Conversation) -> dict[str, float]:
    values = {
        "whole": unit.form in ("whole", "answer", "choice", "explicit"),
        "user_claim": unit.form in ("answer", "choice"),
        "pasted": unit.form == "paste",
        "first_wish": unit.position == window.first_wish,
    }
    if window.has_cues("user") and unit.form not in ("paste", "answer", "choice"):
        kind = kind_of_user(unit.text)
        values |= {
            "user_rule": kind in ("rule", "preference"),
            "user_correction": kind == "correction",
            "user_claim": kind in ("decision", "root_cause", "state_change", "convention"),
            "user_question": kind == "question",
        }
    return {name: float(value) for name, value in values.items()}


def _model_features(words: str) -> dict[str, float]:
    cues = english()
    return {
        "found": float(bool(cues.root_cause.search(words))),
        "changed": float(
            any(c.search(words) for c in (cues.decided, cues.decision, cues.state_change, cues.convention))
        ),
        "hedge": float(bool(cues.hedge.search(words))),
        "praise": float(bool(cues.verdict.search(words))),
    }
