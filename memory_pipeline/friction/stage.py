"""A day's rows of `friction_clusters`: what recurred over the days up to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import date
from itertools import count
from typing import TYPE_CHECKING, Any, Self

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.embeddings.stage import vectors_of
from memory_pipeline.friction.clustering import Cluster, corrections, failures
from memory_pipeline.friction.patterns import FrictionEvent, error_line
from memory_pipeline.lake.rows import FrictionRow, ObservationRow, distinct, typed_rows
from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.stage import Built
from memory_pipeline.text.encoder import Encoder, encoder_of
from memory_pipeline.workspace import Workspace

if TYPE_CHECKING:
    import duckdb

Connect = Callable[[], "AbstractContextManager[duckdb.DuckDBPyConnection]"]
"""Opens the query engine."""
VERSION = "4"
CORRECTING = ("correction", "rule", "preference")
CHANGING = ("decision", "state_change")
"""Kinds with which a user ends what they said before, without correcting anybody."""
MAX_PER_DAY = 10
_FAILED = """
    SELECT message_id, day, session_id, said_at, text, tool_name, place.cwd, place.project FROM messages
    LEFT JOIN (SELECT session_id, any_value(cwd) AS cwd, any_value(project) AS project FROM sessions
               WHERE day BETWEEN ? AND ? GROUP BY session_id) AS place USING (session_id)
    WHERE day BETWEEN ? AND ? AND role = 'tool' AND is_error AND NOT coalesce(voided, false)
    ORDER BY said_at, message_id
"""


class FrictionStage:
    """Looks for patterns that span sessions and that this day added to; at most ten a day, the worst first."""

    tables = ("friction_clusters",)

    def __init__(
        self,
        workspace: Workspace,
        encoder: Encoder,
        connect: Connect | None = None,
    ) -> None:
        """``connect`` opens the query engine; inside Dagster, the `duckdb` resource does."""
        self.settings, self.lake, self.encoder = workspace.settings, workspace.lake, encoder
        self.connect = connect or _connect

    @classmethod
    def from_workspace(
        cls,
        workspace: Workspace,
        connect: Connect | None = None,
    ) -> Self:
        return cls(workspace, encoder_of(workspace.settings.embedding_model), connect)

    def fingerprint(self, day: date) -> str:
        days = lookback(day, self.settings.lookback_days)
        inputs = [self.lake.digest(t, days) for t in ("sessions", "messages", "observations", "embeddings")]
        return fingerprint_of(VERSION, *inputs, self._rules(day))

    def build(self, day: date) -> Built:
        days = lookback(day, self.settings.lookback_days)
        said, changes = list(self._said(days, CORRECTING)), list(self._said(days, CHANGING))
        has_vector = set(self.lake.read("embeddings", days)["source_id"])
        vectors = vectors_of(self.settings, self.encoder, [s.event_id for s in said if s.event_id in has_vector])
        clusters = [*corrections(said, vectors, self._rules(day), changes), *failures(list(self._failures(days)))]
        of_day = [c for c in clusters if any(m.day == day for m in c.members)]
        worst = sorted(of_day, key=lambda c: (-c.severity, c.title))[:MAX_PER_DAY]
        numbers = self._numbers(day, worst)
        rows = [_row(day, number, cluster, self.settings.owner) for number, cluster in zip(numbers, worst, strict=True)]
        return Built({"friction_clusters": pl.DataFrame(rows, schema=TABLES["friction_clusters"].columns)})

    def _numbers(self, day: date, clusters: list[Cluster]) -> list[int]:
        """A pattern that was found before keeps its number, so that its id goes on naming it."""
        stored = typed_rows(self.lake.read("friction_clusters", [day]), FrictionRow)
        known = {
            int(row["pattern_id"].rsplit("-", 1)[1]): (row["kind"], {span["message_id"] for span in row["evidence"]})
            for row in stored
        }
        taken, numbers = set(known), []
        for cluster in clusters:
            places = {message_id for member in cluster.members for message_id, *_ in member.evidence}
            number = next((n for n, (kind, old) in known.items() if kind == cluster.kind and old & places), None)
            if number is None:
                number = next(n for n in count(1) if n not in taken)
            known.pop(number, None)
            taken.add(number)
            numbers.append(number)
        return numbers

    def _rules(self, day: date) -> list[str]:
        """What stood in MEMORY.md on that day, as far as it came from here: approving today changes no day before."""
        days = [promoted for promoted in self.lake.days("promotions") if promoted <= day]
        return sorted(self.lake.read("promotions", days)["text"]) if days else []

    def _said(self, days: list[date], kinds: tuple[str, ...]) -> Iterator[FrictionEvent]:
        """What people said of these kinds."""
        frame = self.lake.read("observations", days).filter((pl.col("trust") == "user") & pl.col("kind").is_in(kinds))
        for o in typed_rows(frame, ObservationRow):
            spans = tuple((s["message_id"], s["start"], s["end"]) for s in o["evidence"])
            yield FrictionEvent(
                *(o["observation_id"], o["day"], o["session_id"], o["observed_at"], o["text"], spans),
                cwd=o["cwd"],
                project=o["project"],
            )

    def _failures(self, days: list[date]) -> Iterator[FrictionEvent]:
        from memory_pipeline.lake.queries import mended  # here, because planning loads this module and queries nothing

        rows = mended(self.lake, lambda: self._failed(days))
        for message_id, day, session_id, said_at, text, tool, *place in rows:
            line = error_line(text)
            if line:
                start = text.find(line)
                spans = ((message_id, start, start + len(line)),)
                yield FrictionEvent(message_id, day, session_id, said_at, line, spans, tool or "a tool", *place)

    def _failed(self, days: list[date]) -> list[Any]:
        with self.connect() as connection:
            self.lake.attach_views(connection)
            return connection.execute(_FAILED, 2 * [days[0], days[-1]]).fetchall()


def _row(day: date, number: int, cluster: Cluster, owner: str) -> FrictionRow:
    spans = [span for member in cluster.members for span in member.evidence]
    return {
        "day": day,
        "pattern_id": f"f-{day:%Y%m%d}-{number:03d}",
        "kind": cluster.kind,
        "title": cluster.title,
        "target_file": cluster.target_file,
        "section": None,
        "adds": None,
        "replaces": None,
        "change": cluster.change,
        "low_risk": False,
        "sessions": cluster.sessions,
        "occurrences": len(cluster.members),
        "turns": None,
        "minutes": None,
        "severity": cluster.severity,
        "confidence": cluster.confidence,
        "first_day": cluster.members[0].day,
        "last_day": cluster.members[-1].day,
        "ended_on": None,
        "by_week": [],
        "evidence": [{"message_id": m, "start": s, "end": e} for m, s, e in spans],
        "session_ids": distinct(member.session_id for member in cluster.members),
        "cwds": distinct(member.cwd for member in cluster.members),
        "projects": distinct(member.project for member in cluster.members),
        "owner": owner,
    }


def _connect() -> duckdb.DuckDBPyConnection:
    import duckdb  # here, because planning loads this module for commands that query nothing

    return duckdb.connect()
