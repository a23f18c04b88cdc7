"""Where a fact that a model wrote in its own words was said: the spans of the window that carry it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from memory_pipeline.observations.observer import Said, Span
from memory_pipeline.text.sentences import sentences
from memory_pipeline.text.similarity import content_words

GROUNDED = 0.5
"""Share of a fact's words, by their rarity, that its spans must have. Of observations that a careful reader wrote
99 % have more, of such observations beside another session 2 % (`benchmarks/grounding.py`)."""
MOST_SPANS = 3
GAIN = 0.08
"""Least share of the words that another span must add."""
NAMED = 1.5
"""How much more a span counts in a message that the model named."""
OF_ROLE = {"user": 1.0, "assistant": 0.95, "tool": 0.8, "injected": 0.6}
"""The closer to a person's own words, the better the evidence."""
LONGEST = 600
"""Characters of one span: longer lines of tools are cut into pieces."""
STEM = 6
"""Letters in which two forms of a word agree."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """The spans that carry a fact, best first, and the share of its words that they have."""

    spans: tuple[Span, ...]
    positions: tuple[int, ...]
    """Of the messages, in the window."""
    coverage: float


@dataclass(frozen=True, slots=True)
class _Piece:
    position: int
    start: int
    end: int
    words: frozenset[str]


class Alignment:
    """A window, indexed by its words."""

    def __init__(self, messages: Sequence[Said]) -> None:
        self.messages = messages
        self._pieces = [piece for i, message in enumerate(messages) for piece in _pieces(i, message)]
        count = Counter(chain.from_iterable(piece.words for piece in self._pieces))
        self._rarity: Mapping[str, float] = {w: math.log1p(len(self._pieces) / n) for w, n in count.items()}
        self._unknown = math.log1p(len(self._pieces) or 1)
        self._by_word: dict[str, list[int]] = defaultdict(list)
        for number, piece in enumerate(self._pieces):
            for word in piece.words:
                self._by_word[word].append(number)

    def align(self, text: str, named: Collection[int] = ()) -> Aligned:
        """The spans whose words cover most of the text's; `named` are positions of messages that should say it."""
        wanted = {word: self._rarity.get(word, self._unknown) for word in stems(text)}
        total = sum(wanted.values())
        spans: list[_Piece] = []
        covered = 0.0
        while wanted and len(spans) < MOST_SPANS:
            piece, gain = self._best(wanted, named)
            if piece is None or gain < GAIN * total:
                break
            covered += gain
            spans.append(piece)
            wanted = {word: weight for word, weight in wanted.items() if word not in piece.words}
        found = tuple(Span(self.messages[p.position].message_id, p.start, p.end) for p in spans)
        return Aligned(found, tuple(p.position for p in spans), covered / total if total else 0.0)

    def _best(self, wanted: Mapping[str, float], named: Collection[int]) -> tuple[_Piece | None, float]:
        gains: dict[int, float] = defaultdict(float)
        for word, weight in wanted.items():
            for number in self._by_word.get(word, ()):
                gains[number] += weight
        if not gains:
            return None, 0.0

        def worth(number: int) -> tuple[float, int]:
            piece = self._pieces[number]
            factor = OF_ROLE[self.messages[piece.position].role] * (NAMED if piece.position in named else 1.0)
            return gains[number] * factor, -number

        best = max(gains, key=worth)
        return self._pieces[best], gains[best]


def stems(text: str) -> frozenset[str]:
    """The words that carry content, those of letters alone cut to their beginning."""
    return frozenset(word[:STEM] if word.isalpha() and word.isascii() else word for word in content_words(text))


def _pieces(position: int, message: Said) -> Iterator[_Piece]:
    """Sentences of what was said, and lines of everything else: code and output have no sentences."""
    taken = 0
    if message.role in ("user", "assistant"):
        for sentence in sentences(message.text):
            yield from _piece(position, message.text, sentence.start, sentence.end)
            taken += sentence.end - sentence.start
    if taken < len(message.text.strip()) / 2:
        start = 0
        for line in message.text.splitlines(keepends=True):
            yield from _piece(position, message.text, start, start + len(line))
            start += len(line)


def _piece(position: int, text: str, start: int, end: int) -> Iterator[_Piece]:
    for begin in range(start, end, LONGEST):
        part = text[begin : min(end, begin + LONGEST)]
        if words := stems(part):
            left = len(part) - len(part.lstrip())
            yield _Piece(position, begin + left, begin + len(part.rstrip()), words)
