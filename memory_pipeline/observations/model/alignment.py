"""The spans of the window that support a fact in a model's words: by common words, and by verbatim quotation."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from itertools import chain
from typing import NamedTuple

from memory_pipeline.observations.types import EvidenceSpan, WindowMessage
from memory_pipeline.text.sentences import sentences
from memory_pipeline.text.similarity import CJK, COMMON_CHARACTERS, content_words

GROUNDED, NAMED = 0.55, 0.3
"""The minimum share of a fact's words, weighted by rarity, that occur anywhere in the window, or in the messages that
the model named. 98 % of a careful reader's facts pass, and 97 % if the messages are named; of the same facts compared
with another session 7 % and 2 % pass. The limits were chosen from these figures (`benchmarks/grounding.py`)."""
SPEAKER_NAMES = frozenset({"person", "agent", "user", "sessio", "transc"})
"""Stems of the names that models use for the speakers."""
MAX_SPANS = 3
GAIN = 0.08
"""Minimum share of the fact's words that each further span must add."""
SPEAKER_SCORE = {"user": 1.0, "assistant": 0.95, "tool": 0.8, "paste": 0.7, "injected": 0.6}
"""Weight of evidence by speaker: the user's own words count most."""
MAX_SPAN = 600
"""Maximum characters of a span. A message of up to this length may be one span; longer lines are cut."""
LENGTH = 2000
"""Length in characters at which a span counts half, so that of two equal spans the shorter one is preferred."""
STEM = 6
"""Length in characters of the prefix that identifies a word, so that inflected forms match."""

MIN_WORDS = 4
"""Minimum number of consecutive words of a quotation; a Chinese, Japanese or Korean character counts half."""
_PART = re.compile(r"[^\W_]+")
_WORD = re.compile(rf"{CJK.pattern}|(?:(?!{CJK.pattern})[^\W_])+")
"""A word, or a single character in scripts without spaces."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """The spans that support a fact, best first, with the positions of their messages in the window."""

    spans: tuple[EvidenceSpan, ...]
    positions: tuple[int, ...]
    coverage: float
    """Share of the fact's words that occur in the spans or, if the model named messages, in those messages."""


@dataclass(frozen=True, slots=True)
class _Piece:
    position: int
    start: int
    end: int
    words: frozenset[str]
    speaker: str
    """The speaker of the message, or `paste`."""


class Rarity:
    """The rarity of words among some texts, which are given as sets of stems."""

    def __init__(self, texts: Collection[frozenset[str]]) -> None:
        count = Counter(chain.from_iterable(texts))
        self._known = {word: math.log1p(len(texts) / n) for word, n in count.items()}
        self._unknown = math.log1p(len(texts) or 1)

    def weights(self, text: str) -> dict[str, float]:
        """The rarity of each stem of a text, without the names of the speakers."""
        return {word: self._known.get(word, self._unknown) for word in sorted(stems(text) - SPEAKER_NAMES)}

    def share(self, text: str, said: Collection[str]) -> float:
        """Share of the text's stems, weighted by rarity, that are among these."""
        weights = self.weights(text)
        total = sum(weights.values())
        return sum(weight for word, weight in weights.items() if word in said) / total if total else 0.0


class Alignment:
    """A window, indexed by its words."""

    def __init__(self, messages: Sequence[WindowMessage]) -> None:
        self.messages = messages
        self._pieces = [piece for i, message in enumerate(messages) for piece in _pieces(i, message)]
        self.rarity = Rarity([piece.words for piece in self._pieces])
        self._by_word: dict[str, list[int]] = defaultdict(list)
        self._by_speaker: dict[tuple[int, str], set[str]] = defaultdict(set)
        for number, piece in enumerate(self._pieces):
            self._by_speaker[piece.position, piece.speaker].update(piece.words)
            for word in piece.words:
                self._by_word[word].append(number)

    def align(self, text: str, within: Collection[int], *, named: bool = False) -> Aligned:
        """The spans of the messages at these positions that contain most of the text's words.

        With `named` the model named these messages, and the coverage counts all of their words: a fact may summarize a
        list, and a span holds only one line of it.
        """
        left = self.rarity.weights(text)
        spans: list[_Piece] = []
        total, covered = sum(left.values()), 0.0
        while left and len(spans) < MAX_SPANS:
            piece, gain = self._best(left, within)
            if piece is None or gain < GAIN * total:
                break
            covered += gain
            spans.append(piece)
            left = {word: weight for word, weight in left.items() if word not in piece.words}
        found = tuple(EvidenceSpan(self.messages[p.position].message_id, p.start, p.end) for p in spans)
        coverage = self.coverage(text, within) if named else (covered / total if total else 0.0)
        return Aligned(found, tuple(p.position for p in spans), coverage)

    def coverage(
        self, text: str, positions: Collection[int], speakers: Collection[str] = tuple(SPEAKER_SCORE)
    ) -> float:
        """Share of the text's words, weighted by rarity, that these speakers use in the messages at these positions."""
        said = set().union(*(self._by_speaker.get((p, speaker), ()) for p in positions for speaker in speakers))
        return self.rarity.share(text, said)

    def speaker(self, span: EvidenceSpan, position: int) -> str:
        """The speaker of a span: the one of its message, or `paste`."""
        message = self.messages[position]
        return _speaker(message, span.start, span.end)

    def _best(self, wanted: Mapping[str, float], within: Collection[int]) -> tuple[_Piece | None, float]:
        gains: dict[int, float] = defaultdict(float)
        for word, weight in wanted.items():
            for number in self._by_word.get(word, ()):
                if self._pieces[number].position in within:
                    gains[number] += weight
        if not gains:
            return None, 0.0

        def worth(number: int) -> tuple[float, int]:
            piece = self._pieces[number]
            factor = SPEAKER_SCORE[piece.speaker] / (1 + (piece.end - piece.start) / LENGTH)
            return gains[number] * factor, -number

        best = max(gains, key=worth)
        return self._pieces[best], gains[best]


def stems(text: str) -> frozenset[str]:
    """The content words of a text: paths and names are split into parts, and alphabetic words are cut to a prefix."""
    parts = (part for word in content_words(text) for part in _parts(word))
    return frozenset(p[:STEM] if p.isalpha() and p.isascii() else p for p in parts if len(p) > 1 or not p.isascii())


def _parts(word: str) -> Sequence[str]:
    """The parts of a word; for a pair of Chinese characters each content character, as a paraphrase separates pairs."""
    if CJK.match(word) and len(word) == 2:
        return [character for character in word if character not in COMMON_CHARACTERS]
    return _PART.findall(word)


def _pieces(position: int, message: WindowMessage) -> Iterator[_Piece]:
    """Sentences of the user and the model, lines of all other text, and short messages as a whole.

    Code and the output of tools have no sentences, so a message that consists mostly of them is also split into lines.
    """
    text, taken = message.text, 0
    if message.role in ("user", "assistant"):
        if len(text) <= MAX_SPAN:
            yield from _piece(position, message, 0, len(text))
        for sentence in sentences(text):
            yield from _piece(position, message, sentence.start, sentence.end)
            taken += sentence.end - sentence.start
    if taken < len(text.strip()) / 2:
        start = 0
        for line in text.splitlines(keepends=True):
            yield from _piece(position, message, start, start + len(line))
            start += len(line)


def _piece(position: int, message: WindowMessage, start: int, end: int) -> Iterator[_Piece]:
    for begin in range(start, end, MAX_SPAN):
        part = message.text[begin : min(end, begin + MAX_SPAN)]
        if words := stems(part):
            if message.role == "user" and message.answer_to == "question":
                words |= stems(message.answered or "")  # "yes" means what was asked
            first = begin + len(part) - len(part.lstrip())
            last = begin + len(part.rstrip())
            yield _Piece(position, first, last, words, _speaker(message, first, last))


def _speaker(message: WindowMessage, start: int, end: int) -> str:
    pasted = message.role == "user" and any(a < end and start < b for a, b in message.quoted)
    return "paste" if pasted else message.voice


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
    """An index of the words of a window's messages, for finding quotations in a fact.

    Models quote correctly but count badly: the words are in message 14, and the fact names 12.
    """

    def __init__(self, messages: Sequence[WindowMessage]) -> None:
        self.messages = messages
        self._words = cache(lambda position: list(_WORD.finditer(messages[position].text)))
        self._matcher = cache(lambda at: SequenceMatcher(None, (), _casefolded(self._words(at)), autojunk=False))

    def of(self, fact: str, start: int, end: int, positions: Iterable[int]) -> list[Quotation]:
        """The quotations in `fact[start:end]` from these messages, longest first, without overlaps. Words that occur in
        several messages belong to the first one."""
        said = [word for word in _WORD.finditer(fact) if start <= word.start() and word.end() <= end]
        runs = []
        for position in positions:
            matcher = self._matcher(position)
            matcher.set_seq1(_casefolded(said))
            runs += [(-run.size, position, run.b, run.a) for run in matcher.get_matching_blocks()]
        found: list[Quotation] = []
        taken: set[int] = set()
        for size, position, at, first in sorted(runs):
            run = range(first, first - size)
            if _length(said[run.start : run.stop]) >= MIN_WORDS and taken.isdisjoint(run):
                taken.update(run)
                there = self._words(position)[at : at - size]
                span = EvidenceSpan(self.messages[position].message_id, there[0].start(), there[-1].end())
                found.append(Quotation(position, span, slice(said[run.start].start(), said[run.stop - 1].end())))
        return found


def _casefolded(run: Sequence[re.Match[str]]) -> list[str]:
    return [word[0].casefold() for word in run]


def _length(run: Sequence[re.Match[str]]) -> float:
    return sum(0.5 if CJK.match(word[0]) else 1.0 for word in run)
