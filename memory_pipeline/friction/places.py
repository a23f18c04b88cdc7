"""Where the patterns of a day lie among the observations of its lookback, for the picture."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from typing import TypeVar

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.embeddings.stage import vectors_of
from memory_pipeline.friction.living import Pattern
from memory_pipeline.friction.picture import Place, picture
from memory_pipeline.lake.rows import ObservationRow, typed_rows
from memory_pipeline.text.encoder import Encoder
from memory_pipeline.workspace.workspace import Workspace

Item = TypeVar("Item")
MAX_POINTS, MAX_OF_PATTERN = 2_000, 100
"""That are drawn of all observations, and of one pattern: of more, every so many. They would lie upon each other."""
_COLUMNS = ("observation_id", "session_id", "observed_at", "evidence")


def draw(workspace: Workspace, encoder: Encoder, day: date, patterns: Sequence[Pattern]) -> tuple[bytes | None, str]:
    """The picture of the patterns among the observations of the day's lookback, and a sentence on it. Without one the
    sentence says why."""
    if not patterns:
        return None, "There is no pattern to draw."
    days = lookback(day, workspace.settings.lookback_days)
    observations = typed_rows(workspace.lake.read("observations", days, _COLUMNS), ObservationRow)
    places = places_of(workspace, days, observations, patterns)
    chosen = _chosen([o["observation_id"] for o in observations], places)
    vectors = vectors_of(workspace.settings, encoder, chosen)
    if not vectors:
        return None, "Nothing is drawn: the observations of these days have no vectors that can be read."
    drawn = picture(vectors, places)
    if drawn is None:
        return None, f"Nothing is drawn: the vectors of all {len(vectors)} observations are the same."
    absent = [name for name, of in places.items() if not any(place.point in vectors for place in of)]
    said = f"{len(vectors)} of {len(observations)} observations of {len(days)} days"
    return drawn, said + (f"; without a vector near them: {', '.join(absent)}" if absent else "")


def places_of(
    workspace: Workspace, days: Sequence[date], observations: Sequence[ObservationRow], patterns: Sequence[Pattern]
) -> dict[str, list[Place]]:
    """By pattern: the observations of what happened, and where there is none, the last of the session before it."""
    of_message: dict[str, list[str]] = defaultdict(list)
    of_session: dict[str, list[ObservationRow]] = defaultdict(list)  # in order
    for observation in sorted(observations, key=lambda o: (o["observed_at"], o["observation_id"])):
        of_session[observation["session_id"]].append(observation)
        for message_id in {span["message_id"] for span in observation["evidence"]}:
            of_message[message_id].append(observation["observation_id"])
    wanted = {span["message_id"] for p in patterns for span in p.row["evidence"] or ()} - of_message.keys()
    said = workspace.lake.read("messages", days, ["message_id", "session_id", "said_at"])
    for message_id, session_id, said_at in said.filter(pl.col("message_id").is_in(list(wanted))).iter_rows():
        if inside := of_session.get(session_id):
            before = bisect_right(inside, said_at, key=lambda o: o["observed_at"])
            of_message[message_id].append(inside[max(before - 1, 0)]["observation_id"])
    found = {}
    for pattern in patterns:
        messages = {span["message_id"] for span in pattern.row["evidence"] or ()}
        marks = {Place(point, m not in wanted) for m in messages for point in of_message.get(m, ())}
        ordered = sorted(marks, key=lambda place: (place.point, place.is_own))
        found[pattern.row["pattern_id"]] = every_nth(ordered, MAX_OF_PATTERN)
    return found


def _chosen(ids: Sequence[str], places: Mapping[str, Sequence[Place]]) -> list[str]:
    return sorted({*every_nth(sorted(ids), MAX_POINTS), *(place.point for of in places.values() for place in of)})


def every_nth(items: Sequence[Item], limit: int) -> list[Item]:
    """At most so many of them, at equal distances."""
    return list(items[:: -(-len(items) // limit) or 1])
