"""Lines that a model wrote twice, in one answer or in those to two batches, as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from memory_pipeline.observations.language_model.specifics import specifics
from memory_pipeline.reflections.reflector import TRUSTS, Line
from memory_pipeline.text.priorities import RANK
from memory_pipeline.text.similarity import content_words, overlap

SAME = 0.6
"""Shared words per word of both from which two lines of a section with the same names and numbers are one."""


def merged(lines: Iterable[Line]) -> list[Line]:
    """Each thing once, with the newest wording and all of its sources."""
    found: list[Line] = []
    signatures: list[tuple[int, frozenset[str], frozenset[str]]] = []
    for line in sorted(lines, key=lambda line: (-line.last_seen.timestamp(), RANK[line.priority], line.text)):
        section, names, words = line.section, frozenset(specifics(line.text)), content_words(line.text)
        same = (i for i, (s, n, w) in enumerate(signatures) if (s, n) == (section, names) and overlap(w, words) >= SAME)
        place = next(same, None)
        if place is None:
            found.append(line)
            signatures.append((section, names, words))
        else:
            found[place] = _joined(found[place], line)
    return found


def _joined(one: Line, other: Line) -> Line:
    return replace(
        one,
        priority=min(one.priority, other.priority, key=RANK.__getitem__),
        sources=tuple(dict.fromkeys((*one.sources, *other.sources))),
        sessions=max(one.sessions, other.sessions),  # at least; some may be in both
        first_seen=min(one.first_seen, other.first_seen),
        last_seen=max(one.last_seen, other.last_seen),
        trust=min(one.trust, other.trust, key=lambda t: TRUSTS.index(t) if t in TRUSTS else len(TRUSTS)),
        superseded=tuple(dict.fromkeys((*one.superseded, *other.superseded))),
    )
