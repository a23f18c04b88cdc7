"""The quality report: results of checks, figures by day, changes since last week, and advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from memory_pipeline.actions.outcomes import stored_times
from memory_pipeline.effect.cases import effect_on
from memory_pipeline.effect.summary import SPAN_DAYS
from memory_pipeline.quality.figures import Figure, acceptance, costs, make_figures
from memory_pipeline.quality.results import Checked, Result, by_check, changes, worst_days
from memory_pipeline.workspace.workspace import Workspace


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
