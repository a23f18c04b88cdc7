"""Observations of sessions that are too short to be observed as a whole: the user's rules and corrections.

The extractive observer finds them, whichever observer is set: a model would be asked for every short session, most of
which contain nothing that lasts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.types import Segment, WindowMessage
from memory_pipeline.text.priorities import LOW

KINDS = ("rule", "preference", "correction")
OBSERVER = ExtractiveObserver(budget=1.0)
"""The observer has room for every rule: there are few."""


def rules_in(messages: Sequence[WindowMessage]) -> list[Segment]:
    """The segments in which the user set something, each with only that; none where they did not."""
    found = []
    for segment in OBSERVER.observe(messages):
        facts = tuple(f for f in segment.facts if f.trust == "user" and f.kind in KINDS and f.priority != LOW)
        if facts:
            found.append(replace(segment, facts=facts))
    return found
