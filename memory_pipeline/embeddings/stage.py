"""The stages that write a day's rows of `embeddings` and `summary_embeddings`, and its points in the vector index."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
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
    WORDS,
    IndexUnavailableError,
    Point,
    is_sound,
)
from memory_pipeline.embeddings.opening import (
    collection_in_use,
    collection_name,
    generation,
    mark_complete,
    open_index,
    searched_collection,
)
from memory_pipeline.embeddings.sparse import weigh
from memory_pipeline.lake.rows import (
    EmbeddingRow,
    MessageEmbeddingRow,
    ObservationRow,
    ReflectionRow,
    SegmentRow,
    SessionRow,
    WindowRow,
    typed_rows,
)
from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.settings import Settings
from memory_pipeline.stages import Built
from memory_pipeline.text.embedding_models import facts_of
from memory_pipeline.text.encoder import Encoder, EncoderUnavailableError, encoder_of
from memory_pipeline.text.terms import terms
from memory_pipeline.workspace.workspace import Workspace

VERSION = "2"
PAYLOAD_VERSION = 3


def point_id(source_id: str) -> str:
    """The id of a line's point, which is deterministic, so that storing it again replaces it."""
    return str(uuid5(NAMESPACE_URL, source_id))


@dataclass(frozen=True)
class Item:
    """A line with a point: its id, its text, and its payload."""

    source_id: str
    text: str
    payload: dict[str, Any]

    @property
    def record(self) -> str:
        return str(self.payload["record"])


class IndexStage:
    """A stage whose points are in a collection of the index. Unchanged rows are not encoded again."""

    tables: tuple[str]
    inputs: tuple[str, ...]
    """The tables whose rows determine what is stored."""
    records: tuple[str, ...]
    """The values of `record` of the stage's points; others belong to another stage."""
    collection = COLLECTION

    def __init__(self, workspace: Workspace, encoder: Encoder) -> None:
        self.settings, self.lake, self.encoder = workspace.settings, workspace.lake, encoder

    @classmethod
    def from_workspace(cls, workspace: Workspace) -> Self:
        return cls(workspace, encoder_of(workspace.settings.embedding_model))

    def fingerprint(self, day: date) -> str:
        name = self._generation if self.lake.is_for_planning else generation(self.settings, self.collection)
        digests = (self.lake.digest(table, [day]) for table in self.inputs)
        return fingerprint_of(VERSION, self.settings.embedding_model, name, *digests)

    @cached_property
    def _generation(self) -> str:
        """The name of the collection when a plan began."""
        return generation(self.settings, self.collection)

    def build(self, day: date) -> Built:
        raise NotImplementedError

    def point_count(self, day: date) -> int:
        """The number of points that the day should have."""
        raise NotImplementedError

    def _frames(self, rows: Sequence[EmbeddingRow] | Sequence[MessageEmbeddingRow]) -> dict[str, pl.DataFrame]:
        (table,) = self.tables
        return {table: pl.DataFrame(rows, schema=TABLES[table].columns)}


class LineStage(IndexStage):
    """A stage that embeds every line of a day from some tables."""

    def items(self, day: date) -> list[Item]:
        """The searched lines of the day; after retention only the kept ones."""
        lines, (table,) = self.lines(day), self.tables
        if not self.lake.is_retired(table, day):
            return lines
        kept = set(self.lake.read(table, [day], ["source_id"])["source_id"])
        return [line for line in lines if line.source_id in kept]

    def lines(self, day: date) -> list[Item]:
        """All lines of the day."""
        raise NotImplementedError

    def point_count(self, day: date) -> int:
        return len(self.items(day))

    def build(self, day: date) -> Built:
        """The rows of the day: none without a model, the stored ones without an index. The day then waits, and later
        stages are built without embeddings."""
        items, table = self.items(day), self.tables[0]
        old = {row["source_id"]: row for row in typed_rows(self.lake.read(table, [day]), EmbeddingRow)}
        try:
            rows = [self._row(day, item) for item in items]
            encoded = self._store(day, items, rows, old)
        except EncoderUnavailableError as error:
            # the rows that retention left determine what is searched, so they are kept
            kept = list(old.values()) if self.lake.is_retired(table, day) else []
            return self._without_vectors(kept, error)
        except IndexUnavailableError as error:
            return self._without_vectors([row for row in rows if old.get(row["source_id"]) == row], error)
        return Built(self._frames(rows), notes={"encoded": encoded})

    def _without_vectors(self, rows: list[EmbeddingRow], error: Exception) -> Built:
        warnings = (f"No vectors, by words only: {error}",)
        return Built(self._frames(rows), is_complete=False, notes={"why": str(error)}, warnings=warnings)

    def _row(self, day: date, item: Item) -> EmbeddingRow:
        return {
            "day": day,
            "point_id": point_id(item.source_id),
            "kind": item.record,
            "source_id": item.source_id,
            "model": self.settings.embedding_model,
            "dimension": self.encoder.dimension,
            "content_hash": hashlib.sha256(repr(sorted(self._payload(item).items())).encode()).hexdigest(),
        }

    def _store(self, day: date, items: list[Item], rows: list[EmbeddingRow], old: dict[str, EmbeddingRow]) -> int:
        """Encode new lines with the index closed, then update the day's points; the number of encoded lines."""
        if not rows and not old:
            return 0
        with open_index(self.settings, self.encoder.dimension) as index:
            stored = index.ids(day, self.records)
            new = [
                (item, row)
                for item, row in zip(items, rows, strict=True)
                if row["point_id"] not in stored
                or row["source_id"] not in old
                or old[row["source_id"]]["content_hash"] != row["content_hash"]
            ]
            # the id depends on the text, so other changes need no new vector
            same = [r["point_id"] for _, r in new if (o := old.get(r["source_id"])) and o["model"] == r["model"]]
            known = {p: v for p, v in index.vectors(same).items() if is_sound(v, self.encoder.dimension)}
        unknown = [(item.text, r["point_id"]) for item, r in new if r["point_id"] not in known]
        encoded = self.encoder.encode([text for text, _ in unknown])
        vectors = known | {name: vector for (_, name), vector in zip(unknown, encoded, strict=True)}
        points = [
            Point(r["point_id"], vectors[r["point_id"]], self._payload(i), {WORDS: weigh(terms(i.text), WORDS)})
            for i, r in new
        ]
        gone = stored - {row["point_id"] for row in rows}
        if points or gone:
            with open_index(self.settings, self.encoder.dimension) as index:
                index.delete(gone)
                index.upsert(points)
        return len(unknown)

    def _payload(self, item: Item) -> dict[str, Any]:
        return item.payload | {
            "source_id": item.source_id,
            "text": item.text,
            "model": self.settings.embedding_model,
            "schema_version": PAYLOAD_VERSION,
        }


class EmbeddingsStage(LineStage):
    """The stage that embeds the observations of a day."""

    tables = ("embeddings",)
    inputs = ("observations", "windows")
    records = (OBSERVATION,)

    def lines(self, day: date) -> list[Item]:
        rows = typed_rows(self.lake.read("observations", [day]), ObservationRow)
        windows = {row["dedupe_key"]: row for row in typed_rows(self.lake.read("windows", [day]), WindowRow)}
        return [
            Item(row["observation_id"], row["text"], _observation_payload(row, windows.get(row["dedupe_key"])))
            for row in rows
        ]


class SummaryEmbeddingsStage(LineStage):
    """The stage that embeds the summaries of a day: its segments, by title and narrative, and its reflections."""

    tables = ("summary_embeddings",)
    inputs = ("segments", "reflections", "sessions")
    records = (SEGMENT, REFLECTION)

    def lines(self, day: date) -> list[Item]:
        sessions = {row["session_id"]: row for row in typed_rows(self.lake.read("sessions", [day]), SessionRow)}
        segments = typed_rows(self.lake.read("segments", [day]), SegmentRow)
        reflections = typed_rows(self.lake.read("reflections", [day]), ReflectionRow)
        found = [
            Item(row["segment_id"], text, _segment_payload(row, sessions.get(row["session_id"]), self.settings.owner))
            for row in segments
            if (text := _segment_text(row))
        ]
        return found + [Item(row["reflection_id"], row["text"], _reflection_payload(row)) for row in reflections]


def _observation_payload(row: ObservationRow, window: WindowRow | None) -> dict[str, Any]:
    return {
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


def _segment_payload(row: SegmentRow, session: SessionRow | None, owner: str) -> dict[str, Any]:
    return {
        "date": f"{row['day']}",
        "record": SEGMENT,
        "session_id": row["session_id"],
        "project": session["project"] if session else None,
        "harness": session["harness"] if session else None,
        "owner": owner,
        "dedupe_key": row["dedupe_key"],
        "current_task": row["current_task"],
    }


def _reflection_payload(row: ReflectionRow) -> dict[str, Any]:
    return {
        "date": f"{row['day']}",
        "record": REFLECTION,
        "project": next(iter(row["projects"] or ()), None),
        "owner": row["owner"],
        "priority": row["priority"],
        "kind": row["kind"],
        "timestamp": row["last_seen"].isoformat(),
        "tokens": row["tokens"],
    }


def _segment_text(row: SegmentRow) -> str:
    return " – ".join(filter(None, (row["title"], row["narrative"])))


def switch_when_complete(workspace: Workspace) -> None:
    """Search each collection of the configured model as soon as every row has a vector in it."""
    settings = workspace.settings
    for table, base in (("embeddings", COLLECTION), ("message_embeddings", MESSAGES)):
        every = workspace.lake.read(table, columns=["model", "dimension"])
        rows = every.filter(pl.col("dimension") > 0)
        if rows.height and bool((rows["model"] == settings.embedding_model).all()):
            dimension = int(rows["dimension"][-1])
            name = collection_name(settings, base, settings.embedding_model, dimension)
            known = searched_collection(settings, base)
            is_marked = known and known.is_complete and known.name == name
            if is_marked or _has_points(settings, name, dimension, base, every.height):
                mark_complete(settings, dimension, base)


def _has_points(settings: Settings, name: str, dimension: int, base: str, points: int) -> bool:
    """Whether a collection has this many points. After damage the tables still have the rows of days that are not
    rebuilt yet."""
    try:
        with collection_in_use(settings, name, dimension, base) as index:
            return index.count() >= points
    except IndexUnavailableError:
        return False


def settle_collections(workspace: Workspace) -> None:
    """Optimise the searched collections after writing days, so that they open quickly. A concurrent search is answered
    without embeddings; a collection that cannot be opened is skipped, as the stages have reported it."""
    for base in (COLLECTION, MESSAGES):
        if known := searched_collection(workspace.settings, base):
            with (
                suppress(IndexUnavailableError),
                collection_in_use(workspace.settings, known.name, known.dimension, base) as index,
            ):
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
