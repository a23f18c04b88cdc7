"""The stage that writes a day's rows of `message_embeddings`, and its points in the collection of messages."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from datetime import date

from memory_pipeline.embeddings.index import MESSAGES, PASSAGE, WHOLE_SESSION, IndexUnavailableError, Point, is_sound
from memory_pipeline.embeddings.opening import open_index
from memory_pipeline.embeddings.passages import passages_of, points_of
from memory_pipeline.embeddings.stage import EmbeddingsStage, IndexStage, SummaryEmbeddingsStage, switch_when_complete
from memory_pipeline.lake.rows import MessageEmbeddingRow, SessionRow, typed_rows
from memory_pipeline.stages import Built, bring_up_to_date
from memory_pipeline.text.encoder import EncoderUnavailableError
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

    def days_read(self, day: date) -> list[date]:
        return [day]

    def point_count(self, day: date) -> int:
        return len(self.points(day))

    def points(self, day: date) -> list[Point]:
        """The points of the messages of the day and of its sessions, without dense vectors; none for a day that
        retention has removed from search."""
        if self.lake.is_retired(self.tables[0], day):
            return []
        sessions: dict[str, SessionRow] = {}
        for row in typed_rows(self.lake.read("sessions", [day]), SessionRow):
            sessions.setdefault(row["session_id"], row)
        return points_of(passages_of(self.lake.read("messages", [day])), sessions, self.settings.owner)

    def build(self, day: date) -> Built:
        points = self.points(day)
        old = {r["point_id"]: r for r in typed_rows(self.lake.read(self.tables[0], [day]), MessageEmbeddingRow)}
        if not points and not old:
            return Built(self._frames([]), notes={"encoded": 0})
        reason = ""
        try:
            try:
                dense, encoded = self._dense(points, old)
            except EncoderUnavailableError as error:
                dense, encoded, reason = {}, 0, f"By words only: {error}"
            self._store(day, points, dense)
        except IndexUnavailableError as error:
            return Built(self._frames([]), is_complete=False, warnings=(f"Not searchable yet: {error}",))
        rows = [self._row(day, point, dense) for point in points]
        warnings = (reason,) if reason else ()
        return Built(self._frames(rows), is_complete=not reason, notes={"encoded": encoded}, warnings=warnings)

    def _dense(self, points: list[Point], old: dict[str, MessageEmbeddingRow]) -> tuple[dict[str, list[float]], int]:
        """The dense vectors of the passages by point, and the number of encoded ones; the index is closed while
        encoding."""
        passages = [p for p in points if p.payload["record"] == PASSAGE]
        same = [
            p.point_id
            for p in passages
            if (row := old.get(p.point_id))
            and (row["model"], row["content_hash"]) == (self.settings.embedding_model, _hash(p))
        ]
        known: dict[str, list[float]] = {}
        if same:
            with open_index(self.settings, self.encoder.dimension, MESSAGES) as index:
                found = index.vectors(same)
            known = {name: vector for name, vector in found.items() if is_sound(vector, self.encoder.dimension)}
        unknown = [p for p in passages if p.point_id not in known]
        encoded = self.encoder.encode([p.payload["text"] for p in unknown])
        return known | {p.point_id: vector for p, vector in zip(unknown, encoded, strict=True)}, len(unknown)

    def _store(self, day: date, points: list[Point], dense: dict[str, list[float]]) -> None:
        """Store the whole day while holding the index, so that no reader sees a part of it."""
        whole = [Point(p.point_id, dense.get(p.point_id), p.payload, p.sparse) for p in points]
        with open_index(self.settings, self._dimension(), MESSAGES) as index:
            index.delete(index.ids(day) - {p.point_id for p in whole})
            index.upsert(whole)

    def _dimension(self) -> int:
        """The dimension of the collection, which is needed without a model too."""
        try:
            return self.encoder.dimension
        except EncoderUnavailableError:
            return 1

    def _row(self, day: date, point: Point, dense: dict[str, list[float]]) -> MessageEmbeddingRow:
        has_vector = point.point_id in dense
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
            "content_hash": _hash(point),
        }


def _hash(point: Point) -> str:
    return hashlib.sha256(point.payload["text"].encode()).hexdigest()


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
