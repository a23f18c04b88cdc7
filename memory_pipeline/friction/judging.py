"""What users said, weighed: how sure a sentence is an objection, and whether several are the same one, said again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean

from memory_pipeline.friction import sentence_weights
from memory_pipeline.friction.clustering import MIN_RARITY, Vector, Words, terms_of
from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.friction.frames import mostly_of_one_frame
from memory_pipeline.friction.patterns import MIN_SESSIONS
from memory_pipeline.friction.said import AGAIN, REVERSAL, Said, age
from memory_pipeline.friction.weights import CORRECTION, weights_of
from memory_pipeline.text import cues
from memory_pipeline.text.kinds import RULES, is_question, kind_of_user
from memory_pipeline.text.languages.cues import foreign_cues
from memory_pipeline.text.wording import retracted_names

POSSIBLE = -2.0
"""Logit of an objection from which words are compared with others: less is hardly one, whatever it is about."""
BY_CUE = 1.0
"""Logit of an objection in a language that the weights know nothing of, with a cue; without one as much below 0."""
CUED = 2.0
"""Added to the logit of words with a cue ("no", "again", "instead of"): the wordings that the weights were fitted on
have few of these, so that the others are learnt."""
TOLD, OWNED, OPENS = 1.0, 1.0, -2.0
"""Added to the logit of what was observed as a correction, a rule or a preference, or has a cue of one; where the
agent's answer owns to a mistake; and of other words that open a session, before which nobody did anything. Of 20
objections in recorded sessions none was the first message, and 45 % were owned to, of other words 17 %."""
CHANGED_MIND = -3.0
"""Logit of words by which a user ends what they wanted themselves."""
MAX_TOLD_SESSIONS = 4
"""From which more sessions tell no more."""
MAX_PAIRED = 60
"""Members of which each two are compared."""


class Judge:
    """What was said in a window of days, the oldest first, each with how sure it is an objection: a logit."""

    def __init__(self, said: Said, vectors: Mapping[str, Vector], words: Words) -> None:
        everything = {e.event_id: e for e in (*said.corrections, *said.changes, *said.remarks) if terms_of(e.text)}
        self.events = sorted(everything.values(), key=age)
        self.words = words
        self.changes = {e.event_id for e in said.changes}
        told = {e.event_id for e in said.corrections}
        self.sure = {e.event_id: _sure(e, vectors.get(e.event_id), e.event_id in told) for e in self.events}
        self.sure |= {e.event_id: CHANGED_MIND for e in said.changes if REVERSAL.search(e.text)}

    def possible(self) -> list[FrictionEvent]:
        """Those that may object or that end something."""
        return [e for e in self.events if e.event_id in self.changes or self.sure[e.event_id] >= POSSIBLE]

    def features(self, members: Sequence[FrictionEvent]) -> dict[str, float]:
        """What tells whether several are the same correction, by the names of `weights.json`."""
        return {
            "sure": fmean(self.sure[m.event_id] for m in members),
            "sessions": min(MAX_TOLD_SESSIONS, len({m.session_id for m in members})),
            "changes": fmean(m.event_id in self.changes for m in members),
            "one_frame": float(mostly_of_one_frame([m.text for m in members[:MAX_PAIRED]])),
            "rarest_deed": self._rarest_deed(members),
        }

    def recurs(self, members: Sequence[FrictionEvent]) -> float:
        """How likely they are the same correction in two sessions or more, from 0 to 1."""
        if len({m.session_id for m in members}) < MIN_SESSIONS:
            return 0.0
        return weights_of(CORRECTION).probability(self.features(members))

    def _rarest_deed(self, members: Sequence[FrictionEvent]) -> float:
        """How rare what was done before both is, of two sessions, in the mean."""
        pairs = ((a, b) for a, b in combinations(members[:MAX_PAIRED], 2) if a.session_id != b.session_id)
        return fmean(_or_nothing(max(map(self._rarity, a.did & b.did), default=0.0) for a, b in pairs))

    def _rarity(self, deed: str) -> float:
        rare = self.words.rarity_of_deed(deed)
        return rare if rare >= MIN_RARITY else 0.0


def _or_nothing(values: Iterable[float]) -> list[float]:
    return list(values) or [0.0]


def _sure(event: FrictionEvent, vector: Vector | None, is_told: bool) -> float:
    logit = _objects(event.text, vector) + OWNED * event.is_owned + CUED * corrects(event.text)
    return logit + (TOLD if is_told else OPENS * event.opens)


def _objects(text: str, vector: Vector | None) -> float:
    if sentence_weights.are_known(text):
        return sentence_weights.load(sentence_weights.OBJECTIONS).logit(sentence_weights.parts_of(text), vector)
    return BY_CUE if kind_of_user(text) in RULES else -BY_CUE


def corrects(text: str) -> bool:
    """Whether it says so by a cue: a rule or a wish alone may be of any new work, and "who still uses it?" asks."""
    if is_question(text):
        return False
    foreign = foreign_cues(text)
    cue = foreign.correction if foreign else cues.CORRECTION
    return cue.search(text) is not None or bool(retracted_names(text)) or bool(AGAIN.search(text))
