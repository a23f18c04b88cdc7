"""Friction found in two simple ways: texts that are near by cosine, or that share words, over two sessions or more.

Both take the same points: what people said, the calls that failed, and each observation at the message it is of. The
kind is given to them: a cluster has that of the friction in which it lies. One that lies in none counts as the kind
that its texts look like: words of a person as a repeated correction, failures as a recurring failure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from benchmarks.planted_friction.model import RECURRING_FAILURE, REPEATED_CORRECTION, Place
from benchmarks.planted_friction.running import Ran
from benchmarks.planted_friction.scoring import Found
from memory_pipeline.text.encoder import Encoder

COSINES = (0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9)
OVERLAPS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)
MOST = 1000
"""Characters of a text that are compared."""
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Points:
    """What is compared, with how near any two are in both ways."""

    places: list[Place]
    sessions: list[str]
    failed: list[bool]
    cosine: Any
    overlap: Any


def points_of(ran: Ran, encoder: Encoder) -> Points:
    place_of = ran.place_of()
    said = ran.messages.filter((pl.col("role") == "user") | pl.col("is_error"))
    rows = [(r["text"], place_of[r["message_id"]], r["session_id"], r["is_error"]) for r in said.to_dicts()]
    for row in ran.observations.to_dicts():
        of = next((e["message_id"] for e in row["evidence"] if e["message_id"] in place_of), None)
        if of:
            rows.append((row["text"], place_of[of], row["session_id"], False))
    texts = [text[:MOST] for text, *_ in rows]
    vectors = np.array(encoder.encode(texts), dtype=np.float32)
    return Points(
        [place for _, place, *_ in rows],
        [session for _, _, session, _ in rows],
        [failed for *_, failed in rows],
        vectors @ vectors.T,
        _overlaps(texts),
    )


def _overlaps(texts: Sequence[str]) -> Any:
    """Shared words of all words, for each pair."""
    bags = [set(WORD.findall(text.lower())) for text in texts]
    numbers = {word: number for number, word in enumerate(sorted(set().union(*bags)))}
    has = np.zeros((len(bags), len(numbers)), dtype=np.float32)
    for row, bag in enumerate(bags):
        has[row, [numbers[word] for word in bag]] = 1
    shared, sizes = has @ has.T, has.sum(axis=1)
    return shared / np.maximum(sizes[:, None] + sizes[None, :] - shared, 1)


def clusters(points: Points, near: Any, threshold: float) -> list[Found]:
    """What hangs together by pairs that are near enough, and spans sessions."""
    parent = list(range(len(points.places)))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for a, b in zip(*np.nonzero(np.triu(near >= threshold, 1)), strict=True):
        parent[root(int(a))] = root(int(b))
    groups: dict[int, list[int]] = defaultdict(list)
    for node in range(len(parent)):
        groups[root(node)].append(node)
    found = []
    for number, group in enumerate(groups.values()):
        if len({points.sessions[node] for node in group}) >= 2:
            failed = sum(points.failed[node] for node in group) * 2 > len(group)
            kind = RECURRING_FAILURE if failed else REPEATED_CORRECTION
            found.append(Found(f"c{number}", kind, frozenset(points.places[node] for node in group)))
    return found
