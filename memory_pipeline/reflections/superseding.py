"""Older state that newer state replaces: "uses uv instead of pip" ends "installs packages with pip".

Certain cases only: a clause of the newer one names what it gives up, one of the older one has that, both speak of the
same thing besides, and the older one says little else. English.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from memory_pipeline.reflections.model import Observed
from memory_pipeline.text.kinds import NORMATIVE, RULES
from memory_pipeline.text.similarity import content_words

STATE = ("state_change", "decision", *RULES, "convention")
"""Kinds that say how things are; a cause or a result stays what it was."""
NEWER = ("state_change", "decision", *RULES)
TRUSTED = ("user", "assistant")
MOST_OF_IT = 0.5
"""Share of its words that an older observation must have in the clause that has ended: the rest is lost with it."""
STEM = 6
"""Letters in which two forms of a word agree."""

_THING = r"(?:the |a |an |any |our |your |my |using |use |in |on |with |from )*[`\"'“‘]?([\w./@:+-]*\w/?)"
_GIVEN_UP = (
    re.compile(
        r"\b(?:instead of|rather than|in place of|away from|replac(?:e|es|ed|ing)|supersed(?:e|es|ed|ing)"
        r"|(?:switch|migrat|mov|chang)(?:e|es|ed|ing) (?:everything |over |away )?from|stop(?:s|ped)? using"
        rf"|no longer (?:use|uses|need|needs|run|runs|have|has)|drop(?:s|ped)?) (?!by\b|with\b|it\b){_THING}",
        re.I,
    ),
    re.compile(r"([\w./@:+-]*\w)[`\"'”’]? (?:is|was|are|were|has been|have been|got) (?:now )?replaced by\b", re.I),
)
_REFUSED = re.compile(
    r"\b(?:never|not|no|avoid|without|stop|remov\w+|delet\w+|(?:do|does|must|should|can)n['’]t)\b([^.;!?\n]*)", re.I
)
"""What the rest of a clause is about that refuses something."""
_WEAK = content_words(
    "use uses used using instead rather than replace replaces replaced replacing supersede drop dropped stop stopped "
    "switch switched migrate migrated move moved change changed longer now always never every everything all only also "
    "must need needs run runs go goes make makes take takes keep keeps work works decided decision agreed let's we "
    "there here thing one place new old project just or and real actual previous previously before earlier any more"
) | {"it", "this", "that", "them"}
"""Words that two sentences share whatever they are about."""


_CLAUSE = re.compile(r"(?<=[.;:!?])\s+|\n|\s[-–—]\s")


def superseded_by(observed: Sequence[Observed]) -> dict[str, str]:
    """For each observation that is replaced, by its id: the id of the newest one in the chain that replaces it."""
    by_word: dict[str, list[Observed]] = defaultdict(list)
    for o in observed:
        if o.kind in STATE:
            for word in content_words(o.text):
                by_word[word].append(o)
    direct: dict[str, str] = {}
    for newer in sorted(observed, key=_age, reverse=True):
        if newer.kind not in NEWER or newer.trust not in TRUSTED or not newer.may_lead:
            continue
        for clause in _CLAUSE.split(newer.text):
            gone = given_up(clause)
            for older in (o for word in sorted(gone) for o in by_word[word]):
                if older.observation_id not in direct and _may_end(newer, older) and _is_ended(older, clause, gone):
                    direct[older.observation_id] = newer.observation_id
    return {older: _end_of(older, direct) for older in direct}


def given_up(text: str) -> frozenset[str]:
    """What the text says is no longer used, as words."""
    found = (word for cue in _GIVEN_UP for match in cue.finditer(text) for word in content_words(match[1]))
    return frozenset(word for word in found if word not in _WEAK and len(word) > 1)


def _may_end(newer: Observed, older: Observed) -> bool:
    """What a person laid down is ended by a person only."""
    is_persons = older.trust == "user" and older.kind in NORMATIVE
    return _age(older) < _age(newer) and (newer.trust == "user" or not is_persons)


def _is_ended(older: Observed, by: str, gone: frozenset[str]) -> bool:
    """Whether the clause ends what the observation mostly says."""
    if gone & (given_up(older.text) | _refused(older.text)):  # it does without the same thing itself
        return False
    whole = content_words(older.text)
    clauses = (content_words(clause) for clause in _CLAUSE.split(older.text))
    return any(
        clause & gone and len(clause) >= MOST_OF_IT * len(whole) and _same_subject(content_words(by), clause, gone)
        for clause in clauses
    )


def _same_subject(newer: frozenset[str], older: frozenset[str], gone: frozenset[str]) -> bool:
    """Whether they share a word beside what is given up, or the older one says nothing else."""
    mine, others = (_stems(words - gone - _WEAK) for words in (newer, older))
    return not others or bool(mine & others)


def _refused(text: str) -> frozenset[str]:
    return frozenset(word for found in _REFUSED.finditer(text) for word in content_words(found[1]))


def _stems(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word[:STEM] if word.isalpha() else word for word in words)


def _age(observed: Observed) -> tuple[float, str]:
    return observed.observed_at.timestamp(), observed.observation_id


def _end_of(older: str, direct: Mapping[str, str]) -> str:
    while older in direct:  # always to a newer one, so it ends
        older = direct[older]
    return older
