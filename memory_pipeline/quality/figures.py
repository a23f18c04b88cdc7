"""Quality figures by day: those of the checks, of the review, of the effect of memory, and of models.

Each is a share or a count of one local day. A day with nothing to count has no value, so that missing data does not
look like zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.effect.cases import DayEffect
from memory_pipeline.effect.history import STATES
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import PENDING, REJECTED, ProposalLog, is_fix
from memory_pipeline.quality.results import Result

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
    spent = lake.read("ledger").filter(~pl.col("cached").fill_null(False)).group_by("day").agg(pl.col("cost_usd").sum())
    return [
        *found,
        Figure("offered", "Lines offered", "Proposals of the day.", dict(offered.iter_rows()), ""),
        Figure(
            "rejected",
            "Rejected",
            "Share of the proposals decided on the day that a user rejected.",
            _rejected(lake, zone),
        ),
        Figure(
            "said_again",
            "Said again",
            "Instructions and corrections that repeat a line approved or offered before the day, in nearly the same "
            "words.",
            {effect.day: effect.count("approved", "offered") for effect in effects},
            "",
        ),
        Figure(
            "failed_again",
            "Failed again",
            "Failed calls with an error that was known before the day.",
            {effect.day: effect.count(*STATES, kinds=("failure",)) for effect in effects},
            "",
        ),
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
