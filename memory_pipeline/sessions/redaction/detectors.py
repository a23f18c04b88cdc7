"""What a detector is, and the search that tells at once that a text has nothing for any of them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

# Characters that are rare in transcripts, as measured on real sessions; after the first few the choice is for those
# that many formats have, since it is the number of places looked at that costs.
_RARE = "~JKVYZQ<?@$zq&+GHWBFRXODNLMUIC'PAEST_-xkvw=:pybfg0987654321./uh"
# How far back a detector looks for what has to stand before a secret.
_BEFORE = 300


class Span(NamedTuple):
    """Where a secret stands in a text, and what kind of secret it is."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Detector:
    """Finds secrets of one kind: the pattern is matched only where one of the `literals` stands.

    What is redacted is the pattern's group `secret`, or all that matched. Every pattern has to be linear in what it
    reads, because a text may be hostile.
    """

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    # how many characters before the literal the pattern begins
    back: int = 0
    before: re.Pattern[str] | None = None
    accepts: Callable[[str], bool] | None = None
    # what the first search looks for where the literals alone are too frequent; the first character stands for itself
    hints: tuple[str, ...] = ()

    def spans(self, text: str, folded: str) -> Iterator[Span]:
        """The secrets in the text; the literals are looked for in `folded`, which has the same length."""
        group = "secret" if "secret" in self.pattern.groupindex else 0
        for literal in self.literals:
            place = folded.find(literal)
            while place >= 0:
                after = place + len(literal)
                found = self.pattern.match(text, place - self.back) if place >= self.back else None
                if found and self._fits(text, place, found[group]):
                    yield Span(*found.span(group), self.kind)
                    after = max(after, found.end())
                place = folded.find(literal, after)

    def _fits(self, text: str, place: int, secret: str) -> bool:
        if self.before and not self.before.search(text, max(place - _BEFORE, 0), place):
            return False
        return self.accepts is None or self.accepts(secret)


def trigger(literals: Iterable[str], hints: Iterable[str] = ()) -> re.Pattern[str]:
    """A pattern that finds any of the literals and hints, several times as fast as their plain alternation.

    It looks for the rarest character of each and compares the rest from there, so that most of a text is skipped.
    """
    everything = set(literals)
    by_pivot: defaultdict[str, defaultdict[int, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for literal in sorted(everything):
        if not any(other in literal for other in everything - {literal}):
            at = min(range(len(literal)), key=lambda index: _rarity(literal[index]))
            by_pivot[literal[at]][at].append((literal[:at], literal[at + 1 :]))
    by_start: defaultdict[str, list[str]] = defaultdict(list)
    for hint in filter(None, hints):
        by_start[hint[0]].append(hint[1:])
    # the frequent ones first, because they are compared one by one
    pivots = sorted({*by_pivot, *by_start}, key=_rarity, reverse=True)
    return re.compile(
        "|".join(
            f"{re.escape(pivot)}(?:{'|'.join([*_around(pivot, by_pivot[pivot]), *by_start[pivot]])})"
            for pivot in pivots
        )
    )


def _around(pivot: str, by_length: dict[int, list[tuple[str, str]]]) -> list[str]:
    """Literals about a character that they share; those that begin equally far before it in one look back."""
    patterns = []
    for length, literals in by_length.items():
        for rest in sorted({rest for _, rest in literals}):
            starts = "|".join(re.escape(start) for start, end in literals if end == rest)
            patterns.append((f"(?<=(?:{starts}){re.escape(pivot)})" if length else "") + re.escape(rest))
    if 0 in by_length or not patterns:
        return patterns
    # one look at the character before is enough to pass over most places
    last = "".join(sorted({re.escape(start[-1]) for literals in by_length.values() for start, _ in literals}))
    return [f"(?<=[{last}]{re.escape(pivot)})(?:{'|'.join(patterns)})"]


def _rarity(character: str) -> int:
    return _RARE.index(character) if character in _RARE else len(_RARE)
