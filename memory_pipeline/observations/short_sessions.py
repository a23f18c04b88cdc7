"""Observations of sessions that are too short to be observed as a whole: only the user's statements.

The extractive observer finds them, whichever observer is configured: a model would be asked about every short session,
most of which contain nothing that lasts. Explicit statements of a user are high, as in long sessions; the rest is only
there to be searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.types import Segment, WindowMessage
from memory_pipeline.text.priorities import LOW

OBSERVER = ExtractiveObserver(budget=1.0)
"""An observer with room for everything, as a short session has little text."""


def facts_in(messages: Sequence[WindowMessage]) -> list[Segment]:
    """The segments with the user's statements, without questions; none if the user only asked or agreed."""
    found = []
    for segment in OBSERVER.observe(messages):
        facts = tuple(fact for fact in segment.facts if fact.trust == "user" and fact.priority != LOW)
        if facts:
            found.append(replace(segment, facts=facts))
    return found
