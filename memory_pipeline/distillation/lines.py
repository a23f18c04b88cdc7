"""Selection of the lines of a period. It needs no model, and a line contains only observed text.

A line is an unchanged fact or narrative: dropping words may drop the negation, the object or the number of a rule and
reverse it. So a period gets fewer lines, not shorter ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memory_pipeline.text.kinds import NORMATIVE
from memory_pipeline.text.priorities import HIGH, MEDIUM, RANK
from memory_pipeline.text.relation import is_same, says_all
from memory_pipeline.text.similarity import words

NARRATIVE = "narrative"
LASTING = ("root_cause", "convention", "state_change")
"""Kinds that still matter when the work is done, after the normative ones."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line. `sources` are ids of rows of the level below, the one with its words first."""

    text: str
    kind: str
    priority: str
    sources: tuple[str, ...]
    first_seen: datetime
    last_seen: datetime


def count_words(text: str) -> int:
    return len(words(text))


def distil(lines: Iterable[Line], word_budget: int) -> list[Line]:
    """The kept lines, oldest first: every high line, and the best of the others that fit into the budget.

    Repeated lines are merged into the newest one if it contains all words of the others.
    """
    merged = _merged(lines)
    kept = [line for line in merged if line.priority == HIGH]
    left = word_budget - sum(count_words(line.text) for line in kept)
    for line in sorted((line for line in merged if line.priority != HIGH), key=_rank):
        if (cost := count_words(line.text)) <= left:
            left -= cost
            kept.append(line)
    return sorted(kept, key=lambda line: (line.first_seen, line.sources))


def _merged(lines: Iterable[Line]) -> list[Line]:
    """The lines, with repetitions merged into the last one. A high line is never merged into a lower one."""
    newest_first = sorted(lines, key=lambda line: (RANK[line.priority], -line.last_seen.timestamp(), line.sources))
    found: list[list[Line]] = []
    by_word: dict[str, list[tuple[list[str], list[Line]]]] = defaultdict(list)
    for line in newest_first:
        said = words(line.text)
        # a line that contains all of its words has the rarest one too
        for leader, members in min((by_word[word] for word in said), key=len, default=[]):
            if says_all(leader, said) and is_same(members[0].text, line.text):
                members.append(line)
                break
        else:
            members = [line]
            found.append(members)
            for word in set(said):
                by_word[word].append((said, members))
    return [_merge_members(members) for members in found]


def _merge_members(members: Sequence[Line]) -> Line:
    """The first line with the sources of all."""
    return replace(
        members[0],
        sources=tuple(source for member in members for source in member.sources),
        first_seen=min(member.first_seen for member in members),
        last_seen=max(member.last_seen for member in members),
    )


def _rank(line: Line) -> tuple[int, int, int, float, tuple[str, ...]]:
    """The rank of a line that is not high, lowest first: by priority, kind, support and date. A narrative, which
    describes a topic, counts as a lasting fact of medium priority."""
    is_told = line.kind == NARRATIVE
    kind = 0 if line.kind in NORMATIVE else 1 if is_told or line.kind in LASTING else 2
    priority = RANK[MEDIUM if is_told else line.priority]
    return priority, kind, -len(line.sources), -line.last_seen.timestamp(), line.sources
