"""Replacement of older state by newer: "uses uv instead of pip" ends "installs packages with pip", and a user's "no
weekly reports after all" ends "I want weekly reports". `text/relation.py` compares the words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from memory_pipeline.reflections.types import Observation
from memory_pipeline.scope import may_end
from memory_pipeline.text.kinds import NORMATIVE, RULES
from memory_pipeline.text.relation import replaces, statement

STATE = ("state_change", "decision", *RULES, "convention")
"""Kinds that describe a state, which can change; causes and results cannot."""
NEWER = ("state_change", "decision", *RULES)
TRUSTED = ("user", "assistant")


def superseded_by(observed: Sequence[Observation]) -> dict[str, str]:
    """The replaced observations, by id, each with the id of the newest one in its chain of replacements."""
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
