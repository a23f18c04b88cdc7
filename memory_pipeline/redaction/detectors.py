"""The interface of a detector, and the prefilter that selects the detectors for a text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import re2  # type: ignore[import-untyped]

PRIVATE, LEFT_OUT = "<private>", "[private]"
"""The mark before text that a user wants removed, and its replacement."""


class Span(NamedTuple):
    """The span of a secret in a text, and its kind."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True)
class Detector:
    """A detector of one kind of secret: the pattern is matched only near one of the `literals`.

    The pattern's group `secret`, or the whole match, is redacted. Every pattern must take linear time, because a text
    may be hostile.
    """

    kind: str
    literals: tuple[str, ...]
    pattern: re.Pattern[str]
    # number of characters before the literal at which the pattern begins
    back: int = 0
    # pattern required before the secret, and the number of characters in which it is searched
    before: re.Pattern[str] | None = None
    reach: int = 200
    accepts: Callable[[str], bool] | None = None
    # patterns for the prefilter in re2 syntax, if the literals alone are too frequent
    hints: tuple[str, ...] = ()

    @property
    def triggers(self) -> tuple[str, ...]:
        """The pattern that a text must contain for the detector to find anything, in the syntax of re2."""
        return self.hints or tuple(map(re.escape, self.literals))

    def spans(self, text: str, folded: str) -> Iterator[Span]:
        """The spans of secrets in the text; the literals are searched in `folded`, which has the same length."""
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
    """Selection of the finders that may find something, in a single pass over the text.

    google-re2 runs at 270 MB/s whatever the number of patterns; `re` takes four times as long for the same, and most
    texts have nothing for any finder.
    """

    def __init__(self, triggers: Sequence[Iterable[str]]) -> None:
        options = re2.Options()
        # never reached in practice, but running out of memory would miss secrets
        options.max_mem = 64 * 1024 * 1024
        self._set = re2.Set.SearchSet(options)
        self._finders: list[int] = []
        for finder, patterns in enumerate(triggers):
            for pattern in patterns:
                self._set.Add(pattern)
                self._finders.append(finder)
        self._set.Compile()

    def finders(self, text: str) -> list[int]:
        """The indices of the finders, in order."""
        try:
            found = self._set.Match(text)
        except UnicodeEncodeError:
            found = self._set.Match(text.encode("utf-8", "replace"))
        return sorted({self._finders[index] for index in found}) if found else []


def fold(text: str) -> str:
    """The text in lower case, with unchanged offsets."""
    folded = text.lower()
    if len(folded) != len(text):
        # a few letters become longer in lower case, which would shift the offsets
        folded = "".join(character.lower() if character.isascii() else character for character in text)
    return folded
