"""Cases in which memory could have spared a user a repetition: needs of a day that the memory held the day before.

Without a model only nearly identical wording and identical errors count, so the cases are a lower bound. What a session
would have been shown is computed from the memory as it was before the day: the brief of its project, a search with its
first prompt, and the hints on its tool calls. That it would have helped is not claimed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property
from typing import Any, Literal, get_args

from memory_pipeline.actions.files import KINDS as PATTERN_KINDS
from memory_pipeline.actions.files import hints_of, patterns_with_cure
from memory_pipeline.agents.kit.tool_calls import runs, signature
from memory_pipeline.effect.history import STATES, KnownLine, LakeBefore, MemoryHistory, State
from memory_pipeline.effect.needs import Kind, Need, sessions_on
from memory_pipeline.effect.pairs import PairJudge
from memory_pipeline.embeddings.index import Filters
from memory_pipeline.friction.active import active_patterns
from memory_pipeline.friction.attempts import USER, Session
from memory_pipeline.friction.checks import Check, check_for
from memory_pipeline.friction.messages import bare
from memory_pipeline.lake.rows import FrictionRow
from memory_pipeline.recall.assembly import Briefing
from memory_pipeline.recall.briefing import brief_from
from memory_pipeline.recall.search import QueryError, Searcher
from memory_pipeline.scope import are_apart
from memory_pipeline.text.relation import AGAIN, is_same, replaces, statement
from memory_pipeline.text.similarity import overlap
from memory_pipeline.workspace.workspace import Workspace

Place = Literal["brief", "recall", "hint"]
PLACES: tuple[Place, ...] = get_args(Place)
MAX_PROMPT = 1_000
"""Maximum characters of a session's first prompt that are searched for."""


@dataclass(frozen=True)
class Case:
    """A need that the memory held before its day."""

    need: Need
    state: State
    line_id: str
    line: str
    since: date
    shown_by: tuple[Place, ...] = ()
    """The places in which the session would have been shown the line, if it had been approved in case it was only
    offered."""
    by_model: bool = False


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


def effect_on(workspace: Workspace, days: Sequence[date], *, in_full: bool) -> list[DayEffect]:
    """The effect on each of these days, in order, except those whose messages are no longer kept.

    ``in_full``, briefs, searches and hints are computed, which takes about a tenth of a second for each case, and a
    model, if one is set, judges the pairs that words do not decide, within the budget of models.
    """
    days = [day for day in days if not workspace.lake.is_retired("messages", day)]
    history = MemoryHistory(workspace)
    judge = PairJudge(workspace)
    found = {day: DayEffect(day) for day in days}
    with closing(Searcher(workspace.settings)) as search:
        befores = {day: _Before(workspace, history, judge, search, day) for day in days}
        for session, needs in sessions_on(workspace, days):
            for day in sorted({turn.day for turn in session.turns} & found.keys()):
                _add(session, [need for need in needs if need.day == day], found[day], befores[day], in_full)
    return list(found.values())


def _add(session: Session, needs: Sequence[Need], effect: DayEffect, before: _Before, in_full: bool) -> None:
    """Add the needs and cases of a session on a day."""
    effect.sessions += 1
    effect.needs.update(need.kind for need in needs)
    cases = [case for need in needs if (case := before.case_for(need))]
    if in_full:
        matched = {id(case.need) for case in cases}
        cases += before.judged([need for need in needs if need.kind != "failure" and id(need) not in matched])
        effect.brief_tokens += before.brief(session.project).tokens
        cases = [before.with_places(case, session) for case in cases]
    effect.cases += sorted(cases, key=lambda case: case.need.at)
    effect.outdated += before.outdated(needs)


class _Before:
    """The memory before a day, with what is computed from it on first use."""

    def __init__(
        self, workspace: Workspace, history: MemoryHistory, judge: PairJudge, search: Searcher, day: date
    ) -> None:
        self.settings, self.lake = workspace.settings, LakeBefore(workspace.lake, day)
        self.history, self.judge, self.search, self.day = history, judge, search, day
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

    def judged(self, needs: Sequence[Need]) -> Iterator[Case]:
        """The cases that a model finds among these needs: it is shown the approved and offered lines, newest first,
        and the observed ones that share a word with a need."""
        near = {line.line_id for need in needs for line in self._lines_for(need)}
        projects = tuple({name for need in needs for name in need.projects})
        stated = [
            (STATES.index(state), -line.since.toordinal(), line.line_id, line)
            for line in self.history.lines
            if (state := line.state_before(self.day))
            and (state in ("approved", "offered") or line.line_id in near)
            and not are_apart(projects, line.projects)
        ]
        lines: dict[str, KnownLine] = {}
        for *_, line in sorted(stated, key=lambda each: each[:3]):
            lines.setdefault(line.words, line)
        for need, line in self.judge.pairs(needs, list(lines.values()), self.day):
            state = line.state_before(self.day)
            assert state is not None
            yield _case(need, state, line, by_model=True)

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
        sources = self._sources(case)
        if sources & set(self.brief(session.project, offered=case.state == "offered").shown):
            places.append("brief")
        if case.need.kind != "failure" and sources & self._recalled(session):
            places.append("recall")
        if self._is_hinted(case, session):
            places.append("hint")
        return replace(case, shown_by=tuple(places))

    def _sources(self, case: Case) -> frozenset[str]:
        line = next((line for line in self.history.lines if line.line_id == case.line_id), None)
        return line.sources if line else frozenset((case.line_id,))

    def brief(self, project: str | None, *, offered: bool = False) -> Briefing:
        """The brief of a session of the project, from the memory before the day; with ``offered``, as if everything
        that had been offered had been approved."""
        if (project, offered) not in self._briefs:
            memory = self._with_offered if offered else self._approved
            self._briefs[project, offered] = brief_from(self.settings, self.lake, memory, project)
        return self._briefs[project, offered]

    def _recalled(self, session: Session) -> set[str]:
        """The ids that a search with the first prompt of the session finds in earlier days."""
        first = next((turn.text for turn in session.turns if turn.role == USER and turn.answer_to is None), "")
        project = {"project": [session.project]} if session.project else {}
        try:
            found = self.search.search(first[:MAX_PROMPT], Filters(None, self.day - timedelta(days=1), project))
        except QueryError:  # a prompt without words
            return set()
        return {hit.source_id for hit in found.hits} if found.is_likely else set()

    def _is_hinted(self, case: Case, session: Session) -> bool:
        """Whether a hook would have shown the line: after the error, or at an earlier call that breaks the rule."""
        if case.need.kind == "failure":
            return case.line_id in {hint["id"] for hint in self._hints_for(case.need)}
        check = check_for(case.line) if case.state in ("approved", "offered") else None
        return isinstance(check, Check) and any(
            attempt.call.at <= case.need.at and check.stops(attempt.call.tool, attempt.call.text)
            for attempt in session.attempts
        )

    def _failure_case(self, need: Need) -> Case | None:
        """The case of a failure that a friction pattern of earlier days names."""
        error = signature(need.text)
        row = next((row for errors, row in self._patterns if error in errors and _applies(row, need)), None)
        if row is None:
            return None
        state = self.history.fix_state_before(row["pattern_id"], self.day)
        since = row["first_day"] or row["day"]
        return Case(need, state, row["pattern_id"], row["adds"] or row["title"], since)

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


def _case(need: Need, state: State, line: KnownLine, *, by_model: bool = False) -> Case:
    return Case(need, state, line.line_id, line.text, line.since, by_model=by_model)


def by_week(effects: Sequence[DayEffect]) -> Mapping[date, list[DayEffect]]:
    """The days by the Monday of their week."""
    found: dict[date, list[DayEffect]] = {}
    for effect in effects:
        found.setdefault(effect.day - timedelta(days=effect.day.weekday()), []).append(effect)
    return found
