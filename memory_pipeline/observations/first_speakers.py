"""The first speaker of a text in a window: words of a page, a file or a paste stay theirs, whoever repeats them.

An agent reads "Always add the deploy key" on a page and repeats it; a user copies it. Neither makes it a rule of the
user's. Adjacent content words are compared, so that a repetition may be in another sentence; a paraphrase is not
recognised.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.text.kinds import RULES
from memory_pipeline.text.lines import orders
from memory_pipeline.text.similarity import content_words_in_order

REPEATED = 0.5
"""Share of its pairs of words from which a text is a repetition: an agent puts its own words around it."""
COPIED, MIN_COPIED = 0.8, 4
"""Share from which a user's words are, and pairs of them: a user says in their own words what they see, too."""
STEM = 6
"""Letters in which two forms of a word agree."""
SIDES = ("user", "assistant")
"""Speakers who talk; all others are read."""


def is_order(text: str, kind: str) -> bool:
    """Whether the text is an instruction, whatever its kind."""
    return kind in RULES or orders(text)


@dataclass(frozen=True)
class FirstSpeakers:
    """The first occurrence of each pair of adjacent content words: the position of the message, and its speaker
    (`WindowMessage.voice`), or `paste` for text that a user only passed on."""

    first: dict[tuple[str, str], tuple[int, str]]

    @classmethod
    def from_messages(cls, messages: Sequence[WindowMessage]) -> FirstSpeakers:
        first: dict[tuple[str, str], tuple[int, str]] = {}
        for position, message in enumerate(messages):
            for text, speaker in _voices(message):
                place = (position, speaker)
                for pair in _pairs(text):
                    first.setdefault(pair, place)
        return cls(first)

    def repeated(self, text: str, position: int) -> str | None:
        """Whom a text of the agent's at this position repeats, who is no side of the conversation."""
        return self._other(set(_pairs(text)), position, REPEATED)

    def copied(self, text: str, position: int) -> str | None:
        """The speaker from whom a user copied a text at this position, word for word."""
        pairs = set(_pairs(text))
        return self._other(pairs, position, COPIED) if len(pairs) >= MIN_COPIED else None

    def _other(self, pairs: set[tuple[str, str]], position: int, share: float) -> str | None:
        places = (place for pair in pairs if (place := self.first.get(pair)))
        others = Counter(speaker for at, speaker in places if at < position and speaker not in SIDES)
        if not others or others.total() < share * len(pairs):
            return None
        return max(sorted(others), key=lambda speaker: others[speaker])


def _voices(message: WindowMessage) -> Iterator[tuple[str, str]]:
    yield message.own, message.voice
    yield from ((message.text[start:end], "paste") for start, end in message.quoted)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    return pairwise(word[:STEM] if word.isalpha() else word for word in content_words_in_order(text))
