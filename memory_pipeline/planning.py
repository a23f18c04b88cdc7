"""All stages in the order of the asset graph, and the days of each that are out of date."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Self

from memory_pipeline.days import date_ranges
from memory_pipeline.embeddings.messages import MessageEmbeddingsStage
from memory_pipeline.embeddings.stage import EmbeddingsStage, SummaryEmbeddingsStage
from memory_pipeline.friction.stage import FrictionStage
from memory_pipeline.lake.store import Lake, fingerprint_of
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.proposals.stage import ProposalsStage
from memory_pipeline.reflections.stage import ReflectionsStage
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import Settings
from memory_pipeline.stages import Stage, fingerprint_of_day, is_current, is_incomplete
from memory_pipeline.workspace.workspace import Workspace


@dataclass(frozen=True)
class Stages:
    """Every stage, with one common lake, catalogue and encoder."""

    sessions: SessionsStage
    observations: ObservationsStage
    embeddings: EmbeddingsStage
    reflections: ReflectionsStage
    proposals: ProposalsStage
    friction_clusters: FrictionStage
    summary_embeddings: SummaryEmbeddingsStage
    message_embeddings: MessageEmbeddingsStage

    @classmethod
    def from_settings(
        cls,
        settings: Settings,
        catalogue: Catalogue | None = None,
        now: datetime | None = None,
        *,
        for_planning: bool = False,
    ) -> Self:
        """The stages of a workspace, with its catalogue of session files; see `Lake.for_planning`."""
        lake = Lake.from_settings(settings, for_planning=for_planning)
        workspace = Workspace(settings, lake)
        return cls(
            SessionsStage(workspace, catalogue or Catalogue(lake, settings), now or datetime.now(UTC)),
            ObservationsStage.from_workspace(workspace),
            EmbeddingsStage.from_workspace(workspace),
            ReflectionsStage.from_workspace(workspace),
            ProposalsStage(workspace),
            FrictionStage(workspace),
            SummaryEmbeddingsStage.from_workspace(workspace),
            MessageEmbeddingsStage.from_workspace(workspace),
        )

    def all(self) -> tuple[Stage, ...]:
        return tuple(vars(self).values())

    def is_sent(self, day: date) -> bool:
        """Whether the tables contain the messages of the day, whatever was derived from them."""
        return is_current(self.sessions, self.sessions.lake, day)

    def is_current(self, day: date, *, without_vectors: bool = False) -> bool:
        """Whether no stage has work to do for the day, as far as can be known before running any. With
        ``without_vectors``, missing vectors do not count: there is no model or index."""
        lake = self.sessions.lake
        of_vectors = (self.embeddings, self.summary_embeddings, self.message_embeddings)
        waiting = [stage for stage in of_vectors if without_vectors and is_incomplete(stage, lake, day)]
        return all(is_current(stage, lake, day) for stage in self.all() if stage not in waiting)

    def is_incomplete(self, day: date) -> bool:
        """Whether some stage has stored an incomplete day that waits for a model, a budget or a missing file."""
        lake = self.sessions.lake
        return any(is_incomplete(stage, lake, day) for stage in self.all())

    def fingerprint(self, day: date) -> str:
        """A hash of everything that decides the day's rows in every stage, for the current tables."""
        return fingerprint_of(*(fingerprint_of_day(stage, day) for stage in self.all()))

    def runs_for(self, days: Iterable[date]) -> list[tuple[date, date]]:
        """The ranges (first day, last day) that bring these days up to date, one run each, without other days.

        They begin with the first day that is out of date: its changes may affect the days after it.
        """
        ordered = sorted(days)
        with self.sessions.lake.seen_once():
            stale = next((i for i, day in enumerate(ordered) if not self.is_current(day)), len(ordered))
        return date_ranges(ordered[stale:])
