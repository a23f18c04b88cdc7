"""Where the patterns of a day lie among the observations of its lookback, for the picture."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.embeddings.stage import vectors_of
from memory_pipeline.friction.living import Pattern
from memory_pipeline.friction.picture import Place, picture
from memory_pipeline.lake.rows import ObservationRow, typed_rows
from memory_pipeline.text.encoder import Encoder
from memory_pipeline.workspace import Workspace

MAX_POINTS = 2_000
"""That are drawn: of more, every so many, and all that belong to a pattern. They would lie upon each other."""
_COLUMNS = ("observation_id", "session_id", "observed_at", "evidence")


def draw(workspace: Workspace, encoder: Encoder, day: date, patterns: Sequence[Pattern]) -> tuple[bytes | None, str]:
    """The picture of the patterns among the observations of the day's lookback, and a sentence on it. Without one the
    sentence says why."""
    if not patterns:
        return None, "There is no pattern to draw."
    days = lookback(day, workspace.settings.lookback_days)
    observations = typed_rows(workspace.lake.read("observations", days, _COLUMNS), ObservationRow)
    places = _places(workspace, days, observations, patterns)
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


def _places(
    workspace: Workspace, days: Sequence[date], observations: Sequence[ObservationRow], patterns: Sequence[Pattern]
) -> dict[str, list[Place]]:
    """By pattern: the observations of what happened, and where there is none, the last of the session before it."""
    of_message: dict[str, list[str]] = defaultdict(list)
    of_session: dict[str, list[ObservationRow]] = defaultdict(list)
    for observation in sorted(observations, key=lambda o: (o["observed_at"], o["observation_id"])):
        of_session[observation["session_id"]].append(observation)
        for message_id in {span["message_id"] for span in observation["evidence"]}:
            of_message[message_id].append(observation["observation_id"])
    wanted = {span["message_id"] for p in patterns for span in p.row["evidence"]} - of_message.keys()
    said = workspace.lake.read("messages", days, ["message_id", "session_id", "said_at"])
    for message_id, session_id, said_at in said.filter(pl.col("message_id").is_in(list(wanted))).iter_rows():
        if inside := of_session.get(session_id):
            before = [o for o in inside if o["observed_at"] <= said_at]
            of_message[message_id].append((before or inside[:1])[-1]["observation_id"])
    found = {}
    for pattern in patterns:
        messages = {span["message_id"] for span in pattern.row["evidence"]}
        marks = {Place(point, m not in wanted) for m in messages for point in of_message.get(m, ())}
        found[pattern.row["pattern_id"]] = sorted(marks, key=lambda place: (place.point, place.is_own))
    return found


def _chosen(ids: Sequence[str], places: Mapping[str, Sequence[Place]]) -> list[str]:
    every = -(-len(ids) // MAX_POINTS) or 1
    return sorted({*sorted(ids)[::every], *(place.point for of in places.values() for place in of)})
