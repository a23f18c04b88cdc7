"""The stage that writes a day's rows of `friction_clusters`: patterns that recurred or ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

import polars as pl

from memory_pipeline.days import day_of, lookback
from memory_pipeline.friction.active import points_in
from memory_pipeline.friction.attempts import USER, sessions_in
from memory_pipeline.friction.patterns import MISSING_SKILL, REPEATED_CORRECTION, RULE_VIOLATED, TOOL_MISUSE, Pattern
from memory_pipeline.friction.rules import Rule, RuleBook, given_in
from memory_pipeline.lake.rows import FrictionRow, ObservationRow, distinct, typed_rows
from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.stages import Built
from memory_pipeline.workspace.workspace import Workspace

if TYPE_CHECKING:
    from memory_pipeline.friction.asking import Asking
    from memory_pipeline.friction.failures import Failure
    from memory_pipeline.friction.lookups import Lookup
    from memory_pipeline.friction.observed import ShownLine, Violation
    from memory_pipeline.friction.patterns import FrictionEvent

VERSION = "21"
MAX_PER_DAY = 10
REMEMBERED_DAYS = 30
"""Number of days before the lookback whose rows are searched for a continued or ended pattern."""
INPUTS = ("sessions", "messages", "observations")


@dataclass
class FrictionInput:
    """The input of the search for a day."""

    remarks: list[FrictionEvent] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    lookups: list[Lookup] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)


class FrictionStage:
    """The stage that finds patterns across sessions with events on this day: the ten most severe, and all that
    continue."""

    tables = ("friction_clusters",)

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.settings, self.lake = workspace.settings, workspace.lake

    @cached_property
    def _asking(self) -> Asking:
        from memory_pipeline.friction.asking import Asking  # here and below, because a plan builds nothing

        return Asking(self.workspace)

    @cached_property
    def rules(self) -> RuleBook:
        return RuleBook(self.workspace, datetime.now(self.settings.zone).date())

    @cached_property
    def _recorded(self) -> list[ShownLine]:
        """The lines of MEMORY.md that hooks showed or held, oldest first."""
        from memory_pipeline.friction.observed import shown_lines

        known = {rule.line_id for rule in self.rules.present.values()}
        return [line for line in shown_lines(self.settings) if line.line_id in known]

    def days_read(self, day: date) -> list[date]:
        return lookback(day, self.settings.lookback_days)

    def fingerprint(self, day: date) -> str:
        days = self.days_read(day)
        inputs = [self.lake.digest(t, days) for t in INPUTS]
        zone = self.settings.zone
        observed = [f"{line}" for line in self._recorded if days[0] <= day_of(line.at, zone) <= day]
        rules = self.rules.fingerprint(day)
        return fingerprint_of(VERSION, self.settings.friction_min_points, *inputs, rules, *observed)

    def build(self, day: date) -> Built:
        """The rows of the day; if retention deleted its patterns, only the rows that were kept."""
        if self.lake.is_retired("friction_clusters", day):
            return Built({"friction_clusters": self.lake.read("friction_clusters", [day])})
        days = self.days_read(day)
        self._asking.refused.clear()
        self.rules.remember()
        points = points_in(self.lake, days)
        least = self.settings.friction_min_points
        if points < least:
            message = f"not enough yet: {points} of {least} indexed texts in {len(days)} days"
            return self._build_rows(day, [], {"points": points, "nothing_found": message})
        found, notes = self._patterns(day, days)
        notes = {"points": points, **notes}
        return self._build_rows(day, found, notes if found else {**notes, "nothing_found": "nothing recurs"})

    def read_input(self, day: date, days: list[date]) -> FrictionInput:
        """The remarks, failures and look-ups of these days, and the rules known before the day."""
        from memory_pipeline.friction.failures import failures_in
        from memory_pipeline.friction.lookups import lookups_in
        from memory_pipeline.friction.messages import messages_in, without_replaced
        from memory_pipeline.friction.observed import violations_in

        found = FrictionInput()
        given: dict[str, Rule] = {rule.rule_id: rule for rule in self.rules.before(day)}
        observed = by_session(self.lake.read("observations", days))
        recorded: dict[str, list[ShownLine]] = {}
        for line in self._recorded:
            recorded.setdefault(line.session_id, []).append(line)
        of_line: dict[str | None, list[Rule]] = {}
        for rule in self.rules.present.values():
            of_line.setdefault(rule.line_id, []).append(rule)
        for session in sessions_in(self.lake, days):
            found.remarks += messages_in(session, observed.get(session.session_id, []))
            found.failures += failures_in(session)
            found.lookups += lookups_in(session)
            found.violations += violations_in(session, recorded.get(session.session_id, ()), of_line)
            for rule in given_in(session):
                if rule.rule_id not in given or rule.since < given[rule.rule_id].since:
                    given[rule.rule_id] = rule
        found.remarks = without_replaced(found.remarks)
        found.rules = list(given.values())
        stopped = {violation.stopped for violation in found.violations}
        found.failures = [failure for failure in found.failures if failure.event.event_id not in stopped]
        return found

    def _patterns(self, day: date, days: list[date]) -> tuple[list[Pattern], dict[str, Any]]:
        """All patterns of these days."""
        from memory_pipeline.friction import corrections, failures, lookups
        from memory_pipeline.friction.corrections import by_model

        given = self.read_input(day, days)
        grouped = by_model(self._asking, given.remarks, given.rules, day)
        found = [
            *corrections.find_patterns(given.remarks, given.rules, grouped, given.violations),
            *failures.find_patterns(given.failures),
            *lookups.find_patterns(given.lookups),
        ]
        corrected = sum(event.is_correction for event in given.remarks)
        notes: dict[str, Any] = {
            "corrections": corrected,
            "failures": len(given.failures),
            "lookups": len(given.lookups),
            "rules": len(given.rules),
            "observed_violations": len(given.violations),
        }
        if grouped and any(grouped):
            notes["put_together_by"] = self._asking.model
        if grouped is None and corrected > corrections.MAX_COMPARED:
            notes["many"] = f"only the newest {corrections.MAX_COMPARED} corrections are compared"
        return [pattern.with_short_title() for pattern in each_once(found)], notes

    def _build_rows(self, day: date, patterns: Sequence[Pattern], notes: dict[str, Any]) -> Built:
        before = [d for d in lookback(day, REMEMBERED_DAYS) if d < day]
        newest: dict[str, FrictionRow] = {}
        for row in typed_rows(self.lake.read("friction_clusters", before), FrictionRow):
            newest[row["pattern_id"]] = row  # days are in order
        is_open = {i: row for i, row in newest.items() if row["ended_on"] is None}
        own = typed_rows(self.lake.read("friction_clusters", [day]), FrictionRow)
        known = [*is_open.values(), *(row for row in own if row["pattern_id"] not in newest)]
        worst = sorted(patterns, key=lambda p: (p.members[-1].day != day, -p.severity, p.kind, p.title))
        matched = numbered(day, worst, known)
        of_day = [(p, m) for p, m in zip(worst, matched, strict=True) if p.members[-1].day == day]
        # beyond ten only continued ones, which would seem to have ended without a row
        made = [(p, m) for n, (p, m) in enumerate(of_day) if n < MAX_PER_DAY or not isinstance(m, str)]
        rows = [row_of(day, p, known_as, self.settings.owner) for p, known_as in made]
        continued = {m["pattern_id"] for m in matched if not isinstance(m, str)}
        oldest = day - timedelta(days=self.settings.lookback_days)
        ended = [
            FrictionRow(**{**row, "day": day, "ended_on": day})
            for i, row in sorted(is_open.items())
            if i not in continued and ((row["last_day"] or row["day"]) <= oldest or _is_covered_by(row, patterns))
        ]
        frame = pl.DataFrame([*rows, *ended], schema=TABLES["friction_clusters"].columns)
        if refused := [f"{times}: {why}" for why, times in self._asking.refused.items()]:
            notes = {**notes, "without_the_model": "; ".join(refused)}
        counts = {"patterns": len(rows), "new": sum(isinstance(m, str) for _, m in made)}
        return Built({"friction_clusters": frame}, notes={**notes, **counts, "ended": len(ended)})


def numbered(day: date, patterns: Sequence[Pattern], known: Sequence[FrictionRow]) -> list[FrictionRow | str]:
    """For each pattern, the newest row that it continues, else a new id of the day.

    ``known`` are the newest rows of open patterns, and the rows that the day had before, so that a rebuilt day keeps
    its ids.
    """
    by_place: dict[tuple[str, str], FrictionRow] = {}
    for old in known:
        for span in old["evidence"]:
            by_place.setdefault((old["kind"], span["message_id"]), old)
    taken: set[str] = set()
    numbers = {int(r["pattern_id"].rsplit("-", 1)[1]) for r in known if r["pattern_id"][2:10] == f"{day:%Y%m%d}"}
    free = (n for n in count(1) if n not in numbers)
    found: list[FrictionRow | str] = []
    for pattern in patterns:
        places = [(pattern.kind, span[0]) for member in pattern.members for span in member.evidence]
        rows = (by_place[place] for place in places if place in by_place)
        row = next((r for r in rows if r["pattern_id"] not in taken), None)
        if row is None:
            row = next((r for r in known if _has_title_of(r, pattern) and r["pattern_id"] not in taken), None)
        taken.add(row["pattern_id"] if row else "")
        found.append(row or f"f-{day:%Y%m%d}-{next(free):03d}")
    return found


def _has_title_of(row: FrictionRow, pattern: Pattern) -> bool:
    """Whether a row and a pattern without common evidence are the same, judged by their titles."""
    own = pattern.kind, pattern.title, distinct(member.project for member in pattern.members)
    return (row["kind"], row["template"] or row["title"], row["projects"] or []) == own


def each_once(patterns: Sequence[Pattern]) -> list[Pattern]:
    """The patterns without those that are another view of one: remarks on a refused call, look-ups after it, requests
    before the same look-up, and a search for a page that is read."""
    misuse, skills = [p for p in patterns if p.kind == TOOL_MISUSE], list[Pattern]()
    for pattern in sorted((p for p in patterns if p.kind == MISSING_SKILL), key=lambda p: -len(p.members)):
        if not _is_mostly_within(pattern.requests, [*misuse, *skills]):
            skills.append(pattern)
    behind = {REPEATED_CORRECTION: [*misuse, *skills], RULE_VIOLATED: skills}
    kept = [
        p for p in patterns if p.kind != MISSING_SKILL and not _is_mostly_within(p.messages, behind.get(p.kind, []))
    ]
    return [*kept, *skills]


def _is_covered_by(row: FrictionRow, patterns: Sequence[Pattern]) -> bool:
    """Whether most events of the row now belong to another pattern: a correction whose rule was found, or two that were
    merged."""
    own = {span["message_id"] for span in row["evidence"]}
    return any(2 * len(own & p.messages) > len(own) for p in patterns)


def _is_mostly_within(ids: frozenset[str], patterns: Sequence[Pattern]) -> bool:
    return any(2 * len(ids & (p.messages | p.requests)) > len(ids) for p in patterns)


def by_session(observations: pl.DataFrame) -> dict[str, list[ObservationRow]]:
    """The observations of each session."""
    found: dict[str, list[ObservationRow]] = {}
    for row in typed_rows(observations.filter(pl.col("trust") == USER), ObservationRow):
        found.setdefault(row["session_id"], []).append(row)
    return found


def row_of(day: date, pattern: Pattern, known: FrictionRow | str, owner: str) -> FrictionRow:
    """The row of a pattern, given its new id or the row that it continues."""
    spans = [span for member in pattern.members for span in member.evidence]
    before = None if isinstance(known, str) else known
    return {
        "day": day,
        "pattern_id": known if isinstance(known, str) else known["pattern_id"],
        "kind": pattern.kind,
        "title": pattern.title,
        "target_file": pattern.target_file,
        "section": pattern.section,
        "adds": pattern.adds,
        "replaces": pattern.replaces,
        "change": pattern.change,
        "low_risk": pattern.low_risk,
        "sessions": pattern.sessions,
        "occurrences": len(pattern.members),
        "turns": pattern.turns,
        "minutes": round(pattern.minutes, 1),
        "severity": round(pattern.severity, 2),
        "confidence": round(pattern.confidence, 3),
        "first_day": min(filter(None, [before and before["first_day"], pattern.members[0].day])),
        "last_day": pattern.members[-1].day,
        "ended_on": None,
        "by_week": [{"week": week, "occurrences": times} for week, times in _weeks(pattern, before)],
        "evidence": [{"message_id": m, "start": s, "end": e} for m, s, e in spans],
        "session_ids": distinct(member.session_id for member in pattern.members),
        "cwds": distinct(member.cwd for member in pattern.members),
        "projects": distinct(member.project for member in pattern.members),
        "owner": owner,
        "written_by": None,
        "template": None,
    }


def _weeks(pattern: Pattern, before: FrictionRow | None) -> list[tuple[date, int]]:
    """The number of events by week; weeks before the lookback come from the earlier row."""
    now = dict(pattern.by_week)
    older = {w["week"]: w["occurrences"] for w in (before and before["by_week"]) or []}
    return sorted({week: max(older.get(week, 0), now.get(week, 0)) for week in {*older, *now}}.items())
