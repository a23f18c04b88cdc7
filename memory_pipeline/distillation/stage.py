"""The rows of the three levels: days, weeks and months in selected lines.

A level never removes anything: the rows below it are kept, and each of its lines names its sources. `traced` leads
from the rows of a period back to observations; `due_periods` lists what is to be distilled.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Self

import polars as pl

from memory_pipeline.days import today
from memory_pipeline.distillation.lines import INPUTS, Facts, Line, distil, facts_of
from memory_pipeline.distillation.periods import DAY, LEVELS, MONTH, NAMES, TABLE_OF, WEEK, Period, periods_of
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.lake.rows import DistillationRow, distinct, typed_rows
from memory_pipeline.lake.store import Lake, fingerprint_of
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.observations.types import row_id
from memory_pipeline.stages import Built, bring_up_to_date, fingerprint_of_day, is_current
from memory_pipeline.text.relation import says_all
from memory_pipeline.text.similarity import words
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.workspace import Workspace

Rows = list[DistillationRow]


def rows_in(lake: Lake, period: Period) -> Rows:
    """The stored rows of a period."""
    return typed_rows(lake.read(period.table, [period.last]), DistillationRow)


def rows_below(lake: Lake, period: Period) -> Rows:
    """The rows from which a period is made; none for a day, which is made from observations and segments."""
    return [row for part in period.parts for row in rows_in(lake, part)]


def traced(lake: Lake, period: Period, rows: Rows) -> list[tuple[str, set[str]]]:
    """The text of each row of the period, with the ids of all observations and segments from which it is derived."""
    if period.level == DAY:
        return [(row["text"], set(row["sources"])) for row in rows]
    below: dict[str, set[str]] = {}
    for part in period.parts:
        stored = rows_in(lake, part)
        leaves = (sources for _, sources in traced(lake, part, stored))
        below |= zip((row["distillation_id"] for row in stored), leaves, strict=True)
    return [(row["text"], {leaf for source in row["sources"] for leaf in below.get(source, ())}) for row in rows]


MAX_RECALL_LOSS = 0.10
"""Maximum share of the high facts that a distillation may lose."""
VERSIONS = {DAY: "4", WEEK: "5", MONTH: "5"}
SHARE = {DAY: 0.85, WEEK: 0.55, MONTH: 0.35}
"""Word budget of a level as a share of the period's observations and narratives; high facts are kept beyond it. They
alone are nearly a third. With .5 a week of the labelled sessions keeps 82 % of its high facts, with .6 85 %."""


@dataclass(frozen=True)
class Recall:
    """The number of high facts, and of those that are retained."""

    highs: int
    kept: int

    def __str__(self) -> str:
        return f"{self.kept} of {self.highs} high observations are still contained"

    @property
    def loss(self) -> float:
        """Share of the high facts that is lost, 0 to 1."""
        return 1 - self.kept / self.highs if self.highs else 0.0


class RecallLostError(MemoryPipelineError):
    """A distillation would lose too many high facts, so the level stays unchanged. The message says how many."""


class DistillationStage:
    """The stage that distils the periods of one level once they are old enough: days from observations, weeks and
    months from the level below. The `day` of a period is its last one."""

    def __init__(self, workspace: Workspace, level: int, now: date) -> None:
        self.workspace, self.level, self.now = workspace, level, now
        self.settings, self.lake = workspace.settings, workspace.lake

    @classmethod
    def from_workspace(cls, workspace: Workspace, level: int) -> Self:
        return cls(workspace, level, today(workspace.settings.zone))

    @property
    def table(self) -> str:
        return TABLE_OF[self.level]

    @property
    def tables(self) -> tuple[str, ...]:
        return (self.table,)

    @property
    def newest(self) -> date:
        """The last day that is old enough."""
        return self.now - timedelta(days=self.settings.distil_after_days)

    def fingerprint(self, day: date) -> str:
        """A hash of all inputs of the period that ends with the day: the levels in between depend on nothing else."""
        if day > self.newest:
            return fingerprint_of(VERSIONS[self.level], "not old enough")
        facts = [self.lake.digest(table, Period(self.level, day).days) for table in INPUTS]
        return fingerprint_of(VERSIONS[self.level], MAX_RECALL_LOSS, *facts)

    def build(self, day: date) -> Built:
        """The rows of the period that ends with the day, after updating its parts.

        If too much would be lost, it fails and keeps the previous rows.
        """
        if day > self.newest:
            return self._built([])
        period = Period(self.level, day)
        self._update_parts(period.parts)
        facts = facts_of(self.lake, period.days)
        rows = rows_of(self.lake, period, facts)
        found = recall_of(self.lake, period, facts, rows)
        if found.loss <= MAX_RECALL_LOSS:
            return self._built(rows)
        failure = RecallLostError(
            f"{period}: {found}; at most {MAX_RECALL_LOSS:.0%} may be lost, so the earlier rows are kept."
        )
        return self._built(rows_in(self.lake, period), failure)

    def _built(self, rows: Rows, failure: RecallLostError | None = None) -> Built:
        return Built({self.table: pl.DataFrame(rows, schema=TABLES[self.table].columns)}, failure=failure)

    def _update_parts(self, parts: Iterable[Period]) -> None:
        """Build the parts that have, or had, rows to distil."""
        for part in parts:
            below = DistillationStage(self.workspace, part.level, self.now)
            if self.lake.has(part.table, [part.last]) or self.lake.has("observations", part.days):
                with contextlib.suppress(RecallLostError):  # reported by a run of that period
                    bring_up_to_date(below, self.lake, part.last)


def rows_of(lake: Lake, period: Period, facts: Facts) -> Rows:
    """The rows of a period, from its facts if it is a day and else from the level below."""
    if period.level == DAY:
        lines, projects = facts.lines, facts.projects
    else:
        below = rows_below(lake, period)
        projects = {r["distillation_id"]: r["projects"] or [] for r in below}
        lines = [
            Line(r["text"], r["kind"], r["priority"], (r["distillation_id"],), r["first_seen"], r["last_seen"])
            for r in below
        ]
    return [_row(period, line, projects) for line in distil(lines, int(SHARE[period.level] * facts.words))]


def recall_of(lake: Lake, period: Period, facts: Facts, rows: Rows) -> Recall:
    """The recall of the period's highs in these rows."""
    return recall(facts.texts, facts.highs, traced(lake, period, rows))


def recall(observed: Mapping[str, str], highs: Collection[str], lines: Iterable[tuple[str, Iterable[str]]]) -> Recall:
    """The recall of these high facts: each is retained by an intact line made from it that has all of its words in
    order. A line is intact if it equals an observed text character for character.

    `observed` maps ids of facts and narratives to their text; a line is its text and the ids of its sources.
    """
    said_in: dict[str, list[str]] = defaultdict(list)
    for text, made_from in lines:
        ids = list(made_from)
        if any(observed.get(i) == text for i in ids):
            for i in ids:
                said_in[i].append(text)
    kept = sum(any(says_all(words(text), words(observed[i])) for text in said_in[i]) for i in highs)
    return Recall(len(highs), kept)


def altered(lake: Lake, period: Period, facts: Facts, rows: Rows) -> Rows:
    """Those of the period's rows that differ from all rows from which they were made."""
    below = {row["distillation_id"]: row["text"] for row in rows_below(lake, period)} or facts.texts
    return [row for row in rows if all(below.get(i) != row["text"] for i in row["sources"])]


def _row(period: Period, line: Line, projects: Mapping[str, Iterable[str]]) -> DistillationRow:
    return {
        "day": period.last,
        "distillation_id": row_id(NAMES[period.level][0], period.last, line.sources[0]),
        "level": period.level,
        "text": line.text,
        "kind": line.kind,
        "priority": line.priority,
        "sources": list(line.sources),
        "first_seen": line.first_seen,
        "last_seen": line.last_seen,
        "tokens": estimate(line.text),
        "projects": distinct(project for source in line.sources for project in projects.get(source, ())),
    }


def stages_of(workspace: Workspace, now: date | None = None) -> list[DistillationStage]:
    """One stage per level, days first."""
    now = now or today(workspace.settings.zone)
    return [DistillationStage(workspace, level, now) for level in LEVELS]


def due_periods(stage: DistillationStage, among: Iterable[date] | None = None) -> list[Period]:
    """The periods of the stage's level that contain days with observations (among the given ones, if any), are old
    enough and out of date; oldest first."""
    observed = set(stage.lake.days("observations"))
    wanted = observed if among is None else observed & set(among)
    periods = periods_of(stage.level, wanted, stage.newest)
    return [period for period in periods if not is_current(stage, stage.lake, period.last)]


def state_of(stage: DistillationStage, periods: Iterable[Period]) -> str:
    """A hash of the inputs of a run over these periods, so that the same run is not requested twice."""
    return fingerprint_of(*(f"{period.last} {fingerprint_of_day(stage, period.last)}" for period in periods))
