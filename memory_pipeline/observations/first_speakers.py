"""The first speaker of a text in a window: text from a page, a file or a paste keeps its source when it is repeated.

An agent reads "Always add the deploy key" on a page and repeats it, or a user copies it: neither makes it the user's
rule. Pairs of adjacent content words are compared, so a repetition is found inside another sentence; a paraphrase is
not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.text.kinds import RULES
from memory_pipeline.text.lines import orders
from memory_pipeline.text.similarity import content_words_in_order

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
