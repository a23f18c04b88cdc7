"""Verbatim quotations in a fact of a model, from any message of the window.

Models quote correctly but count badly: the words are in message 14, and the fact names 12.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from memory_pipeline.observations.types import EvidenceSpan, WindowMessage
from memory_pipeline.text.similarity import CJK

MIN_WORDS = 4
"""Minimum number of consecutive words; a Chinese, Japanese or Korean character counts half."""
_WORD = re.compile(rf"{CJK.pattern}|(?:(?!{CJK.pattern})[^\W_])+")


class Word(NamedTuple):
    """A lower-case word of a text with its position."""

    word: str
    start: int
    end: int


class Quotation(NamedTuple):
    """`text[start:end]` of a message, which occurs verbatim in the fact at `within`."""

    position: int
    """Position of the message in its window."""
    span: EvidenceSpan
    within: slice


class Quotations:
    """An index of the words of a window's messages, for finding quotations in a fact."""

    def __init__(self, messages: Sequence[WindowMessage]) -> None:
        self.messages = messages
        self._words = cache(lambda position: list(words(messages[position].text)))

    def of(self, fact: str, start: int, end: int, positions: Iterable[int]) -> list[Quotation]:
        """The quotations in `fact[start:end]` from these messages, longest first, without overlaps. Words that occur in
        several messages belong to the first one."""
        said = [word for word in words(fact) if start <= word.start and word.end <= end]
        longest = self._longest(said, sorted(positions))
        found: list[Quotation] = []
        taken: set[int] = set()
        for length, first, position, at in sorted(longest, key=lambda run: (-run[0], run[2], run[3], run[1])):
            if taken.isdisjoint(range(first, first + length)):
                taken.update(range(first, first + length))
                there = self._words(position)[at : at + length]
                span = EvidenceSpan(self.messages[position].message_id, there[0].start, there[-1].end)
                found.append(Quotation(position, span, slice(said[first].start, said[first + length - 1].end)))
        return found

    def _longest(self, said: Sequence[Word], positions: Collection[int]) -> Iterator[tuple[int, int, int, int]]:
        """Every maximal run of common words: its length, the index of its first word in the fact, the position of the
        message and the index of its first word there."""
        places: dict[tuple[str, str], list[int]] = defaultdict(list)
        for i in range(len(said) - 1):
            places[said[i].word, said[i + 1].word].append(i)
        for position in positions:
            there = self._words(position)
            for at in range(len(there) - 1):
                for first in places.get((there[at].word, there[at + 1].word), ()):
                    if at and first and there[at - 1].word == said[first - 1].word:
                        continue  # part of the run that began before
                    length = _common(said, first, there, at)
                    if _size(said[first : first + length]) >= MIN_WORDS:
                        yield length, first, position, at


def words(text: str) -> Iterator[Word]:
    """The words of a text; single characters in scripts without spaces."""
    for found in _WORD.finditer(text):
        yield Word(found[0].casefold(), found.start(), found.end())


def _common(one: Sequence[Word], i: int, other: Sequence[Word], k: int) -> int:
    length = 0
    while i + length < len(one) and k + length < len(other) and one[i + length].word == other[k + length].word:
        length += 1
    return length


def _size(run: Sequence[Word]) -> float:
    return sum(0.5 if CJK.match(word.word) else 1.0 for word in run)
