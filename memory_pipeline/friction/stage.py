"""A day's rows of `friction_clusters`: what recurred over the days up to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import date
from typing import Self

import duckdb
import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.embeddings.stage import vectors_of
from memory_pipeline.friction.clustering import Cluster, corrections, failures
from memory_pipeline.friction.patterns import Sign, error_line
from memory_pipeline.lake import Lake, fingerprint_of
from memory_pipeline.proposals.memory_file import lines_of
from memory_pipeline.schemas import TABLES
from memory_pipeline.settings import Settings
from memory_pipeline.text.encoder import Encoder, encoder_of

VERSION = "1"
CORRECTING = ("correction", "rule", "preference")
MOST_A_DAY = 10
_FAILED = """
    SELECT message_id, day, session_id, said_at, text, tool_name FROM messages
    WHERE day BETWEEN ? AND ? AND role = 'tool' AND is_error ORDER BY said_at, message_id
"""


class FrictionStage:
    """Looks for patterns that span sessions and that this day added to; at most ten a day, the worst first."""

    tables = ("friction_clusters",)
    is_complete = True

    def __init__(self, settings: Settings, lake: Lake, encoder: Encoder) -> None:
        self.settings, self.lake, self.encoder = settings, lake, encoder
        self.connect: Callable[[], AbstractContextManager[duckdb.DuckDBPyConnection]] = duckdb.connect
        """Opens the query engine; inside Dagster, the `duckdb` resource does."""

    @classmethod
    def of(cls, settings: Settings, lake: Lake) -> Self:
        return cls(settings, lake, encoder_of(settings.embedding_model))

    def fingerprint(self, day: date) -> str:
        days = lookback(day, self.settings.lookback_days)
        return fingerprint_of(VERSION, *(self.lake.digest(t, days) for t in ("messages", "observations", "embeddings")))

    def build(self, day: date) -> dict[str, pl.DataFrame]:
        days = lookback(day, self.settings.lookback_days)
        said = list(self._corrections(days))
        has_vector = set(self.lake.read("embeddings", days)["source_id"])
        vectors = vectors_of(self.settings, self.encoder, [s.sign_id for s in said if s.sign_id in has_vector])
        memory = self.settings.memory_file
        rules = [line.text for line in lines_of(memory.read_bytes() if memory.exists() else None)]
        clusters = [*corrections(said, vectors, rules), *failures(list(self._failures(days)))]
        of_day = [c for c in clusters if any(m.day == day for m in c.members)]
        worst = sorted(of_day, key=lambda c: (-c.severity, c.title))[:MOST_A_DAY]
        rows = [_row(day, number, cluster) for number, cluster in enumerate(worst, 1)]
        return {"friction_clusters": pl.DataFrame(rows, schema=TABLES["friction_clusters"].columns)}

    def _corrections(self, days: list[date]) -> Iterator[Sign]:
        frame = self.lake.read("observations", days).filter(
            (pl.col("trust") == "user") & pl.col("kind").is_in(CORRECTING)
        )
        for o in frame.iter_rows(named=True):
            spans = tuple((s["message_id"], s["start"], s["end"]) for s in o["evidence"])
            yield Sign(o["observation_id"], o["day"], o["session_id"], o["observed_at"], o["text"], spans)

    def _failures(self, days: list[date]) -> Iterator[Sign]:
        with self.connect() as connection:
            self.lake.attach_views(connection)
            rows = connection.execute(_FAILED, [days[0], days[-1]]).fetchall()
        for message_id, day, session_id, said_at, text, tool in rows:
            line = error_line(text)
            if line:
                start = text.find(line)
                spans = ((message_id, start, start + len(line)),)
                yield Sign(message_id, day, session_id, said_at, line, spans, tool or "a tool")


def _row(day: date, number: int, cluster: Cluster) -> dict[str, object]:
    spans = [span for member in cluster.members for span in member.evidence]
    return {
        "day": day,
        "pattern_id": f"f-{day:%Y%m%d}-{number:03d}",
        "kind": cluster.kind,
        "title": cluster.title,
        "target_file": cluster.target_file,
        "change": cluster.change,
        "sessions": cluster.sessions,
        "occurrences": len(cluster.members),
        "severity": cluster.severity,
        "confidence": cluster.confidence,
        "evidence": [{"message_id": m, "start": s, "end": e} for m, s, e in spans],
    }
