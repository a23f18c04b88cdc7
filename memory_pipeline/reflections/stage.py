"""The stage that writes a day's rows of `reflections`: the observations of its lookback, condensed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Self

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.embeddings.stage import vectors_of
from memory_pipeline.lake.rows import ObservationRow, ReflectionRow, SourceRow, distinct, typed_rows
from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.llm.config import reflector_model
from memory_pipeline.llm.errors import BudgetReachedError, ModelMisconfiguredError, ModelUnavailableError
from memory_pipeline.observations.types import EXTRACTIVE, row_id
from memory_pipeline.reflections.evaluation import judge
from memory_pipeline.reflections.extractive import ExtractiveReflector, Vectors
from memory_pipeline.reflections.types import (
    ITEM_TYPES,
    Observation,
    Reflection,
    Reflector,
    Topic,
    UnusableAnswerError,
    section_name,
)
from memory_pipeline.stages import INCOMPLETE, Built, fallback_notes, is_current, waiting_notes
from memory_pipeline.text.encoder import Encoder, encoder_of
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.daily_log.notes import has_notes, keep_notes, notes_fingerprint, notes_in, put_back_notes
from memory_pipeline.workspace.workspace import Workspace

VERSION = "7"


class ReflectionsStage:
    """The stage that condenses a lookback of days ending with the day: observations, and notes that a user wrote into
    the logs. A day without either is empty.

    A model's answer replaces the day's rows only if it is usable, and never better ones. Otherwise the model's earlier
    rows are kept, or extractive ones are used.
    """

    tables = ("reflections",)

    def __init__(self, workspace: Workspace, reflector: Reflector, encoder: Encoder) -> None:
        self.workspace = workspace
        self.settings, self.lake, self.reflector, self.encoder = workspace.settings, workspace.lake, reflector, encoder

    @classmethod
    def from_workspace(cls, workspace: Workspace) -> Self:
        """A stage with the reflector of the settings."""
        return cls(workspace, reflector_of(workspace), encoder_of(workspace.settings.embedding_model))

    def days_before(self, day: date) -> list[date]:
        return lookback(day, self.settings.lookback_days)

    def fingerprint(self, day: date) -> str:
        """A hash of the inputs except MEMORY.md, which only shows a model what is already kept: a promoted line does
        not make earlier days out of date."""
        days = self.days_before(day)
        inputs = [self.lake.digest(table, days) for table in ("segments", "observations", "embeddings")]
        notes = notes_fingerprint(self.workspace, days)
        if notes and self.lake.fingerprint("reflections", day) is not None:
            put_back_notes(self.workspace, days)  # otherwise only new or changed notes would rebuild the days
        # a day without notes keeps the fingerprint from before notes existed
        return fingerprint_of(VERSION, self.reflector.version, self.settings.sections, *inputs, *filter(None, [notes]))

    def build(self, day: date) -> Built:
        keep_notes(self.workspace, self.days_before(day))
        observed = observed_in(self.workspace, self.days_before(day))
        if not any(o.day == day for o in observed):
            return Built(_frames([]))
        vectors = self._vectors(day, observed)
        try:
            reflection = self.reflector.reflect(day, observed, vectors)
        except UnusableAnswerError as unusable:  # a retry would get the same answer
            why = f"The answer of {self.reflector.name} cannot be used: {unusable}."
            return _waiting_result(day, self._fallback_rows(day, observed, vectors), why)
        except (BudgetReachedError, ModelMisconfiguredError, ModelUnavailableError) as stopped:
            found = _waiting_result(day, self._fallback_rows(day, observed, vectors), str(stopped))
            failure = None if isinstance(stopped, BudgetReachedError) else stopped
            notes = waiting_notes(str(stopped), stopped)
            return replace(found, is_complete=False, failure=failure, notes=notes)
        if reflection.is_poor and (better := self._usable_earlier_rows(day, observed)):
            why = f"The answer of {self.reflector.name} is worse than its earlier one, which is kept."
            return _waiting_result(day, better, why)
        asked = {"answers": reflection.asked, "dropped_lines": reflection.dropped} if reflection.asked else {}
        fallback = fallback_notes(reflection.instead, "batches")
        warnings = tuple(f"{day}: {note}" for note in fallback.values())
        rows = self._rows(day, reflection, observed, self.reflector.name)
        return Built(_frames(rows), notes=asked | fallback, warnings=warnings)

    def _vectors(self, day: date, observed: Sequence[Observation]) -> Vectors:
        has_vector = set(self.lake.read("embeddings", self.days_before(day))["source_id"])
        ids = [o.observation_id for o in observed if o.observation_id in has_vector]
        return vectors_of(self.settings, self.encoder, ids)

    def _fallback_rows(self, day: date, observed: Sequence[Observation], vectors: Vectors) -> list[ReflectionRow]:
        """The model's earlier rows of the day whose sources still exist; else extractive ones."""
        instead = ExtractiveReflector()
        kept, _ = self._earlier_rows(day, observed)
        return kept or self._rows(day, instead.reflect(day, observed, vectors), observed, instead.name)

    def _usable_earlier_rows(self, day: date, observed: Sequence[Observation]) -> list[ReflectionRow]:
        """The day's earlier rows of a model, if they condense their sources and all of these still exist."""
        kept, is_whole = self._earlier_rows(day, observed)
        condenses = kept and judge(sum(row["tokens"] for row in kept), kept[0]["input_tokens"]).passed
        return kept if is_whole and condenses else []

    def _earlier_rows(self, day: date, observed: Sequence[Observation]) -> tuple[list[ReflectionRow], bool]:
        """The model's earlier rows of the day whose sources still exist, and whether these are all of them."""
        there = {o.observation_id for o in observed}
        before = self.lake.read("reflections", [day]).filter(~pl.col("reflector").str.starts_with(EXTRACTIVE))
        kept = [row for row in typed_rows(before, ReflectionRow) if there.issuperset(row["sources"])]
        return kept, len(kept) == before.height

    def _rows(
        self, day: date, reflection: Reflection, observed: Sequence[Observation], reflector: str
    ) -> list[ReflectionRow]:
        spent = sum(o.tokens for o in observed)
        by_id = {o.observation_id: o for o in observed}
        rows: dict[str, ReflectionRow] = {}
        for line in reflection.lines:
            name = row_id("r", day, line.sources[0])
            if name in rows:  # a model may make two lines from one observation
                name = row_id("r", day, *line.sources, line.text)
            sources = [by_id[source] for source in line.sources]
            rows[name] = {
                "day": day,
                "reflection_id": name,
                "level": 1,
                "section": section_name(self.settings.sections, line.section),
                "text": line.text,
                "priority": line.priority,
                "kind": line.kind,
                "support": len(line.sources),
                "sessions": line.sessions,
                "sources": list(line.sources),
                "first_seen": line.first_seen,
                "last_seen": line.last_seen,
                "input_tokens": spent,
                "tokens": estimate(line.text),
                "reflector": line.reflector or reflector,
                "item_type": ITEM_TYPES.get(line.kind),
                "trust": line.trust,
                "superseded": list(line.superseded),
                "tags": list(line.tags),
                "contradicts": list(line.contradicts),
                "summary": reflection.summary,
                "cwds": distinct(cwd for o in sources for cwd in o.cwds),
                "projects": distinct(project for o in sources for project in o.projects),
                "owner": self.settings.owner,
            }
        return list(rows.values())


def reflector_of(workspace: Workspace) -> Reflector:
    """The extractive reflector, or the one that asks the model of `REFLECTOR_MODEL`."""
    config = reflector_model(workspace.settings)
    if not config:
        return ExtractiveReflector()
    # imported here, because every command that plans would load it, usually without a model
    from memory_pipeline.reflections.model.reflector import LanguageModelReflector

    return LanguageModelReflector.from_config(config, workspace)


def observed_in(workspace: Workspace, days: list[date]) -> list[Observation]:
    """The observations, each with its topic, and the notes of these days, oldest first."""
    segments = workspace.lake.read("segments", days, ["day", "segment_id", "title", "narrative"])
    topics = {(day, segment): Topic(segment, title or "", told or "") for day, segment, title, told in segments.rows()}
    observations = typed_rows(workspace.lake.read("observations", days), ObservationRow)
    found = [
        replace(_observation(row), topic=topics.get((row["day"], row["segment_id"])), trace=row["trace"])
        for row in observations
    ]
    found += map(_observation, notes_in(workspace, days))
    return sorted(found, key=lambda o: (o.observed_at, o.observation_id))


def _observation(row: SourceRow) -> Observation:
    return Observation(
        observation_id=row["observation_id"],
        day=row["day"],
        session_id=row["session_id"],
        priority=row["priority"],
        kind=row["kind"],
        trust=row["trust"],
        observed_at=row["observed_at"],
        text=row["text"],
        tokens=row["tokens"],
        flags=tuple(row["flags"] or ()),
        cwds=tuple(distinct([row["cwd"]])),
        projects=tuple(distinct([row["project"]])),
    )


def why_not_reflected(stage: ReflectionsStage, day: date) -> str | None:
    """The reason why a day is not finished, and what to do; None if it is finished."""
    lake, again = stage.lake, f"`memory run --from {day} --to {day}`"
    notes = has_notes(stage.workspace, day)
    if INCOMPLETE in (lake.fingerprint("observations", day), lake.fingerprint("reflections", day)):
        return f"it waits for a model or its budget; {again} resumes"
    if not notes and not lake.read("observations", [day], ["day"]).height:
        return None
    if day < stage.settings.start_date:
        return f"it is before MEMORY_START_DATE; set that to {day} or earlier, then {again}"
    if lake.fingerprint("reflections", day) is None:
        return f"it was not reflected on; {again}"
    return None if is_current(stage, lake, day) else f"it has changed since it was reflected on; {again}"


def _waiting_result(day: date, rows: list[ReflectionRow], why: str) -> Built:
    warning = f"The model's lines of {day} are missing: {why}"
    return Built(_frames(rows), notes={"left_for_later": why}, warnings=(warning,))


def _frames(rows: list[ReflectionRow]) -> dict[str, pl.DataFrame]:
    return {"reflections": pl.DataFrame(rows, schema=TABLES["reflections"].columns)}
