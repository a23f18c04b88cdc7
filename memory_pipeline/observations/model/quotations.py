"""Verbatim quotations in a fact of a model, from any message of the window.

Models quote correctly but count badly: the words are in message 14, and the fact names 12.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
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

    def is_within(self, other: Quotation) -> bool:
        """Whether the other quotation has the same words of the fact."""
        return bool(other.within.start <= self.within.start and self.within.stop <= other.within.stop)


class Quotations:
    """An index of the words of a window's messages, for finding quotations in a fact."""

    def __init__(self, messages: Sequence[WindowMessage]) -> None:
        self.messages = messages
        self._words = cache(lambda position: list(words(messages[position].text)))
        self._matcher = cache(lambda at: SequenceMatcher(None, (), [w.word for w in self._words(at)], autojunk=False))

    def of(self, fact: str, start: int, end: int, positions: Iterable[int]) -> list[Quotation]:
        """The quotations in `fact[start:end]` from these messages, longest first, without overlaps. Words that occur in
        several messages belong to the first one."""
        said = [word for word in words(fact) if start <= word.start and word.end <= end]
        runs = []
        for position in positions:
            matcher = self._matcher(position)
            matcher.set_seq1([word.word for word in said])
            runs += [(-run.size, position, run.b, run.a) for run in matcher.get_matching_blocks()]
        found: list[Quotation] = []
        taken: set[int] = set()
        for size, position, at, first in sorted(runs):
            run = range(first, first - size)
            if _length(said[run.start : run.stop]) >= MIN_WORDS and taken.isdisjoint(run):
                taken.update(run)
                there = self._words(position)[at : at - size]
                span = EvidenceSpan(self.messages[position].message_id, there[0].start, there[-1].end)
                found.append(Quotation(position, span, slice(said[run.start].start, said[run.stop - 1].end)))
        return found


def words(text: str) -> Iterator[Word]:
    """The words of a text; single characters in scripts without spaces."""
    for found in _WORD.finditer(text):
        yield Word(found[0].casefold(), found.start(), found.end())


def _length(run: Sequence[Word]) -> float:
    return sum(0.5 if CJK.match(word.word) else 1.0 for word in run)
