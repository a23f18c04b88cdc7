"""Selection of the lines of a period. It needs no model, and a line contains only what was said.

A line is a fact or a narrative as it was observed, unchanged: dropping words may drop the negation, the object or the
number of a rule and reverse it. So a period gets fewer lines, never shorter ones.
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
"""Kinds that still say something when the work is done, after those that are normative."""


@dataclass(frozen=True, slots=True)
class Line:
    """`sources` are ids of rows of the level below, the one that gave the words first."""

    text: str
    kind: str
    priority: str
    sources: tuple[str, ...]
    first_seen: datetime
    last_seen: datetime


def count_words(text: str) -> int:
    return len(words(text))


def distil(lines: Iterable[Line], word_budget: int) -> list[Line]:
    """The kept lines, oldest first: every high, and the best of the rest within the remaining room.

    Repeated lines become one with the newest words, if it contains all words of the others.
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
    """The lines, with repetitions merged into the last one. A high is never merged into a lower one."""
    newest_first = sorted(lines, key=lambda line: (RANK[line.priority], -line.last_seen.timestamp(), line.sources))
    found: list[list[Line]] = []
    by_word: dict[str, list[tuple[list[str], list[Line]]]] = defaultdict(list)
    for line in newest_first:
        said = words(line.text)
        # one that says it all has each of its words, also the rarest
        for leader, members in min((by_word[word] for word in said), key=len, default=[]):
            if says_all(leader, said) and is_same(members[0].text, line.text):
                members.append(line)
                break
        else:
            members = [line]
            found.append(members)
            for word in set(said):
                by_word[word].append((said, members))
    return [_one(members) for members in found]


def _one(members: Sequence[Line]) -> Line:
    """The first one's words, with the sources of all."""
    return replace(
        members[0],
        sources=tuple(source for member in members for source in member.sources),
        first_seen=min(member.first_seen for member in members),
        last_seen=max(member.last_seen for member in members),
    )


def _rank(line: Line) -> tuple[int, int, int, float, tuple[str, ...]]:
    """The rank of a line that is not high, least first: by priority, kind, support and date. A narrative, which
    describes a topic, counts as a medium fact that lasts."""
    is_told = line.kind == NARRATIVE
    kind = 0 if line.kind in NORMATIVE else 1 if is_told or line.kind in LASTING else 2
    priority = RANK[MEDIUM if is_told else line.priority]
    return priority, kind, -len(line.sources), -line.last_seen.timestamp(), line.sources
