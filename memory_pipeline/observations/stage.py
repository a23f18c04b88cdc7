"""A day's rows of `segments` and `observations`, and the day's log."""

from __future__ import annotations

from datetime import date
from typing import Self

import polars as pl

from memory_pipeline.files.daily_log import write_daily_log
from memory_pipeline.lake import Lake, fingerprint_of
from memory_pipeline.llm.config import observer_model
from memory_pipeline.llm.context_budget import of_messages, of_observations, room
from memory_pipeline.llm.errors import BudgetReached
from memory_pipeline.observations.extractive.observer import ExtractiveObserver
from memory_pipeline.observations.observer import Observer
from memory_pipeline.observations.observing import Outcome, jobs_of, observe, observe_session
from memory_pipeline.observations.rows import Rows, log_window, rows_of
from memory_pipeline.observations.saving import better
from memory_pipeline.sessions.redaction import redactor_of
from memory_pipeline.settings import Settings
from memory_pipeline.stage import Unfinished

VERSION = "4"
"""Raise it when the same messages would give other observations."""


class ObservationsStage:
    """Observes the windows of a day that are to be observed and writes them into the daily log."""

    tables = ("segments", "observations")

    def __init__(self, settings: Settings, lake: Lake, observer: Observer) -> None:
        self.settings, self.lake, self.observer = settings, lake, observer
        self.is_complete = True
        self.log_blocks_edited: list[str] = []
        """Blocks of the daily log that a person has changed and that were therefore left alone."""
        self.left: dict[date, str] = {}
        """By day, why windows of it could not be observed yet."""

    @classmethod
    def of(cls, settings: Settings, lake: Lake) -> Self:
        """With the observer that the settings ask for."""
        return cls(settings, lake, observer_of(settings, lake))

    def fingerprint(self, day: date) -> str:
        inputs = [self.lake.digest(table, [day]) for table in ("messages", "windows")]
        return fingerprint_of(VERSION, self.observer.version, *inputs)

    def build(self, day: date) -> dict[str, pl.DataFrame]:
        outcomes = observe(jobs_of(self.lake, day), self.observer)
        stopped = [outcome.left for outcome in outcomes if outcome.left]
        rows = self._rows(day, outcomes)
        self._write_log(day, outcomes, rows)
        total = Rows()
        for found in rows:
            total.add(found)
        self.is_complete = not stopped
        if stopped:
            self.left[day] = f"{len(stopped)} of {len(outcomes)} windows are left: {stopped[0]}"
            if not isinstance(stopped[0], BudgetReached) and not self.settings.observer_fallback:
                raise Unfinished(total.frames(), stopped[0])
        return total.frames()

    def _rows(self, day: date, outcomes: list[Outcome]) -> list[Rows]:
        """The rows of each window: what was found now, or what is better of before, or the fallback."""
        before = {name: self.lake.read(name, [day]).partition_by("dedupe_key", as_dict=True) for name in self.tables}

        def stored(outcome: Outcome) -> Rows:
            key = (outcome.job.window["dedupe_key"],)
            segments, observations = (before[n][key].to_dicts() if key in before[n] else [] for n in self.tables)
            return Rows(segments, observations)

        return [self._rows_of(outcome, stored(outcome)) for outcome in outcomes]

    def _rows_of(self, outcome: Outcome, before: Rows) -> Rows:
        window, zone = outcome.job.window, self.settings.zone
        if not outcome.left:
            found = rows_of(window, outcome.segments, self.observer.name, zone)
            return better(found, before, [m.message_id for m in outcome.job.messages])
        if not self.settings.observer_fallback or not is_extractive(before):
            return before
        fallback = ExtractiveObserver(self.settings.observation_budget)
        (instead,) = observe_session([outcome.job], fallback)
        return rows_of(window, instead.segments, fallback.name, zone)

    def _write_log(self, day: date, outcomes: list[Outcome], rows: list[Rows]) -> None:
        sessions = {s["session_id"]: s for s in self.lake.read("sessions", [day]).iter_rows(named=True)}
        windows = [
            log_window(o.job.window, found, sessions[o.job.window["session_id"]], self.settings)
            for o, found in zip(outcomes, rows, strict=True)
        ]
        result = write_daily_log(self.settings.daily_log(day), day, windows, backups=self.settings.backups)
        self.log_blocks_edited += result.edited_by_hand


def is_extractive(rows: Rows) -> bool:
    """Whether no model made any of these rows; so it is with none."""
    return all(row["observer"].startswith("extractive") for row in rows.segments)


def observer_of(settings: Settings, lake: Lake) -> Observer:
    """The extractive observer, or the one that asks the model of `OBSERVER_MODEL`."""
    config = observer_model(settings)
    if not config:
        return ExtractiveObserver(settings.observation_budget)
    # here, because every command that plans would wait for them, most often without a model
    from memory_pipeline.llm.client import PICTURE_TOKENS, Client
    from memory_pipeline.observations.language_model.observer import MOST_PICTURES, PROMPTS, LanguageModelObserver

    answer = config.max_output_tokens
    shown = of_messages(settings, answer, PROMPTS)
    prior = min(settings.prior_tokens, of_observations(settings, answer, PROMPTS))
    return LanguageModelObserver(
        Client(config, settings, lake, redact=redactor_of(settings).redact),
        settings.zone,
        settings.observation_budget,
        shown,
        prior,
        settings.model_concurrency,
        max(0, min(MOST_PICTURES, (room(settings, answer, PROMPTS) - shown - prior) // PICTURE_TOKENS)),
    )
