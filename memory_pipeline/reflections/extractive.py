"""The extractive reflector: near-duplicates become one line with its support, older days are condensed more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from memory_pipeline.embeddings.grouping import groups
from memory_pipeline.reflections.reflector import Line, Observed
from memory_pipeline.text.priorities import HIGH, LOW, MEDIUM, RANK

SAME_COSINE = 0.75
"""MiniLM cosine from which two short sentences say the same; paraphrased rules lie above, neighbours below."""
SAME_OVERLAP = 0.5
RECENT_DAYS = 1
"""Up to this age in days an observation is kept nearly verbatim: everything but low."""
CORE_DAYS = 3
"""From this age on only highs are kept, and what was said in more than one session."""
USER, RULES, ARCHITECTURE, PATTERNS = range(4)
SECTION_OF = {
    "preference": USER,
    "rule": RULES,
    "decision": ARCHITECTURE,
    "state_change": ARCHITECTURE,
}
MIN_SUPPORT_OF_LOW = 2
PASSING = ("progress", "statement")
"""Kinds of the model's words that matter for the day's log and to nobody later."""


@dataclass(frozen=True)
class ExtractiveReflector:
    name: str = "extractive-1"

    def reflect(
        self, day: date, observations: Sequence[Observed], vectors: Mapping[str, Sequence[float]]
    ) -> list[Line]:
        usable = [o for o in observations if not (o.kind == "question" or (o.trust != "user" and o.kind in PASSING))]
        # who leads a group gives it the words: the person before the model, high before low, the newest first
        ordered = sorted(
            usable, key=lambda o: (o.trust != "user", RANK[o.priority], -o.observed_at.timestamp(), o.observation_id)
        )
        by_id = {o.observation_id: o for o in ordered}
        merged = groups(
            list(by_id),
            {i: o.text for i, o in by_id.items()},
            vectors,
            min_cosine=SAME_COSINE,
            min_overlap=SAME_OVERLAP,
        )
        return [_line(members) for ids in merged if _is_kept(day, members := [by_id[i] for i in ids])]


def _is_kept(day: date, members: Sequence[Observed]) -> bool:
    """The gradient of time: what was said again or laid down stays, the rest fades with its age."""
    age = min((day - o.day).days for o in members)
    priority = min((o.priority for o in members), key=RANK.__getitem__)
    repeated = len({o.session_id for o in members}) >= MIN_SUPPORT_OF_LOW
    if age >= CORE_DAYS:
        return priority == HIGH or (priority == MEDIUM and repeated)
    if age > RECENT_DAYS:
        return priority == HIGH or repeated or (priority == MEDIUM and members[0].trust == "user")
    return priority != LOW or repeated


def _line(members: Sequence[Observed]) -> Line:
    lead = members[0]
    kind = "rule" if lead.kind == "correction" and len({o.session_id for o in members}) > 1 else lead.kind
    return Line(
        section=SECTION_OF.get(kind, PATTERNS),
        text=lead.text,
        priority=min((o.priority for o in members), key=RANK.__getitem__),
        kind=kind,
        sources=tuple(o.observation_id for o in members),
        sessions=len({o.session_id for o in members}),
        first_seen=min(o.observed_at for o in members),
        last_seen=max(o.observed_at for o in members),
    )
