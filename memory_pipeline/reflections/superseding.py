"""Older state that newer state replaces: "uses uv instead of pip" ends "installs packages with pip", and a user's "no
weekly reports after all" ends "I want weekly reports".

Certain cases only: a clause of the newer one names what it gives up, one of the older one has that, both speak of the
same thing besides, and the older one says little else. English, but for what a user takes back
(`text/taking_back.py`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from memory_pipeline.reflections.types import Observation
from memory_pipeline.scope import may_end
from memory_pipeline.text.kinds import NORMATIVE, RULES
from memory_pipeline.text.sameness import MIN_SHARE_IN_CLAUSE
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.taking_back import takes_back
from memory_pipeline.text.wording import COMMON_TO_CHANGES, refused_words, retracted_words

STATE = ("state_change", "decision", *RULES, "convention")
"""Kinds that say how things are; a cause or a result stays what it was."""
NEWER = ("state_change", "decision", *RULES)
TRUSTED = ("user", "assistant")
STEM = 6
"""Letters in which two forms of a word agree."""
_CLAUSE = re.compile(r"(?<=[.;:!?])\s+|\n|\s[-–—]\s")


def superseded_by(observed: Sequence[Observation]) -> dict[str, str]:
    """For each observation that is replaced, by its id: the id of the newest one in the chain that replaces it."""
    by_word: dict[str, list[Observation]] = defaultdict(list)
    for o in observed:
        if o.kind in STATE:
            for word in content_words(o.text):
                by_word[word].append(o)
    direct: dict[str, str] = {}
    for newer in sorted(observed, key=_age, reverse=True):
        if newer.kind not in NEWER or newer.trust not in TRUSTED or not newer.may_lead:
            continue
        for older in _taken_back(newer, by_word):
            direct.setdefault(older.observation_id, newer.observation_id)
        for clause in _CLAUSE.split(newer.text):
            retracted = retracted_words(clause)
            for older in (o for word in sorted(retracted) for o in by_word[word]):
                if (
                    older.observation_id not in direct
                    and _may_end(newer, older)
                    and _is_ended(older, clause, retracted)
                ):
                    direct[older.observation_id] = newer.observation_id
    return {older: _end_of(older, direct) for older in direct}


def _taken_back(newer: Observation, by_word: Mapping[str, Sequence[Observation]]) -> Iterator[Observation]:
    """What the same user wanted before and does not want now, or the other way round."""
    if newer.trust == "user" and newer.kind in NORMATIVE:
        near = {o.observation_id: o for word in sorted(content_words(newer.text)) for o in by_word[word]}
        for older in near.values():
            is_users = older.trust == "user" and older.kind in NORMATIVE
            if is_users and _may_end(newer, older) and takes_back(newer.text, older.text):
                yield older


def _may_end(newer: Observation, older: Observation) -> bool:
    """What a user set is ended by a user only, and what holds in one project by nothing that another one does."""
    is_users = older.trust == "user" and older.kind in NORMATIVE
    is_free = newer.trust == "user" or not is_users
    return _age(older) < _age(newer) and is_free and may_end(newer.projects, older.projects)


def _is_ended(older: Observation, by: str, retracted: frozenset[str]) -> bool:
    """Whether the clause ends what the observation mostly says."""
    if retracted & (retracted_words(older.text) | refused_words(older.text)):  # it does without the same thing itself
        return False
    whole = content_words(older.text)
    clauses = (content_words(clause) for clause in _CLAUSE.split(older.text))
    return any(
        clause & retracted
        and len(clause) >= MIN_SHARE_IN_CLAUSE * len(whole)
        and _same_subject(content_words(by), clause, retracted)
        for clause in clauses
    )


def _same_subject(newer: frozenset[str], older: frozenset[str], retracted: frozenset[str]) -> bool:
    """Whether they share a word beside what is given up, or the older one says nothing else."""
    mine, others = (_stems(words - retracted - COMMON_TO_CHANGES) for words in (newer, older))
    return not others or bool(mine & others)


def _stems(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word[:STEM] if word.isalpha() else word for word in words)


def _age(observed: Observation) -> tuple[float, str]:
    return observed.observed_at.timestamp(), observed.observation_id


def _end_of(older: str, direct: Mapping[str, str]) -> str:
    while older in direct:  # always to a newer one, so it ends
        older = direct[older]
    return older
