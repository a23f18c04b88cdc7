"""Selection and rendering of lines within a token budget: the engine of the brief, the context pack and the summary of
a compaction, which differ in their sources and budgets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from memory_pipeline.text.tokens import estimate


@dataclass(frozen=True)
class Line:
    """A line with its id for `memory why`."""

    id: str
    text: str
    """The line as shown; empty if the heading of its group is enough."""
    rank: tuple[float, ...] = ()
    """Lines with the lowest rank are chosen first; ties keep their order."""
    group: str = ""
    """A heading above the line, which the next line with the same heading does not repeat."""
    day: str | None = None
    said: str = ""
    note: str = ""
    """A field of the line in the JSON of a brief, like `day` and `said`."""


@dataclass(frozen=True)
class Section:
    """Lines in the order in which they are shown, below a title."""

    title: str
    lines: Sequence[Line]
    share: float = 1.0
    """The share of the budget that is reserved for the section."""
    intro: str = ""
    """A text below the title; a section with one is shown even without lines."""
    is_reviewed: bool = False

    @property
    def heading(self) -> str:
        return "\n".join(filter(None, (self.title, self.intro)))

    def rendered(self) -> str:
        parts, above = [self.heading], ""
        for line in self.lines:
            if line.group != above:
                above = line.group
                parts.append(above)
            parts += [line.text] if line.text else []
        return "\n".join(parts)


@dataclass(frozen=True)
class Briefing:
    """The text that `memory context` prints, with what it logs."""

    text: str
    """The text; empty if there is nothing to show."""
    project: str | None
    tokens: int
    shown: list[str]
    """Ids of the lines in the text."""
    sections: list[dict[str, Any]]
    left_out: int
    """Number of lines that did not fit."""
    problems: list[str]
    """A sentence for each part that could not be read."""


def choose(sections: Sequence[Section], budget: int) -> list[Section]:
    """The sections with those of their lines that fit into the budget, in tokens.

    Each section first gets its share; the rest of the budget is used in the order of the sections. A section without
    lines and intro is left out.
    """
    present = [section for section in sections if section.lines or section.intro]
    choices = [_Choice(section) for section in present]
    left = budget - sum(choice.used for choice in choices)
    for is_last in (False, True):
        for choice in choices:
            room = left if is_last else min(left, int(choice.section.share * budget))
            left -= choice.fill(room)
    return [chosen for choice in choices if (chosen := choice.chosen()).lines or chosen.intro]


class _Choice:
    """The lines of a section that are chosen so far."""

    def __init__(self, section: Section) -> None:
        self.section = section
        lines = section.lines
        self._order = sorted(range(len(lines)), key=lambda index: (lines[index].rank, index))
        self._runs = [0, *accumulate(one.group != other.group for one, other in pairwise(lines))]
        """For each line, the index of its run of lines with the same heading."""
        self._indices = set[int]()
        self._headings = set[int]()
        self.used = _cost(section.heading) + 1 if section.intro else 0

    def fill(self, room: int) -> int:
        """Choose further lines of at most `room` tokens. Returns the tokens used."""
        before = self.used
        for index in self._order:
            cost = 0 if index in self._indices else self._cost(index)
            if index not in self._indices and self.used + cost - before <= room:
                self.used += cost
                self._indices.add(index)
                self._headings.add(self._runs[index])
        return self.used - before

    def chosen(self) -> Section:
        lines = tuple(self.section.lines[index] for index in sorted(self._indices))
        section = self.section
        return Section(section.title, lines, section.share, section.intro, section.is_reviewed)

    def _cost(self, index: int) -> int:
        """Tokens of the line, including headings that no chosen line has."""
        line = self.section.lines[index]
        title = 0 if self.used else _cost(self.section.heading) + 1
        heading = _cost(line.group) if line.group and self._runs[index] not in self._headings else 0
        return title + heading + (_cost(line.text) if line.text else 0)


def _cost(text: str) -> int:
    return estimate(f"{text}\n")
