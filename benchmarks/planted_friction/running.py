"""The pipeline over a week, as plain functions: reading, observing, friction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.planted_friction.model import Place, Week
from benchmarks.planted_friction.scoring import Found
from memory_pipeline.friction.active import points_in
from memory_pipeline.friction.stage import FrictionStage
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace

NOW = datetime(2026, 3, 10, tzinfo=UTC)
"""When every session of the week has been idle for long."""


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
    """Observations and messages of users."""

    def place_of(self) -> Mapping[str, Place]:
        rows = self.messages.select("message_id", "source_file", "source_line").iter_rows()
        return {message_id: (source_file, source_line) for message_id, source_file, source_line in rows}


def settings_of(workspace: Path, sessions: Path) -> Settings:
    """Of a workspace that sees nothing of this machine."""
    return Settings(workspace=workspace, session_dirs=[sessions], default_session_dirs=False, timezone="UTC")


def prepare(workspace: Workspace, now: datetime) -> list[date]:
    """Every stage before friction, for every day; the days."""
    lake = workspace.lake
    catalogue = Catalogue(lake, workspace.settings)
    sessions = SessionsStage(workspace, catalogue, now)
    sessions.look()
    days = sorted(catalogue.days())
    for stage in (sessions, ObservationsStage.from_workspace(workspace)):
        for day in days:
            bring_up_to_date(stage, lake, day)
    return days


def run(week: Week, settings: Settings | None = None) -> Ran:
    """Every stage for every day, each day's friction after the days before it, as they would have come."""
    workspace = Workspace.open(settings or settings_of(week.workspace, week.sessions_dir))
    lake = workspace.lake
    prepare(workspace, NOW)
    for day in week.days:
        bring_up_to_date(FrictionStage(workspace), lake, day)
    messages, observations = lake.read("messages", week.days), lake.read("observations", week.days)
    rows = lake.read("friction_clusters", week.days).sort("day", "pattern_id").to_dicts()
    last = {row["pattern_id"]: row for row in rows if not row["ended_on"]}
    ran = Ran(workspace, messages, observations, [], list(last.values()), points_in(lake, week.days))
    places = ran.place_of()
    for row in ran.rows:
        lies = frozenset(places[span["message_id"]] for span in row["evidence"] if span["message_id"] in places)
        ran.patterns.append(Found(row["pattern_id"], row["kind"], lies, row["title"]))
    return ran
