"""The facts observed in a period, and the lines selected from them. A line contains only observed text.

A line is an unchanged fact or narrative: dropping words may drop the negation, the object or the number of a rule and
reverse it. So a period gets fewer lines, not shorter ones.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from memory_pipeline.lake.rows import distinct
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.rows import IS_CERTAIN
from memory_pipeline.text.kinds import NORMATIVE
from memory_pipeline.text.priorities import HIGH, LOW, MEDIUM, RANK
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


INPUTS = ("windows", "segments", "observations")


@dataclass(frozen=True)
class Facts:
    """A line for each fact that is not outdated, oldest first, then one for each narrative. A line has one source."""

    lines: list[Line]
    projects: dict[str, list[str]]
    """The projects by id: of an observation, and of a segment those of its observations."""

    @property
    def texts(self) -> dict[str, str]:
        """The texts by id of the observation or segment."""
        return {line.sources[0]: line.text for line in self.lines}

    @property
    def words(self) -> int:
        return sum(count_words(line.text) for line in self.lines)

    @property
    def highs(self) -> list[str]:
        """Ids of the high facts, which must be retained."""
        return [line.sources[0] for line in self.lines if line.priority == HIGH]


def facts_of(lake: Lake, days: Iterable[date]) -> Facts:
    """The facts of these days."""
    days = list(days)
    observed = lake.read("observations", days).filter(IS_CERTAIN).sort("observed_at", "observation_id")
    began = dict(lake.read("windows", days, ["dedupe_key", "started_at"]).iter_rows())
    segments = lake.read("segments", days, ["segment_id", "dedupe_key", "narrative", "position"])
    lines: list[Line] = []
    times: dict[str, list[datetime]] = defaultdict(list)
    projects: dict[str, set[str | None]] = defaultdict(set)
    for o in observed.iter_rows(named=True):
        times[o["segment_id"]].append(o["observed_at"])
        for source in (o["observation_id"], o["segment_id"]):
            projects[source].add(o["project"])
        at = o["observed_at"]
        lines.append(Line(o["text"], o["kind"], o["priority"], (o["observation_id"],), at, at))
    for s in segments.sort("dedupe_key", "position").iter_rows(named=True):
        if s["dedupe_key"] in began and s["narrative"]:
            within = times.get(s["segment_id"]) or [began[s["dedupe_key"]]]
            lines.append(Line(s["narrative"], NARRATIVE, LOW, (s["segment_id"],), min(within), max(within)))
    return Facts(lines, {source: distinct(found) for source, found in projects.items()})
