"""The effect over a span of days: counts by week, the clearest cases, and what limits them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl

from memory_pipeline.actions.outcomes import outcomes
from memory_pipeline.days import day_of
from memory_pipeline.effect.cases import PLACES, Case, DayEffect, by_week, effect_on
from memory_pipeline.effect.history import STATES, MemoryHistory
from memory_pipeline.effect.needs import KINDS
from memory_pipeline.effect.pairs import PairJudge
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.friction.observed import shown_lines
from memory_pipeline.lake.rows import EventRow, typed_rows
from memory_pipeline.proposals.memory_file import lines_of
from memory_pipeline.proposals.shown_to_agents import approved_rules
from memory_pipeline.recall.remembered import memory_bytes
from memory_pipeline.workspace.workspace import Workspace

SPAN_DAYS = 28
"""Number of days up to the last one with sessions, if no span is given."""
CLEAREST = 10
MIN_AGE = timedelta(days=7)


class NoSessionsError(MemoryPipelineError):
    """No session lies in the span; the message says which days have some."""


@dataclass(frozen=True)
class Effect:
    """The effect over a span."""

    first: date
    last: date
    days: Sequence[DayEffect]
    hints: int
    """Hints that sessions were shown at tool calls."""
    hints_wrong: int
    """Hints that the call contradicted: it succeeded."""
    notes: Sequence[str]
    """Sentences about what limits the figures."""

    @property
    def cases(self) -> list[Case]:
        return [case for day in self.days for case in day.cases]

    @property
    def outdated(self) -> list[Case]:
        return [case for day in self.days for case in day.outdated]

    @property
    def clearest(self) -> list[Case]:
        """The clearest cases, one for each line: those of approved lines first, and corrections before the others."""
        ranked = sorted(
            self.cases,
            key=lambda c: (STATES.index(c.state), c.by_model, c.need.kind != "correction", -len(c.shown_by), c.need.at),
        )
        first: dict[str, Case] = {}
        for case in ranked:
            first.setdefault(case.line_id, case)
        return list(first.values())[:CLEAREST]


def effect_over(workspace: Workspace, first: date | None, last: date | None) -> Effect:
    """The effect from the first to the last day; by default over the last four weeks with sessions.

    Raises `NoSessionsError`.
    """
    lake, settings = workspace.lake, workspace.settings
    known = sorted(set(lake.read("sessions", columns=["day"])["day"]))
    if not known:
        raise NoSessionsError("No session has been read yet; `memory run` reads them.")
    last = last or known[-1]
    first = first or last - timedelta(days=SPAN_DAYS - 1)
    days = [day for day in known if first <= day <= last]
    if not days:
        raise NoSessionsError(
            f"No session lies between {first} and {last}; the sessions go from {known[0]} to {known[-1]}."
        )
    effects = effect_on(workspace, days, in_full=True)
    shown = [line for line in shown_lines(settings) if first <= day_of(line.at, settings.zone) <= last]
    found = outcomes(settings, lake, approved_rules(settings, lake)) if shown else []
    own = [seen for seen in found if first <= day_of(seen.line.at, settings.zone) <= last]
    wrong = sum(seen.outcome == "contradicted" for seen in own)
    notes = list(_notes(workspace, known, days))
    if kept := len(days) - len(effects):
        notes.append(f"The messages of {kept} days are no longer kept (retention.messages), so these are not counted.")
    return Effect(first, last, effects, len(own), wrong, notes)


def _notes(workspace: Workspace, known: Sequence[date], days: Sequence[date]) -> Iterator[str]:
    if days[0] == known[0]:
        yield f"Before {days[0]} nothing was known, so its first repetitions cannot be counted."
    if known[-1] - known[0] < MIN_AGE:
        yield f"The sessions cover {(known[-1] - known[0]).days + 1} days; figures of less than a week say little."
    if PairJudge(workspace).is_set:
        yield "A model judged which words repeat a line; where it gave no answer, only nearly the same words count."
    else:
        yield "Without a model only nearly the same words and the same errors count: these figures are a lower bound."
    history = MemoryHistory(workspace)
    events = typed_rows(history.log.table("events"), EventRow)
    now = datetime.now(UTC)
    if ahead := sum(row["happened_at"] is not None and row["happened_at"] > now for row in events):
        yield f"{ahead} decisions have a time in the future, as the clock was wrong; they count from that day on."
    decided = history.log.frame.filter(pl.col("decided_at").is_not_null())
    early = decided.filter(pl.col("decided_at").dt.date() < pl.col("day"))
    if early.height:
        yield f"{early.height} decisions are dated before the sessions of their lines, as the clock was wrong."
    there = lines_of(memory_bytes(workspace.settings))
    active = {line.proposal_id for line in there if not line.is_struck}
    if gone := [x for x in history.lines if x.approved_on and not x.ended_on and x.line_id not in active]:
        yield (
            f"{len(gone)} approved lines were since removed from MEMORY.md by hand; as the day is not recorded, they "
            f"count as approved until the end."
        )
    if by_hand := sum(line.proposal_id is None and not line.is_struck for line in there):
        yield f"{by_hand} lines of MEMORY.md were written by hand, at an unknown time, and are not counted."
    read = set(workspace.lake.read("sessions", columns=["session_id"])["session_id"])
    if lost := sum(x.is_proposal and bool(x.sessions) and not x.sessions & read for x in history.lines):
        yield f"{lost} lines come from sessions that were deleted; they are counted, but their source cannot be shown."


def as_json(effect: Effect) -> dict[str, Any]:
    """The effect as plain data."""
    return {
        "first": f"{effect.first}",
        "last": f"{effect.last}",
        "weeks": [{"week": f"{week}", **totals(days)} for week, days in by_week(effect.days).items()],
        "total": totals(effect.days),
        "hints": effect.hints,
        "hints_wrong": effect.hints_wrong,
        "clearest": [_case(case) for case in effect.clearest],
        "cases": [_case(case) for case in effect.cases],
        "outdated": [_case(case) for case in effect.outdated],
        "notes": list(effect.notes),
    }


def totals(days: Sequence[DayEffect]) -> dict[str, int]:
    """The counts of several days together, by name."""
    needs = {f"{kind}s": sum(day.needs[kind] for day in days) for kind in KINDS}
    return {
        "sessions": sum(day.sessions for day in days),
        **needs,
        **{f"again_{state}": sum(day.count(state) for day in days) for state in STATES},
        "failed_again": sum(day.count(*STATES, kinds=("failure",)) for day in days),
        **{f"shown_by_{place}": sum(day.shown(place) for day in days) for place in PLACES},
        "outdated": sum(len(day.outdated) for day in days),
        "brief_tokens": sum(day.brief_tokens for day in days),
    }


def _case(case: Case) -> dict[str, Any]:
    need = case.need
    return {
        "day": f"{need.day}",
        "kind": need.kind,
        "said": need.text,
        "message_id": need.message_id,
        "session_id": need.session_id,
        "project": need.project,
        "state": case.state,
        "line_id": case.line_id,
        "line": case.line,
        "since": f"{case.since}",
        "shown_by": list(case.shown_by),
        "by_model": case.by_model,
    }
