"""A day's rows of `embeddings`, and its points in the vector index."""

from __future__ import annotations

import hashlib
from datetime import date
from typing import Any, Self
from uuid import NAMESPACE_URL, uuid5

import polars as pl

from memory_pipeline.embeddings.index import COLLECTION, MESSAGES, WORDS, IndexUnavailableError, Point, is_sound
from memory_pipeline.embeddings.opening import generation, mark_complete, open_index
from memory_pipeline.embeddings.sparse import weigh
from memory_pipeline.lake.rows import EmbeddingRow, ObservationRow, typed_rows
from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.settings import Settings
from memory_pipeline.stage import Built
from memory_pipeline.text.embedding_models import facts_of
from memory_pipeline.text.encoder import Encoder, EncoderUnavailableError, encoder_of
from memory_pipeline.text.terms import terms
from memory_pipeline.workspace import Workspace

VERSION = "1"
PAYLOAD_VERSION = 3


def point_id(observation_id: str) -> str:
    """The same observation always has the same point, so that storing it again replaces it."""
    return str(uuid5(NAMESPACE_URL, observation_id))


class EmbeddingsStage:
    """Gives every observation of a day its vector. What has not changed is not encoded again."""

    tables = ("embeddings",)

    def __init__(self, workspace: Workspace, encoder: Encoder) -> None:
        self.settings, self.lake, self.encoder = workspace.settings, workspace.lake, encoder

    @classmethod
    def from_workspace(cls, workspace: Workspace) -> Self:
        return cls(workspace, encoder_of(workspace.settings.embedding_model))

    def fingerprint(self, day: date) -> str:
        return fingerprint_of(
            VERSION,
            self.settings.embedding_model,
            generation(self.settings),
            self.lake.digest("observations", [day]),
        )

    def build(self, day: date) -> Built:
        """Without a model no rows, without an index those that are stored: the day waits, and the pipeline goes on by
        words alone."""
        observations = typed_rows(self.lake.read("observations", [day]), ObservationRow)
        old = {row["source_id"]: row for row in typed_rows(self.lake.read("embeddings", [day]), EmbeddingRow)}
        try:
            rows = [self._row(day, o) for o in observations]
            encoded = self._store(day, observations, rows, old)
        except EncoderUnavailableError as error:
            return _by_words([], error)
        except IndexUnavailableError as error:
            return _by_words([row for row in rows if old.get(row["source_id"]) == row], error)
        return Built(_frames(rows), notes={"encoded": encoded})

    def _row(self, day: date, observation: ObservationRow) -> EmbeddingRow:
        return {
            "day": day,
            "point_id": point_id(observation["observation_id"]),
            "kind": "observation",
            "source_id": observation["observation_id"],
            "model": self.settings.embedding_model,
            "dimension": self.encoder.dimension,
            "content_hash": hashlib.sha256(repr(sorted(self._payload(observation).items())).encode()).hexdigest(),
        }

    def _store(
        self, day: date, observations: list[ObservationRow], rows: list[EmbeddingRow], old: dict[str, EmbeddingRow]
    ) -> int:
        """Encode what is new, with the index closed, then bring the day's points in line; how many were encoded."""
        if not rows and not old:
            return 0
        with open_index(self.settings, self.encoder) as index:
            stored = index.ids(day)
            new = [
                (o, row)
                for o, row in zip(observations, rows, strict=True)
                if row["point_id"] not in stored
                or row["source_id"] not in old
                or old[row["source_id"]]["content_hash"] != row["content_hash"]
            ]
            # an observation's id is made of its text: what else is said of it needs no other vector
            same = [r["point_id"] for _, r in new if (o := old.get(r["source_id"])) and o["model"] == r["model"]]
            known = {p: v for p, v in index.vectors(same).items() if is_sound(v, self.encoder.dimension)}
        unknown = [(o["text"], r["point_id"]) for o, r in new if r["point_id"] not in known]
        encoded = self.encoder.encode([text for text, _ in unknown])
        vectors = known | {name: vector for (_, name), vector in zip(unknown, encoded, strict=True)}
        points = [
            Point(r["point_id"], vectors[r["point_id"]], self._payload(o), {WORDS: weigh(terms(o["text"]), WORDS)})
            for o, r in new
        ]
        gone = stored - {row["point_id"] for row in rows}
        if points or gone:
            with open_index(self.settings, self.encoder) as index:
                index.delete(gone)
                index.upsert(points)
        return len(unknown)

    def _payload(self, observation: ObservationRow) -> dict[str, Any]:
        return {
            "date": f"{observation['day']}",
            "record": "observation",
            "source_id": observation["observation_id"],
            "session_id": observation["session_id"],
            "cwd": observation["cwd"],
            "project": observation["project"],
            "owner": observation["owner"],
            "dedupe_key": observation["dedupe_key"],
            "priority": observation["priority"],
            "kind": observation["kind"],
            "text": observation["text"],
            "timestamp": observation["observed_at"].isoformat(),
            "tokens": observation["tokens"],
            "model": self.settings.embedding_model,
            "schema_version": PAYLOAD_VERSION,
        }


def _by_words(rows: list[EmbeddingRow], error: Exception) -> Built:
    warnings = (f"No vectors, by words only: {error}",)
    return Built(_frames(rows), is_complete=False, notes={"why": str(error)}, warnings=warnings)


def _frames(rows: list[EmbeddingRow]) -> dict[str, pl.DataFrame]:
    return {"embeddings": pl.DataFrame(rows, schema=TABLES["embeddings"].columns)}


def switch_when_complete(workspace: Workspace) -> None:
    """Search the configured model's collections from now on, each once every row has its vector there."""
    settings = workspace.settings
    for table, base in (("embeddings", COLLECTION), ("message_embeddings", MESSAGES)):
        rows = workspace.lake.read(table, columns=["model", "dimension"]).filter(pl.col("dimension") > 0)
        if rows.height and bool((rows["model"] == settings.embedding_model).all()):
            mark_complete(settings, int(rows["dimension"][-1]), base)


def vectors_of(settings: Settings, encoder: Encoder, observation_ids: list[str]) -> dict[str, list[float]]:
    """The stored vectors by observation id, to be compared by the cosines of `sameness`. Those without one are left
    out, and without a model or an index all of them, as with a model whose cosines were never measured."""
    if not observation_ids or not facts_of(settings.embedding_model).is_calibrated:
        return {}
    by_point = {point_id(o): o for o in observation_ids}
    try:
        with open_index(settings, encoder) as index:
            found = index.vectors(by_point.keys())
            return {by_point[p]: v for p, v in found.items() if is_sound(v, encoder.dimension)}
    except (EncoderUnavailableError, IndexUnavailableError):  # rows from days before it went missing
        return {}
