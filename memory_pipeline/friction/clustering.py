"""Friction that recurs: signs that say the same in more than one session."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from memory_pipeline.friction.patterns import (
    IMPACT,
    REPEATED_CORRECTION,
    STALE_MEMORY,
    FrictionEvent,
    kind_of_failure,
    signature,
)
from memory_pipeline.lake.rows import distinct
from memory_pipeline.scope import may_end, told
from memory_pipeline.text.sameness import BROKEN_RULE, SAME_CORRECTION, groups
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.wording import breaks_with, retracted_names, takes_place_of

MIN_SESSIONS = 2


@dataclass(frozen=True, slots=True)
class Cluster:
    """A pattern with what happened (`members`, oldest first) and what would end it."""

    kind: str
    title: str
    target_file: str
    change: str
    members: tuple[FrictionEvent, ...]

    @property
    def sessions(self) -> int:
        return len({m.session_id for m in self.members})

    @property
    def severity(self) -> float:
        """Frequency times impact."""
        return len(self.members) * IMPACT[self.kind]

    @property
    def confidence(self) -> float:
        """That this is a pattern and no accident: 0.5 for two sessions, towards 1 with more."""
        return 1 - 1 / self.sessions


def corrections(
    events: Sequence[FrictionEvent],
    vectors: Mapping[str, Sequence[float]],
    memory_lines: Sequence[str],
    changes: Sequence[FrictionEvent] = (),
) -> list[Cluster]:
    """Clusters of what people had to say again. `vectors` by sign id; `memory_lines` are what was promoted.

    A changed mind is no recurrence: what was said later, also in `changes` (decisions that are no corrections), ends
    what it takes the place of, and a cluster has nothing that its later members give up.
    """
    standing = _standing(events, [*events, *changes])
    ordered = sorted(standing, key=_age, reverse=True)
    by_id = {s.event_id: s for s in ordered}
    texts = {i: s.text for i, s in by_id.items()}
    found = groups(list(by_id), texts, vectors, SAME_CORRECTION)
    rules = [(line, content_words(line)) for line in memory_lines]
    clusters = []
    for ids in found:
        members = _of_one_mind([by_id[i] for i in reversed(ids)])
        if len({m.session_id for m in members}) >= MIN_SESSIONS:
            clusters.append(_correction(members, rules))
    return clusters


def failures(events: Sequence[FrictionEvent]) -> list[Cluster]:
    """Clusters of tool failures with one and the same error, apart from numbers and names in it."""
    same: dict[str, list[FrictionEvent]] = defaultdict(list)
    for event in sorted(events, key=_age):
        same[signature(event.text)].append(event)
    return [
        Cluster(
            kind=kind_of_failure(members[-1].text),
            title=f"{members[-1].tool}: {clip(members[-1].text, 110)}",
            target_file="AGENTS.md",
            change=f"Say how to avoid or handle this failure of {members[-1].tool}: “{clip(members[-1].text, 160)}”",
            members=tuple(members),
        )
        for members in same.values()
        if len({m.session_id for m in members}) >= MIN_SESSIONS
    ]


def _standing(events: Sequence[FrictionEvent], said: Sequence[FrictionEvent]) -> list[FrictionEvent]:
    """The signs whose place nothing took that was said later."""
    ending = [s for s in said if retracted_names(s.text)]
    return [s for s in events if not any(_ends(e, s) and takes_place_of(e.text, s.text) for e in ending)]


def _of_one_mind(members: Sequence[FrictionEvent]) -> tuple[FrictionEvent, ...]:
    """Without those that hold on to what a later one gives up; oldest first, as they come."""
    return tuple(m for m in members if not any(_ends(n, m) and breaks_with(n.text, m.text) for n in members))


def _ends(newer: FrictionEvent, older: FrictionEvent) -> bool:
    """Whether it was said later, and not of another project."""
    return _age(older) < _age(newer) and may_end(distinct([newer.project]), distinct([older.project]))


def _age(event: FrictionEvent) -> tuple[datetime, str]:
    return event.at, event.event_id


def _correction(members: tuple[FrictionEvent, ...], rules: Sequence[tuple[str, frozenset[str]]]) -> Cluster:
    newest = members[-1]
    said = content_words(newest.text)
    alike = (line for line, words in rules if BROKEN_RULE.by_words(said, words))
    known = next((line for line in alike if not breaks_with(newest.text, line)), None)
    if known:
        return Cluster(
            STALE_MEMORY,
            f"A remembered rule is still broken: {clip(known, 100)}",
            "AGENTS.md",
            f"Move the rule where the agent cannot overlook it (AGENTS.md, a hook or a lint): “{clip(known, 200)}”",
            members,
        )
    where = told(distinct(m.project for m in members))
    return Cluster(
        REPEATED_CORRECTION,
        clip(newest.text, 120),
        "MEMORY.md",
        f"Add under Hard Rules{f' ({where})' if where else ''}: “{clip(newest.text, 240)}”",
        members,
    )
