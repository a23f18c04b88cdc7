"""The stages that write a day's rows of `embeddings` and `summary_embeddings`, and its points in the vector index."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import cached_property
from typing import Any, Self
from uuid import NAMESPACE_URL, uuid5

import polars as pl

from memory_pipeline.embeddings.index import (
    COLLECTION,
    MESSAGES,
    OBSERVATION,
    REFLECTION,
    SEGMENT,
    WHOLE_SESSION,
    WORDS,
    IndexUnavailableError,
    Point,
    is_sound,
    weigh,
)
from memory_pipeline.embeddings.opening import generation, mark_complete, open_index, searched_collection
from memory_pipeline.lake.rows import ObservationRow, ReflectionRow, SegmentRow, SessionRow, WindowRow, typed_rows
from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.settings import Settings
from memory_pipeline.stages import Built
from memory_pipeline.text.embedding_models import facts_of
from memory_pipeline.text.encoder import Encoder, EncoderUnavailableError, encoder_of
from memory_pipeline.text.terms import terms
from memory_pipeline.workspace.workspace import Workspace

Row = dict[str, Any]
"""A row of one of the tables of vectors."""
Payload = dict[str, Any]

VERSION = "2"
PAYLOAD_VERSION = 3


def point_id(source: str) -> str:
    """The id of a point, which depends on its source alone, so that storing it again replaces it."""
    return str(uuid5(NAMESPACE_URL, source))


class IndexStage:
    """A stage whose points are in a collection of the index. Unchanged texts are not encoded again."""

    tables: tuple[str]
    inputs: tuple[str, ...]
    """The tables whose rows determine what is stored."""
    records: tuple[str, ...]
    """The values of `record` of the stage's points; others belong to another stage."""
    collection = COLLECTION
    needs_model = True
    """Whether nothing is stored without an embedding model."""

    def __init__(self, workspace: Workspace, encoder: Encoder) -> None:
        self.settings, self.lake, self.encoder = workspace.settings, workspace.lake, encoder

    @classmethod
    def from_workspace(cls, workspace: Workspace) -> Self:
        return cls(workspace, encoder_of(workspace.settings.embedding_model))

    def points(self, day: date) -> list[Point]:
        """The points of the day without dense vectors; after retention only the kept ones."""
        raise NotImplementedError

    def fingerprint(self, day: date) -> str:
        name = self._generation if self.lake.is_for_planning else generation(self.settings, self.collection)
        digests = (self.lake.digest(table, [day]) for table in self.inputs)
        return fingerprint_of(VERSION, self.settings.embedding_model, name, *digests)

    @cached_property
    def _generation(self) -> str:
        """The name of the collection when a plan began."""
        return generation(self.settings, self.collection)

    def build(self, day: date) -> Built:
        """The rows of the day. Without a model or an index the day waits, and later stages are built without
        embeddings."""
        points, (table,) = self.points(day), self.tables
        old = {row["point_id"]: row for row in self.lake.read(table, [day]).to_dicts()}
        if not points and not old:
            return Built(self._frames([]), notes={"encoded": 0})
        missing: Exception | None = None
        try:
            try:
                dense, encoded = self._dense(points, old)
            except EncoderUnavailableError as error:
                if self.needs_model:
                    # the rows that retention left determine what is searched, so they are kept
                    return self._waiting([*old.values()] if self.lake.is_retired(table, day) else [], error)
                dense, encoded, missing = {}, 0, error
            self._store(day, points, dense, old)
        except IndexUnavailableError as error:
            return self._waiting([row for point in points if (row := self._reusable(point, old))], error)
        rows = [self._row(day, point, point.point_id in dense) for point in points]
        return self._waiting(rows, missing) if missing else Built(self._frames(rows), notes={"encoded": encoded})

    def _dense(self, points: list[Point], old: Mapping[str, Row]) -> tuple[dict[str, list[float]], int]:
        """The dense vectors by point, and the number of encoded ones; the index is closed while encoding."""
        dimension = self.encoder.dimension  # raises without a model, also if nothing is to be encoded
        embedded = [point for point in points if point.payload["record"] != WHOLE_SESSION]
        same = [point.point_id for point in embedded if self._has_vector(point, old.get(point.point_id))]
        known: dict[str, list[float]] = {}
        if same:
            with open_index(self.settings, dimension, self.collection) as index:
                known = {name: vector for name, vector in index.vectors(same).items() if is_sound(vector, dimension)}
        unknown = [point for point in embedded if point.point_id not in known]
        encoded = self.encoder.encode([point.payload["text"] for point in unknown])
        return known | {p.point_id: vector for p, vector in zip(unknown, encoded, strict=True)}, len(unknown)

    def _store(self, day: date, points: list[Point], dense: Mapping[str, list[float]], old: Mapping[str, Row]) -> None:
        """Store the day while holding the index, so that no reader sees a part of it."""
        with open_index(self.settings, self._dimension(), self.collection) as index:
            stored = index.ids(day, self.records)
            index.delete(stored - {point.point_id for point in points})
            index.upsert(
                [
                    Point(point.point_id, dense.get(point.point_id), point.payload, point.sparse)
                    for point in points
                    if point.point_id not in stored or not self._reusable(point, old)
                ]
            )

    def _dimension(self) -> int:
        """The dimension of the collection, which is needed without a model too."""
        try:
            return self.encoder.dimension
        except EncoderUnavailableError:
            return 1

    def _has_vector(self, point: Point, row: Row | None) -> bool:
        """Whether the stored vector is that of the point's text."""
        return row is not None and row["model"] == self.settings.embedding_model

    def _reusable(self, point: Point, old: Mapping[str, Row]) -> Row | None:
        """The stored row of the point, if neither it nor the point has to be replaced."""
        row = old.get(point.point_id)
        return row if row and row["content_hash"] == self._hash(point) else None

    def _hash(self, point: Point) -> str:
        return hashlib.sha256(repr(sorted(point.payload.items())).encode()).hexdigest()

    def _row(self, day: date, point: Point, has_vector: bool) -> Row:
        return {
            "day": day,
            "point_id": point.point_id,
            "kind": point.payload["record"],
            "source_id": point.payload["source_id"],
            "model": self.settings.embedding_model,
            "dimension": self.encoder.dimension,
            "content_hash": self._hash(point),
        }

    def _waiting(self, rows: Sequence[Row], error: Exception) -> Built:
        warnings = (f"By words only: {error}",)
        return Built(self._frames(rows), is_complete=False, notes={"why": str(error)}, warnings=warnings)

    def _frames(self, rows: Sequence[Row]) -> dict[str, pl.DataFrame]:
        (table,) = self.tables
        return {table: pl.DataFrame(rows, schema=TABLES[table].columns)}


class LineStage(IndexStage):
    """A stage that embeds every line of a day from some tables."""

    def lines(self, day: date) -> list[Payload]:
        """The payloads of all lines of the day, with id and text."""
        raise NotImplementedError

    def points(self, day: date) -> list[Point]:
        lines, (table,) = self.lines(day), self.tables
        if self.lake.is_retired(table, day):
            kept = set(self.lake.read(table, [day], ["source_id"])["source_id"])
            lines = [line for line in lines if line["source_id"] in kept]
        more = {"model": self.settings.embedding_model, "schema_version": PAYLOAD_VERSION}
        return [
            Point(point_id(line["source_id"]), None, line | more, {WORDS: weigh(terms(line["text"]), WORDS)})
            for line in lines
        ]


class EmbeddingsStage(LineStage):
    """The stage that embeds the observations of a day."""

    tables = ("embeddings",)
    inputs = ("observations", "windows")
    records = (OBSERVATION,)

    def lines(self, day: date) -> list[Payload]:
        rows = typed_rows(self.lake.read("observations", [day]), ObservationRow)
        windows = {row["dedupe_key"]: row for row in typed_rows(self.lake.read("windows", [day]), WindowRow)}
        return [_observation_payload(row, windows.get(row["dedupe_key"])) for row in rows]


class SummaryEmbeddingsStage(LineStage):
    """The stage that embeds the summaries of a day: its segments, by title and narrative, and its reflections."""

    tables = ("summary_embeddings",)
    inputs = ("segments", "reflections", "sessions")
    records = (SEGMENT, REFLECTION)

    def lines(self, day: date) -> list[Payload]:
        sessions = {row["session_id"]: row for row in typed_rows(self.lake.read("sessions", [day]), SessionRow)}
        segments = typed_rows(self.lake.read("segments", [day]), SegmentRow)
        reflections = typed_rows(self.lake.read("reflections", [day]), ReflectionRow)
        owner = self.settings.owner
        found = [_segment_payload(row, sessions.get(row["session_id"]), owner) for row in segments]
        return [line for line in found if line["text"]] + [_reflection_payload(row) for row in reflections]


def _observation_payload(row: ObservationRow, window: WindowRow | None) -> Payload:
    return {
        "source_id": row["observation_id"],
        "text": row["text"],
        "date": f"{row['day']}",
        "record": OBSERVATION,
        "session_id": row["session_id"],
        "cwd": row["cwd"],
        "project": row["project"],
        "owner": row["owner"],
        "dedupe_key": row["dedupe_key"],
        "priority": row["priority"],
        "kind": row["kind"],
        "timestamp": row["observed_at"].isoformat(),
        "tokens": row["tokens"],
        "trigger": window["trigger"] if window else None,
        "current_task": window["current_task"] if window else None,
    }


def _segment_payload(row: SegmentRow, session: SessionRow | None, owner: str) -> Payload:
    return {
        "source_id": row["segment_id"],
        "text": " – ".join(filter(None, (row["title"], row["narrative"]))),
        "date": f"{row['day']}",
        "record": SEGMENT,
        "session_id": row["session_id"],
        "project": session["project"] if session else None,
        "harness": session["harness"] if session else None,
        "owner": owner,
        "dedupe_key": row["dedupe_key"],
        "current_task": row["current_task"],
    }


def _reflection_payload(row: ReflectionRow) -> Payload:
    return {
        "source_id": row["reflection_id"],
        "text": row["text"],
        "date": f"{row['day']}",
        "record": REFLECTION,
        "project": next(iter(row["projects"] or ()), None),
        "owner": row["owner"],
        "priority": row["priority"],
        "kind": row["kind"],
        "timestamp": row["last_seen"].isoformat(),
        "tokens": row["tokens"],
    }


def switch_when_complete(workspace: Workspace) -> None:
    """Search each collection of the configured model as soon as every row has a vector in it."""
    settings = workspace.settings
    for table, base in (("embeddings", COLLECTION), ("message_embeddings", MESSAGES)):
        every = workspace.lake.read(table, columns=["model", "dimension"])
        rows = every.filter(pl.col("dimension") > 0)
        if rows.is_empty() or not (rows["model"] == settings.embedding_model).all():
            continue
        known, dimension = searched_collection(settings, base), int(rows["dimension"][-1])
        if known and known.is_complete and (known.model, known.dimension) == (settings.embedding_model, dimension):
            continue
        # after damage the tables still have the rows of days that are not rebuilt yet
        with suppress(IndexUnavailableError), open_index(settings, dimension, base, create=False) as index:
            if index.count() >= every.height:
                mark_complete(settings, dimension, base)


def settle_collections(workspace: Workspace) -> None:
    """Optimise the searched collections after writing days, so that they open quickly. A concurrent search is answered
    without embeddings; a collection that cannot be opened is skipped, as the stages have reported it."""
    settings = workspace.settings
    for base in (COLLECTION, MESSAGES):
        known = searched_collection(settings, base)
        if known and known.model == settings.embedding_model:  # nothing is added to that of a former model
            with suppress(IndexUnavailableError), open_index(settings, known.dimension, base, create=False) as index:
                index.settle()


def vectors_of(settings: Settings, encoder: Encoder, observation_ids: list[str]) -> dict[str, list[float]]:
    """The stored vectors by observation id, for comparison by cosine. Observations without one are left out; without a
    model or an index, or with an uncalibrated model, the result is empty."""
    if not observation_ids or not facts_of(settings.embedding_model).is_calibrated:
        return {}
    by_point = {point_id(o): o for o in observation_ids}
    try:
        with open_index(settings, encoder.dimension) as index:
            found = index.vectors(by_point.keys())
            return {by_point[p]: v for p, v in found.items() if is_sound(v, encoder.dimension)}
    except (EncoderUnavailableError, IndexUnavailableError):  # there may be rows from before it went missing
        return {}
