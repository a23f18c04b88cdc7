"""Quality figures by day: those of the checks, and others.

Each is a share or a count of one local day. A day with nothing to count has no value, so that missing data does not
look like zero.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.effect.cases import DayEffect
from memory_pipeline.effect.history import STATES
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import PENDING, REJECTED, ProposalLog, is_fix
from memory_pipeline.quality.results import WEEK, Result
from memory_pipeline.redaction.redactor import MARK
from memory_pipeline.text.lines import stands_alone
from memory_pipeline.text.priorities import HIGH
from memory_pipeline.text.similarity import content_words, words

USER = "user"


@dataclass(frozen=True)
class Figure:
    """A number by day. `lower_is_better` is None if neither direction is better."""

    key: str
    title: str
    about: str
    by_day: Mapping[date, float]
    is_share: bool = False
    lower_is_better: bool | None = None
    unit: str = ""

    def shown(self, value: float | None) -> str:
        """The value with its unit."""
        if value is None:
            return "–"
        if self.is_share:
            return f"{value:.1%}"
        if self.unit == "$":
            return f"${value:,.2f}"
        return f"{value:,.0f}{self.unit}" if value == int(value) or value >= 100 else f"{value:,.1f}{self.unit}"

    def mean(self, last: date, days: int = 7) -> float | None:
        """The mean of the values of the days up to the last one."""
        found = [v for n in range(days) if (v := self.by_day.get(last - timedelta(days=n))) is not None]
        return sum(found) / len(found) if found else None

    def change(self, last: date) -> tuple[float, float] | None:
        """The means of the week up to the last day and of the week before, if both have values."""
        now, before = self.mean(last), self.mean(last - WEEK)
        return None if now is None or before is None else (now, before)

    def is_worse(self, last: date) -> bool | None:
        """Whether the week is worse than the one before; None if equal, or if neither direction is better."""
        means = self.change(last)
        if means is None or self.lower_is_better is None or means[0] == means[1]:
            return None
        return (means[0] > means[1]) == self.lower_is_better


def figures_of(
    lake: Lake, results: Iterable[Result], zone: ZoneInfo, effects: Sequence[DayEffect] = ()
) -> list[Figure]:
    """All figures, those of the checks first; a decision counts on its local day in this zone. ``effects`` are those of
    the latest days, as they read the messages."""
    values = _check_values(results) | _table_values(lake) | _review_values(lake, zone) | _model_values(lake)
    values |= _effect_values(effects)
    return [replace(figure, by_day=values[figure.key]) for figure in FIGURES]


def _share(key: str, title: str, about: str, lower_is_better: bool | None = True) -> Figure:
    return Figure(key, title, about, {}, is_share=True, lower_is_better=lower_is_better)


FIGURES = (
    _share("compression", "Compression", "Tokens of the observations per token said in their windows.", None),
    _share(
        "times_invented",
        "Invented times",
        "Clock times in a model's answer that occur nowhere in the session; they are removed.",
    ),
    _share("ungrounded", "Unsupported names", "Observations with a name or number that is not in their window."),
    _share("repeating", "Tool output as fact", "Observations that present the output of a tool as a statement."),
    _share("high", "High observations", "Share of a day's observations that are high.", None),
    _share(
        "not_standing_alone",
        "High observations that need context",
        "An estimate of noise: a user's high observations that cannot be understood or followed on their own.",
    ),
    _share("duplicates", "Repeated in the same words", "Observations with the same words as an earlier one."),
    _share("coverage", "Coverage of typed words", "Share of typed content words that occur in an observation.", False),
    Figure("redactions", "Secrets redacted", "Marks that replace secrets in the stored messages.", {}),
    Figure("offered", "Lines offered", "Proposals of the day.", {}),
    _share("rejected", "Rejected", "Share of the proposals decided on the day that a user rejected."),
    Figure(
        "said_again",
        "Said again",
        "Instructions and corrections that repeat a line approved or offered before the day, in nearly the same words.",
        {},
        lower_is_better=True,
    ),
    Figure(
        "failed_again",
        "Failed again",
        "Failed calls with an error that was known before the day.",
        {},
        lower_is_better=True,
    ),
    Figure("money", "Money", "Cost of models.", {}, unit="$"),
    Figure("tokens", "Tokens of models", "Sent and received.", {}),
)
_RATIOS = {
    "compression": ("compression_ratio", "ratio", None),
    "times_invented": ("hallucinated_timestamps", "invented", "written"),
    "ungrounded": ("ungrounded_specifics", "flagged", "checked"),
    "repeating": ("regurgitation", "repeating", "checked"),
    "high": ("high_is_rare", "high", "observations"),
}
"""For each figure from checks of observations, the check and the names of part and whole."""
_Values = dict[str, dict[date, float]]


def _check_values(results: Iterable[Result]) -> _Values:
    found: _Values = {key: {} for key in _RATIOS}
    by_name = {f"observations/{check}": (key, part, whole) for key, (check, part, whole) in _RATIOS.items()}
    for result in results:
        key, part, whole = by_name.get(result.name, ("", "", None))
        if result.day is not None and part in result.numbers and (whole is None or result.numbers.get(whole)):
            found[key][result.day] = result.numbers[part] / (result.numbers[whole] if whole else 1)
    return found


def _table_values(lake: Lake) -> _Values:
    observed = lake.read("observations", columns=["day", "text", "priority", "kind", "trust"]).sort("day")
    with_words = [day for day in lake.days("messages") if not lake.is_retired("messages", day)]
    said = lake.read("messages", with_words, ["day", "role", "text", "voided"])
    said = said.filter(~pl.col("voided").fill_null(False))
    marks = said.group_by("day").agg(pl.col("text").str.count_matches(MARK.pattern).sum().alias("marks"))
    return {
        "not_standing_alone": _not_self_contained(observed),
        "duplicates": _duplicates(observed),
        "coverage": _coverage(said.filter(pl.col("role") == USER), observed),
        "redactions": {day: float(count) for day, count in marks.iter_rows()},
    }


def _not_self_contained(observed: pl.DataFrame) -> dict[date, float]:
    own = observed.filter((pl.col("priority") == HIGH) & (pl.col("trust") == USER))
    by_day: dict[date, list[bool]] = defaultdict(list)
    for day, text in own.select("day", "text").iter_rows():
        by_day[day].append(not stands_alone(text))
    return _shares(by_day)


def _duplicates(observed: pl.DataFrame) -> dict[date, float]:
    seen: set[tuple[str, ...]] = set()
    by_day: dict[date, list[bool]] = defaultdict(list)
    for day, text in observed.select("day", "text").iter_rows():
        key = tuple(words(text))
        by_day[day].append(key in seen)
        seen.add(key)
    return _shares(by_day)


def _coverage(typed: pl.DataFrame, observed: pl.DataFrame) -> dict[date, float]:
    wanted, had = _words_by_day(typed), _words_by_day(observed)
    return {day: len(found & had.get(day, set())) / len(found) for day, found in wanted.items() if found}


def _words_by_day(frame: pl.DataFrame) -> dict[date, set[str]]:
    by_day: dict[date, set[str]] = defaultdict(set)
    for day, text in frame.select("day", "text").iter_rows():
        by_day[day] |= content_words(text)
    return by_day


def _review_values(lake: Lake, zone: ZoneInfo) -> _Values:
    offered = lake.read("proposals", columns=["day"]).group_by("day").len()
    decided = ProposalLog(lake).frame.filter(pl.col("status") != PENDING, pl.col("decided_at").is_not_null())
    by_day: dict[date, list[bool]] = defaultdict(list)
    for moment, status in decided.select("decided_at", "status").iter_rows():
        by_day[day_of(moment, zone)].append(status == REJECTED)
    return {"offered": {day: float(n) for day, n in offered.iter_rows()}, "rejected": _shares(by_day)}


def _shares(by_day: Mapping[date, Sequence[bool]]) -> dict[date, float]:
    return {day: sum(found) / len(found) for day, found in by_day.items()}


def _effect_values(effects: Sequence[DayEffect]) -> _Values:
    return {
        "said_again": {effect.day: float(effect.count("approved", "offered")) for effect in effects},
        "failed_again": {effect.day: float(effect.count(*STATES, kinds=("failure",))) for effect in effects},
    }


def _model_values(lake: Lake) -> _Values:
    calls = lake.read("ledger").filter(~pl.col("cached").fill_null(False))
    tokens = pl.col("input_tokens") + pl.col("output_tokens")
    rows = calls.group_by("day").agg(pl.col("cost_usd").fill_null(0).sum(), tokens.sum().alias("tokens")).to_dicts()
    return {
        "money": {row["day"]: float(row["cost_usd"]) for row in rows},
        "tokens": {row["day"]: float(row["tokens"]) for row in rows},
    }


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


def seconds_figures(by_stage: Mapping[str, Mapping[date, float]], most: int = 6) -> list[Figure]:
    """Seconds by day of the stages with the largest totals."""
    ordered: Sequence[str] = sorted(by_stage, key=lambda stage: -sum(by_stage[stage].values()))
    return [Figure(f"seconds_{s}", s, "All steps of a day.", by_stage[s], unit=" s") for s in ordered[:most]]
