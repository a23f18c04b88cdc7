"""The interface of a detector, and the prefilter that selects the detectors for a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

PRIVATE, LEFT_OUT = "<private>", "[private]"
"""The mark before words that a user wants left out, and what stands in their place."""


class Span(NamedTuple):
    """The span of a secret in a text, and its kind."""

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
    # what has to stand before the secret, and how far back that is looked for
    before: re.Pattern[str] | None = None
    reach: int = 200
    accepts: Callable[[str], bool] | None = None
    # what the prefilter looks for, in the syntax of re2, where the literals alone are too frequent
    hints: tuple[str, ...] = ()

    @property
    def triggers(self) -> tuple[str, ...]:
        """The pattern that a text must contain for the detector to find anything, in the syntax of re2."""
        return self.hints or tuple(map(re.escape, self.literals))

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
        if self.before and not self.before.search(text, max(place - self.reach, 0), place):
            return False
        return self.accepts is None or self.accepts(secret)


class Prefilter:
    """Selects in one pass over a text the finders that may find something.

    google-re2 runs at 270 MB/s whatever the number of patterns; `re` takes four times as long for the same, and most
    texts have nothing for any finder.
    """

    def __init__(self, triggers: Sequence[Iterable[str]]) -> None:
        options = re2.Options()
        # so many states are never reached, but running out of memory would hide secrets
        options.max_mem = 64 * 1024 * 1024
        self._set = re2.Set.SearchSet(options)
        self._finders: list[int] = []
        for finder, patterns in enumerate(triggers):
            for pattern in patterns:
                self._set.Add(pattern)
                self._finders.append(finder)
        self._set.Compile()

    def finders(self, text: str) -> list[int]:
        """The numbers of the finders, in order."""
        try:
            found = self._set.Match(text)
        except UnicodeEncodeError:
            found = self._set.Match(text.encode("utf-8", "replace"))
        return sorted({self._finders[index] for index in found}) if found else []


def fold(text: str) -> str:
    """The text in lower case, with every character where it was."""
    folded = text.lower()
    if len(folded) != len(text):
        # a few letters become longer in lower case, and then the positions would be wrong
        folded = "".join(character.lower() if character.isascii() else character for character in text)
    return folded
