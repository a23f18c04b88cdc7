"""The extractive reflector: near-duplicates become one line with its support, newer state replaces older, and older
days are condensed more."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from memory_pipeline.reflections.types import (
    Observation,
    Reflection,
    ReflectionLine,
    best_priority,
    best_trust,
    section_of,
)
from memory_pipeline.scope import are_apart, may_end
from memory_pipeline.text.kinds import NORMATIVE, RULES
from memory_pipeline.text.priorities import HIGH, LOW, MEDIUM, RANK
from memory_pipeline.text.relation import OBSERVED, groups, replaces, statement

RECENT_DAYS = 1
"""Maximum age in days at which nearly all observations are kept, except low ones."""
CORE_DAYS = 3
"""Age in days from which only high observations and repetitions across sessions are kept."""
MIN_SUPPORT_OF_LOW = 2
PASSING = ("progress", "statement")
"""Kinds of the model's statements that only matter for the day's log unless they are high."""
STATE = ("state_change", "decision", *RULES, "convention")
"""Kinds that describe a state, which can change; causes and results cannot."""
NEWER = ("state_change", "decision", *RULES)
TRUSTED = ("user", "assistant")

Vectors = Mapping[str, Sequence[float]]
Members = Sequence[Observation]


class ExtractiveReflector:
    """A reflector that needs no model."""

    name = version = "extractive-3"

    def reflect(self, day: date, observations: Sequence[Observation], vectors: Vectors) -> Reflection:
        usable = [
            o
            for o in observations
            if o.kind != "question" and (o.trust == "user" or o.kind not in PASSING or o.weight == HIGH)
        ]
        return Reflection(tuple(_lines(usable, vectors, _lead_order, lambda members: _is_kept(day, members))))

    def pool(self, day: date, lines: Sequence[Observation], vectors: Vectors) -> Reflection:
        by_section: dict[int | None, list[Observation]] = defaultdict(list)
        for line in lines:
            if line.kind != "question":
                by_section[line.section].append(line)
        merged = (_lines(by_section[section], vectors, _newest, bool) for section in sorted(by_section, key=str))
        return Reflection(tuple(line for found in merged for line in found))


def _lead_order(observed: Observation) -> tuple[bool, bool, int, float, str]:
    """The sort key of a group whose first member provides the words: user before model, high before low, newest
    first."""
    return (
        not observed.may_lead,
        observed.trust != "user",
        RANK[observed.priority],
        -observed.observed_at.timestamp(),
        observed.observation_id,
    )


def _newest(observed: Observation) -> tuple[bool, float, str]:
    return not observed.may_lead, -observed.observed_at.timestamp(), observed.observation_id


def _lines(
    observed: Sequence[Observation],
    vectors: Vectors,
    order: Callable[[Observation], Any],
    keep: Callable[[Members], bool],
) -> Iterator[ReflectionLine]:
    """The lines of the observations, with equal ones merged; state that a newer one replaces is dropped and named
    there."""
    replaced = superseded_by(observed)
    by_id = {o.observation_id: o for o in sorted(observed, key=order) if o.observation_id not in replaced}
    texts = {i: o.text for i, o in by_id.items()}

    def are_of_different_projects(one: str, other: str) -> bool:
        return are_apart(by_id[one].projects, by_id[other].projects)

    # a rule that one project rejects and another follows are two lines, however similar
    for ids in groups(list(by_id), texts, vectors, OBSERVED, are_of_different_projects):
        members = [by_id[i] for i in ids]
        if members[0].may_lead and keep(members):
            yield _line(members, tuple(sorted(older for older, newer in replaced.items() if newer in ids)))


def _is_kept(day: date, members: Members) -> bool:
    """Whether a line is kept at its age: repeated and normative ones are kept, others fade."""
    age = min((day - o.day).days for o in members)
    priority = best_priority(members)
    repeated = len({o.session_id for o in members}) >= MIN_SUPPORT_OF_LOW
    if age >= CORE_DAYS:
        return priority == HIGH or (priority == MEDIUM and repeated)
    if age > RECENT_DAYS:
        return priority == HIGH or repeated or (priority == MEDIUM and members[0].trust == "user")
    return priority != LOW or repeated


def _line(members: Members, superseded: tuple[str, ...]) -> ReflectionLine:
    lead = members[0]
    kind = "rule" if lead.kind == "correction" and len({o.session_id for o in members}) > 1 else lead.kind
    return ReflectionLine(
        section=section_of(kind) if lead.section is None else lead.section,
        text=lead.text,
        priority=best_priority(members),
        kind=kind,
        sources=tuple(o.observation_id for o in members),
        sessions=len({o.session_id for o in members}),
        first_seen=min(o.observed_at for o in members),
        last_seen=max(o.observed_at for o in members),
        trust=best_trust(members),
        superseded=superseded,
    )


def superseded_by(observed: Sequence[Observation]) -> dict[str, str]:
    """The replaced observations, by id, each with the id of the newest one in its chain of replacements.

    "Uses uv instead of pip" ends "installs packages with pip", and a user's "no weekly reports after all" ends "I want
    weekly reports".
    """
    by_word: dict[str, list[Observation]] = defaultdict(list)
    for o in observed:
        if o.kind in STATE:
            for word in statement(o.text).stems:
                by_word[word].append(o)
    direct: dict[str, str] = {}
    for newer in sorted(observed, key=_age, reverse=True):
        if newer.kind not in NEWER or newer.trust not in TRUSTED or not newer.may_lead:
            continue
        near = {o.observation_id: o for word in sorted(statement(newer.text).stems) for o in by_word[word]}
        for i, older in near.items():
            if i not in direct and _may_end(newer, older) and replaces(newer.text, older.text):
                direct[i] = newer.observation_id
    return {older: _newest_replacement(older, direct) for older in direct}


def _may_end(newer: Observation, older: Observation) -> bool:
    """Whether the observation may end the other: a user's only by a user, and one of a project not by another
    project."""
    is_users = older.trust == "user" and older.kind in NORMATIVE
    is_free = newer.trust == "user" or not is_users
    return _age(older) < _age(newer) and is_free and may_end(newer.projects, older.projects)


def _age(observed: Observation) -> tuple[float, str]:
    return observed.observed_at.timestamp(), observed.observation_id


def _newest_replacement(older: str, direct: Mapping[str, str]) -> str:
    while older in direct:  # always leads to a newer one, so the loop ends
        older = direct[older]
    return older
