"""The quality report: results of checks, figures by day, changes since last week, and advice.

A figure is a share or a count of one local day. A day with nothing to count has no value, so that missing data does not
look like zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl

from memory_pipeline.actions.outcomes import stored_times
from memory_pipeline.days import day_of
from memory_pipeline.effect.cases import DayEffect, effect_on
from memory_pipeline.effect.history import STATES
from memory_pipeline.effect.summary import SPAN_DAYS
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import PENDING, REJECTED, ProposalLog, is_fix
from memory_pipeline.quality.results import Checked, Result, by_check, changes, worst_days
from memory_pipeline.workspace.workspace import Workspace

SHARE, DOLLARS = "%", "$"


@dataclass(frozen=True)
class Figure:
    """A number by day, with its unit if it is a share or an amount of money."""

    key: str
    title: str
    about: str
    by_day: Mapping[date, float]
    unit: str = SHARE

    def shown(self, value: float) -> str:
        """The value with its unit."""
        if self.unit == SHARE:
            return f"{value:.1%}"
        return f"${value:,.2f}" if self.unit == DOLLARS else f"{round(value, 1):,g}"

    def mean(self, last: date) -> float | None:
        """The mean of the values of the seven days up to the last one."""
        found = [v for n in range(7) if (v := self.by_day.get(last - timedelta(days=n))) is not None]
        return sum(found) / len(found) if found else None


@dataclass(frozen=True)
class Report:
    """The contents of the page and of its JSON."""

    made_at: datetime
    workspace: str
    days: tuple[date, ...]
    """Days with sessions, oldest first."""
    checked: tuple[Checked, ...]
    figures: tuple[Figure, ...]
    worst: tuple[tuple[date, list[Result]], ...]
    """The days with the most failures."""
    changes: tuple[str, ...]
    sections: tuple[Mapping[str, str | int], ...]
    costs: tuple[Mapping[str, str | int | float], ...]
    hints: Mapping[str, int]
    """The lines shown at tool calls, by what became of them."""

    @property
    def last(self) -> date | None:
        return self.days[-1] if self.days else None

    @property
    def judged(self) -> int:
        return sum(len(check.results) for check in self.checked)

    @property
    def failed(self) -> list[Result]:
        return [result for check in self.checked for result in check.failed]

    @property
    def days_failed(self) -> list[date]:
        return sorted({result.day for result in self.failed if result.day})

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        if not self.judged:
            return "No check has run yet; `memory run` runs them."
        if not self.failed:
            return f"All {self.judged:,} results of {len(self.checked)} checks passed."
        errors = sum(result.severe for result in self.failed)
        of = f"{errors} of them errors" if errors else "none of them an error"
        days = f"on {len(self.days_failed)} days" if self.days_failed else "on results without a day"
        return f"{len(self.failed):,} of {self.judged:,} results failed {days}, {of}."


def make_report(workspace: Workspace, results: Sequence[Result], about: Mapping[str, str], now: datetime) -> Report:
    """The report; ``about`` maps each check to its description. No model is asked, also not about the effect."""
    lake, settings = workspace.lake, workspace.settings
    days = tuple(lake.read("sessions", columns=["day"])["day"].unique().sort())
    recent = [day for day in days if days[-1] - day < timedelta(days=SPAN_DAYS)]
    effects = effect_on(workspace, recent, in_full=False)
    checked = by_check(results, about)
    return Report(
        now,
        f"{settings.workspace}",
        days,
        tuple(checked),
        tuple(make_figures(lake, results, settings.zone, effects)),
        tuple(worst_days(results)),
        tuple(changes(checked, days[-1])) if days else (),
        tuple(acceptance(lake)),
        tuple(costs(lake)),
        stored_times(settings),
    )


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain data, with everything on the page."""
    return {
        "made_at": report.made_at.isoformat(timespec="seconds"),
        "workspace": report.workspace,
        "summary": report.sentence,
        "days": [f"{day}" for day in report.days],
        "results": report.judged,
        "failed": len(report.failed),
        "checks": [
            {
                "check": check.name,
                "about": check.about,
                "what_to_do": check.advice,
                "passed": sum(r.passed for r in check.results.values()),
                "failed": [_result(r) for r in check.failed],
                "by_day": {f"{day}": r.passed for day, r in check.results.items() if day},
            }
            for check in report.checked
        ],
        "figures": [_figure(figure, report.last) for figure in report.figures],
        "worst_days": [{"day": f"{day}", "failed": list(map(_result, failed))} for day, failed in report.worst],
        "changes": list(report.changes),
        "sections": list(report.sections),
        "costs": list(report.costs),
        "hints": dict(report.hints),
    }


def _result(result: Result) -> dict[str, Any]:
    return {
        "check": result.name,
        "day": f"{result.day}" if result.day else None,
        "error": result.severe,
        "reason": result.sentence,
        "offenders": list(result.offenders),
    }


def _figure(figure: Figure, last: date | None) -> dict[str, Any]:
    return {
        "figure": figure.key,
        "title": figure.title,
        "about": figure.about,
        "last_7_days": figure.mean(last) if last else None,
        "by_day": {f"{day}": value for day, value in sorted(figure.by_day.items())},
    }


_OF_CHECKS = (
    (
        *("compression", "Compression", "Tokens of the observations per token said in their windows."),
        *("compression_ratio", "ratio", None),
    ),
    (
        *("times_invented", "Invented times"),
        "Clock times in a model's answer that occur nowhere in the session; they are removed.",
        *("hallucinated_timestamps", "invented", "written"),
    ),
    (
        *("ungrounded", "Unsupported names", "Observations with a name or number that is not in their window."),
        *("ungrounded_specifics", "flagged", "checked"),
    ),
    (
        *("repeating", "Tool output as fact", "Observations that present the output of a tool as a statement."),
        *("regurgitation", "repeating", "checked"),
    ),
    (
        *("high", "High observations", "Share of a day's observations that are high."),
        *("high_is_rare", "high", "observations"),
    ),
)
"""Figures from checks of observations: key, title and description, the check, and the names of part and whole."""


def make_figures(
    lake: Lake, results: Iterable[Result], zone: ZoneInfo, effects: Sequence[DayEffect] = ()
) -> list[Figure]:
    """All figures, those of the checks first; a decision counts on its local day in this zone."""
    stored = {(result.name, result.day): result.numbers for result in results if result.day}
    found = [
        Figure(key, title, about, _ratios(stored, f"observations/{check}", part, whole))
        for key, title, about, check, part, whole in _OF_CHECKS
    ]
    offered = lake.read("proposals", columns=["day"]).group_by("day").len()
    rejected = _rejected(lake, zone)
    failed = {effect.day: effect.count(*STATES, kinds=("failure",)) for effect in effects}
    spent = lake.read("ledger").filter(~pl.col("cached").fill_null(False)).group_by("day").agg(pl.col("cost_usd").sum())
    return [
        *found,
        Figure("offered", "Lines offered", "Proposals of the day.", dict(offered.iter_rows()), ""),
        Figure("rejected", "Rejected", "Share of the proposals decided on the day that a user rejected.", rejected),
        Figure(
            "said_again",
            "Said again",
            "Instructions and corrections that repeat a line approved or offered before the day, in nearly the same "
            "words.",
            {effect.day: effect.count("approved", "offered") for effect in effects},
            "",
        ),
        Figure("failed_again", "Failed again", "Failed calls with an error that was known before the day.", failed, ""),
        Figure("money", "Money", "Cost of models.", dict(spent.iter_rows()), DOLLARS),
    ]


def _ratios(
    stored: Mapping[tuple[str, date], Mapping[str, float]], check: str, part: str, whole: str | None
) -> dict[date, float]:
    """The part of the whole by day, from the numbers that the check stored; without a name of the whole, the part."""
    return {
        day: numbers[part] / (numbers[whole] if whole else 1)
        for (name, day), numbers in stored.items()
        if name == check and part in numbers and (whole is None or numbers.get(whole))
    }


def _rejected(lake: Lake, zone: ZoneInfo) -> dict[date, float]:
    decided = ProposalLog(lake).frame.filter(pl.col("status") != PENDING, pl.col("decided_at").is_not_null())
    by_day: dict[date, list[bool]] = defaultdict(list)
    for moment, status in decided.select("decided_at", "status").iter_rows():
        by_day[day_of(moment, zone)].append(status == REJECTED)
    return {day: sum(rejected) / len(rejected) for day, rejected in by_day.items()}


def acceptance(lake: Lake) -> list[dict[str, str | int]]:
    """Number of proposals by section of MEMORY.md and status; friction fixes have a row of their own."""
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    rows = ProposalLog(lake).frame.select("proposal_id", "section", "status")
    for proposal, section, status in rows.iter_rows():
        counts["Friction Fixes" if is_fix(proposal) else section or "–"][status] += 1
    return [{"section": section} | dict(ends) for section, ends in sorted(counts.items())]


def costs(lake: Lake) -> list[dict[str, str | int | float]]:
    """Calls, tokens and cost by stage and model."""
    calls = lake.read("ledger").filter(~pl.col("cached").fill_null(False))
    tokens = (pl.col("input_tokens") + pl.col("output_tokens")).sum().alias("tokens")
    found = calls.group_by("stage", "model").agg(pl.len().alias("calls"), tokens, pl.col("cost_usd").sum().alias("usd"))
    return found.sort("usd", "stage", "model", descending=[True, False, False]).to_dicts()
