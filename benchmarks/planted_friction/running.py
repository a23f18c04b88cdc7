"""The pipeline over a week, as plain functions: reading, observing, embedding, friction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.planted_friction.model import Place, Week
from benchmarks.planted_friction.scoring import Found
from memory_pipeline.embeddings.messages import MessageEmbeddingsStage
from memory_pipeline.embeddings.stage import EmbeddingsStage
from memory_pipeline.friction.stage import FrictionStage
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.text.encoder import Encoder
from memory_pipeline.text.phrases import DIMENSION, PhraseEncoder
from memory_pipeline.workspace.workspace import Workspace

POINTS = ("embeddings", "message_embeddings")
NOW = datetime(2026, 3, 10, tzinfo=UTC)
"""When every session of the week has been idle for long."""


class Remembering(Encoder):
    """An encoder that keeps what it encoded: the weeks share most of their ordinary talk."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.known: dict[str, list[float]] = {}

    def encode(self, texts: Sequence[str]) -> list[list[float]]:
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        self.known.update(zip(new, super().encode(new), strict=True))
        return [self.known[text] for text in texts]


class RememberingPhrases(PhraseEncoder):
    """The same of phrases."""

    def __init__(self) -> None:
        super().__init__()
        self.known: dict[str, Any] = {}

    def encode(self, texts: Sequence[str]) -> Any:
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        self.known.update(zip(new, super().encode(new), strict=True))
        return np.array([self.known[text] for text in texts]).reshape(len(texts), DIMENSION)


@cache
def phrases() -> RememberingPhrases:
    """The process's one."""
    return RememberingPhrases()


@dataclass(frozen=True)
class Ran:
    """What came of a week: the rows of its messages and observations, and the patterns."""

    workspace: Workspace
    messages: pl.DataFrame
    observations: pl.DataFrame
    patterns: list[Found]
    rows: list[dict[str, Any]]
    """Of `friction_clusters`, the last of each pattern."""

    points: int
    """What the index has of the week: observations, and passages of what people and models said."""

    def place_of(self) -> Mapping[str, Place]:
        rows = self.messages.select("message_id", "source_file", "source_line").iter_rows()
        return {message_id: (source_file, source_line) for message_id, source_file, source_line in rows}


def settings_of(workspace: Path, sessions: Path) -> Settings:
    """Of a workspace that sees nothing of this machine."""
    return Settings(workspace=workspace, session_dirs=[sessions], default_session_dirs=False, timezone="UTC")


def prepare(workspace: Workspace, now: datetime, encoder: Encoder | None) -> list[date]:
    """Every stage before friction, for every day; the days. Without an encoder nothing is indexed: what friction hears
    needs no index."""
    lake = workspace.lake
    catalogue = Catalogue(lake, workspace.settings)
    sessions = SessionsStage(workspace, catalogue, now)
    sessions.look()
    days = sorted(catalogue.days())
    for day in days:
        bring_up_to_date(sessions, lake, day)
    observing = ObservationsStage.from_workspace(workspace)
    indexing = (EmbeddingsStage(workspace, encoder), MessageEmbeddingsStage(workspace, encoder)) if encoder else ()
    for day in days:
        for stage in (observing, *indexing):
            bring_up_to_date(stage, lake, day)
    return days


def run(week: Week, encoder: Encoder, settings: Settings | None = None) -> Ran:
    """Every stage for every day, each day's friction after the days before it, as they would have come."""
    workspace = Workspace.open(settings or settings_of(week.workspace, week.sessions_dir))
    lake = workspace.lake
    prepare(workspace, NOW, encoder)
    for day in week.days:
        bring_up_to_date(FrictionStage(workspace, phrases()), lake, day)
    messages, observations = lake.read("messages", week.days), lake.read("observations", week.days)
    rows = lake.read("friction_clusters", week.days).sort("day", "pattern_id").to_dicts()
    last = {row["pattern_id"]: row for row in rows if not row["ended_on"]}
    points = sum(lake.read(table, week.days).height for table in POINTS)
    ran = Ran(workspace, messages, observations, [], list(last.values()), points)
    places = ran.place_of()
    for row in ran.rows:
        lies = frozenset(places[span["message_id"]] for span in row["evidence"] if span["message_id"] in places)
        ran.patterns.append(Found(row["pattern_id"], row["kind"], lies, row["title"]))
    return ran
