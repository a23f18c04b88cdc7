"""Cases in which memory could have spared a user a repetition: needs of a day that the memory held the day before.

Only nearly identical wording and identical errors count, so the cases are a lower bound. What a session
would have been shown is computed from the memory as it was before the day: the brief of its project, and the hints on
its tool calls. That it would have helped is not claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Any, Literal, get_args

from memory_pipeline.actions.files import KINDS as PATTERN_KINDS
from memory_pipeline.actions.files import hints_of, patterns_with_cure
from memory_pipeline.agents.kit.tool_calls import runs, signature
from memory_pipeline.effect.history import STATES, KnownLine, LakeBefore, MemoryHistory, State
from memory_pipeline.effect.needs import Kind, Need, Session, sessions_on
from memory_pipeline.friction.active import active_patterns
from memory_pipeline.friction.checks import Check, check_for
from memory_pipeline.friction.messages import bare
from memory_pipeline.lake.rows import FrictionRow
from memory_pipeline.recall.assembly import Briefing
from memory_pipeline.recall.briefing import brief_from
from memory_pipeline.scope import are_apart
from memory_pipeline.text.relation import AGAIN, is_same, replaces, statement
from memory_pipeline.text.similarity import overlap
from memory_pipeline.workspace.workspace import Workspace

Place = Literal["brief", "hint"]
PLACES: tuple[Place, ...] = get_args(Place)


@dataclass(frozen=True)
class Case:
    """A need that the memory held before its day."""

    need: Need
    state: State
    line_id: str
    line: str
    since: date
    sources: frozenset[str]
    """Ids of the line, and of the rows and messages that it comes from."""
    shown_by: tuple[Place, ...] = ()
    """The places in which the session would have been shown the line, if it had been approved in case it was only
    offered."""


@dataclass
class DayEffect:
    """The needs and cases of a day."""

    day: date
    sessions: int = 0
    needs: Counter[Kind] = field(default_factory=Counter)
    cases: list[Case] = field(default_factory=list)
    outdated: list[Case] = field(default_factory=list)
    """Approved lines that the user's words of the day replace: what memory said about them was out of date."""
    brief_tokens: int = 0
    """Tokens of the briefs of all sessions of the day, from the memory before it."""

    def count(self, *states: State, kinds: Sequence[Kind] = ("instruction", "correction")) -> int:
        """The number of cases in one of these states."""
        return sum(case.state in states and case.need.kind in kinds for case in self.cases)

    def shown(self, place: Place) -> int:
        return sum(place in case.shown_by for case in self.cases)


def effect_on(workspace: Workspace, days: Sequence[date], *, counts_only: bool = False) -> list[DayEffect]:
    """The effect on each of these days, in order, except those whose messages are no longer kept.

    With ``counts_only``, briefs and hints are not computed.
    """
    days = [day for day in days if not workspace.lake.is_retired("messages", day)]
    history = MemoryHistory(workspace)
    found = {day: DayEffect(day) for day in days}
    befores = {day: _Before(workspace, history, day) for day in days}
    for session in sessions_on(workspace, days):
        for day in sorted({turn.day for turn in session.turns} & found.keys()):
            _add(session, found[day], befores[day], counts_only=counts_only)
    return list(found.values())


def _add(session: Session, effect: DayEffect, before: _Before, *, counts_only: bool) -> None:
    """Add the needs and cases of a session on a day."""
    needs = [need for need in session.needs if need.day == effect.day]
    effect.sessions += 1
    effect.needs.update(need.kind for need in needs)
    cases = [case for need in needs if (case := before.case_for(need))]
    if not counts_only:
        effect.brief_tokens += before.brief(session.project).tokens
        cases = [before.with_places(case, session) for case in cases]
    effect.cases += sorted(cases, key=lambda case: case.need.at)
    effect.outdated += before.outdated(needs)


class _Before:
    """The memory before a day, with what is computed from it on first use."""

    def __init__(self, workspace: Workspace, history: MemoryHistory, day: date) -> None:
        self.settings, self.lake = workspace.settings, LakeBefore(workspace.lake, day)
        self.history, self.day = history, day
        self._briefs: dict[tuple[str | None, bool], Briefing] = {}
        self._hints: dict[str | None, dict[str, Any]] = {}

    def case_for(self, need: Need) -> Case | None:
        """The case of a need, by words; of several lines the one in the strongest state, then the most similar."""
        if need.kind == "failure":
            return self._failure_case(need)
        words, mine = bare(need.text), statement(bare(need.text)).words
        found = [
            (STATES.index(state), -overlap(mine, statement(line.words).words), -line.since.toordinal(), line)
            for line in self._lines_for(need)
            if (state := line.state_before(self.day)) and is_same(words, line.words, AGAIN, cautious=True)
        ]
        if not found:
            return None
        place, _, _, line = min(found, key=lambda each: (*each[:3], each[3].line_id))
        return _case(need, STATES[place], line)

    def outdated(self, needs: Sequence[Need]) -> Iterator[Case]:
        for need in needs:
            if need.kind == "failure":
                continue
            for line in self._lines_for(need):
                if line.state_before(self.day) == "approved" and replaces(bare(need.text), line.words):
                    yield _case(need, "approved", line)

    def _lines_for(self, need: Need) -> Iterator[KnownLine]:
        """The lines near a need, without those that come from its session alone and those of other projects."""
        for line in self.history.near(bare(need.text)):
            if line.sessions != {need.session_id} and not are_apart(need.projects, line.projects):
                yield line

    def with_places(self, case: Case, session: Session) -> Case:
        """The case with the places in which the session would have been shown its line."""
        places = list[Place]()
        if case.sources.intersection(self.brief(session.project, offered=case.state == "offered").shown):
            places.append("brief")
        if self._is_hinted(case, session):
            places.append("hint")
        return replace(case, shown_by=tuple(places))

    def brief(self, project: str | None, *, offered: bool = False) -> Briefing:
        """The brief of a session of the project, from the memory before the day; with ``offered``, as if everything
        that had been offered had been approved."""
        if (project, offered) not in self._briefs:
            memory = self._with_offered if offered else self._approved
            self._briefs[project, offered] = brief_from(self.settings, self.lake, memory, project)
        return self._briefs[project, offered]

    def _is_hinted(self, case: Case, session: Session) -> bool:
        """Whether a hook would have shown the line: after the error, or at an earlier call that breaks the rule."""
        if case.need.kind == "failure":
            return case.line_id in {hint["id"] for hint in self._hints_for(case.need)}
        check = check_for(case.line) if case.state in ("approved", "offered") else None
        return isinstance(check, Check) and any(
            check.stops(call.call.tool, call.call.text) for call in session.calls_before(case.need)
        )

    def _failure_case(self, need: Need) -> Case | None:
        """The case of a failure that a friction pattern of earlier days names."""
        error = signature(need.text)
        row = next((row for errors, row in self._patterns if error in errors and _applies(row, need)), None)
        if row is None:
            return None
        state = self.history.fix_state_before(row["pattern_id"], self.day)
        since = row["first_day"] or row["day"]
        pattern_id = row["pattern_id"]
        return Case(need, state, pattern_id, row["adds"] or row["title"], since, frozenset((pattern_id,)))

    def _hints_for(self, need: Need) -> list[dict[str, Any]]:
        """The hints that a hook would have shown for a failed call."""
        if need.project not in self._hints:
            rows = [row for row in self._with_cure if _applies(row, need)]
            self._hints[need.project] = hints_of(rows, self.lake)
        known = self._hints[need.project]
        after = [
            hint
            for hint in known["after"].get(signature(need.text), ())
            if not hint["words"] or runs(need.command, hint["words"])
        ]
        return [*after, *(hint for hint in known["before"] if runs(need.command, hint["words"]))]

    @cached_property
    def _approved(self) -> bytes | None:
        return self.history.memory_file_before(self.day, "approved")

    @cached_property
    def _with_offered(self) -> bytes | None:
        return self.history.memory_file_before(self.day, "approved", "offered")

    @cached_property
    def _with_cure(self) -> list[FrictionRow]:
        return list(patterns_with_cure(self.settings, self.lake, self.day - timedelta(days=1)))

    @cached_property
    def _patterns(self) -> list[tuple[set[str], FrictionRow]]:
        """The patterns of failures that were active the day before, with the signatures of their errors."""
        yesterday = self.day - timedelta(days=1)
        rows = [p.row for p in active_patterns(self.lake, yesterday, self.settings.lookback_days)]
        return [(self.history.errors_of(row), row) for row in rows if row["kind"] in PATTERN_KINDS]


def _applies(row: FrictionRow, need: Need) -> bool:
    return not row["projects"] or need.project in row["projects"]


def _case(need: Need, state: State, line: KnownLine) -> Case:
    return Case(need, state, line.line_id, line.text, line.since, line.sources)


def by_week(effects: Sequence[DayEffect]) -> Mapping[date, list[DayEffect]]:
    """The days by the Monday of their week."""
    found: dict[date, list[DayEffect]] = {}
    for effect in effects:
        found.setdefault(effect.day - timedelta(days=effect.day.weekday()), []).append(effect)
    return found
