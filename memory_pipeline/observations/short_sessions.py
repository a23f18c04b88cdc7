"""Observations of sessions that are too short to be observed as a whole: what the user said.

The extractive observer finds them, whichever observer is set: a model would be asked for every short session, most of
which contain nothing that lasts. What the user laid down is high, as in long ones; the rest is there to be searched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.types import Segment, WindowMessage
from memory_pipeline.text.priorities import LOW

OBSERVER = ExtractiveObserver(budget=1.0)
"""The observer has room for everything: there is little."""


def facts_in(messages: Sequence[WindowMessage]) -> list[Segment]:
    """The segments with what the user said in them, without questions; none where they only asked or agreed."""
    found = []
    for segment in OBSERVER.observe(messages):
        facts = tuple(fact for fact in segment.facts if fact.trust == "user" and fact.priority != LOW)
        if facts:
            found.append(replace(segment, facts=facts))
    return found
