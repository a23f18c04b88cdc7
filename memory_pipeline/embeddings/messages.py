"""The stage that writes a day's rows of `message_embeddings`, and its points in the collection of messages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import date

from memory_pipeline.embeddings.index import MESSAGES, PASSAGE, WHOLE_SESSION, Point
from memory_pipeline.embeddings.passages import passages_of, points_of
from memory_pipeline.embeddings.stage import (
    EmbeddingsStage,
    IndexStage,
    Row,
    SummaryEmbeddingsStage,
    switch_when_complete,
)
from memory_pipeline.lake.rows import SessionRow, typed_rows
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace


class MessageEmbeddingsStage(IndexStage):
    """The stage that indexes all messages of a day, including those of sessions that are too short to be observed.

    The lexical index needs no model: without one, or while it cannot be loaded, the points have sparse vectors only and
    the day waits for the rest. Existing vectors are not computed again.
    """

    tables = ("message_embeddings",)
    inputs = ("messages", "sessions")
    records = (PASSAGE, WHOLE_SESSION)
    collection = MESSAGES
    needs_model = False

    def days_read(self, day: date) -> list[date]:
        return [day]

    def points(self, day: date) -> list[Point]:
        """The points of the messages of the day and of its sessions, without dense vectors; none for a day that
        retention has removed from search."""
        if self.lake.is_retired(self.tables[0], day):
            return []
        sessions: dict[str, SessionRow] = {}
        for row in typed_rows(self.lake.read("sessions", [day]), SessionRow):
            sessions.setdefault(row["session_id"], row)
        return points_of(passages_of(self.lake.read("messages", [day])), sessions, self.settings.owner)

    def _has_vector(self, point: Point, row: Row | None) -> bool:
        return super()._has_vector(point, row) and row is not None and row["content_hash"] == self._hash(point)

    def _reusable(self, point: Point, old: Mapping[str, Row]) -> None:
        """None: a point names its neighbours, so the whole day is replaced."""

    def _hash(self, point: Point) -> str:
        return hashlib.sha256(point.payload["text"].encode()).hexdigest()

    def _row(self, day: date, point: Point, has_vector: bool) -> Row:
        return {
            "day": day,
            "point_id": point.point_id,
            "record": point.payload["record"],
            "source_id": point.payload["source_id"],
            "session_id": point.payload["session_id"],
            "start": point.payload.get("start", 0),
            "end": point.payload.get("end", 0),
            "model": self.settings.embedding_model if has_vector else None,
            "dimension": self.encoder.dimension if has_vector else 0,
            "content_hash": self._hash(point),
        }


def rebuild(workspace: Workspace, days: Iterable[date], report: Callable[[date], None]) -> None:
    """Fill the collections of the configured model from the tables, in the given order of days. If interrupted, the
    next run does the rest."""
    stages = [
        kind.from_workspace(workspace) for kind in (EmbeddingsStage, SummaryEmbeddingsStage, MessageEmbeddingsStage)
    ]
    for day in days:
        for stage in stages:
            bring_up_to_date(stage, workspace.lake, day)
        report(day)
    switch_when_complete(workspace)
