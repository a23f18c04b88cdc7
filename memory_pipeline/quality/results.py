"""Results of checks: the latest result of each check for each day, and advice for a failure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta

from memory_pipeline.distillation.periods import DAY, LEVEL_OF

WEEK = timedelta(days=7)
WORST_DAYS = 10
"""Maximum number of days whose failures are shown in full."""
ADVICE: Mapping[str, str] = {
    "every_message_in_one_window": "Files of `messages` or `windows` are inconsistent: `memory run --from DAY --to "
    "DAY` rebuilds the day from its session files.",
    **dict.fromkeys(
        ("times_are_recorded", "evidence_is_verbatim"),
        "Rows were changed or restored after they were built: run the day again. Until this passes, later stages do "
        "not read the day.",
    ),
    "no_secrets": "Run the day again with redaction on (`MEMORY_REDACT=true`); what it says looks like a secret is "
    "still in the transcript.",
    "no_silent_zero": "`memory show DAY` has the reason for each window; run the day again, or the next day if the "
    "budget is spent.",
    "hallucinated_timestamps": "Invented times are removed; another model (`memory setup`) may invent none.",
    "compression_ratio": "The day has too few or too many observations: check it with `memory show DAY`.",
    "ungrounded_specifics": "Facts with names that do not occur in the session are flagged and never offered; another "
    "model (`memory setup`) may make none.",
    "regurgitation": "The output of tools is presented as statements: check the lines below, or try another model "
    "(`memory setup`).",
    "high_is_rare": "Too many observations are high, so high means little: check the day with `memory show DAY "
    "--high`.",
    "index_matches_tables": "Run the day again, or rebuild the index with `memory admin index rebuild`.",
    "evidence_is_stored": "Run the day again: the sources of its patterns have changed.",
    "recall_loss": "A distillation lost a high observation: run it again; the days themselves are kept.",
    "lines_are_whole": "Rows of a distillation were changed after they were built: run it again.",
    "one_decision_each": "`memory status` says what happened to MEMORY.md and how to restore it.",
    "review_backlog": "`memory review` shows the pending proposals one at a time.",
    "identity_files": "`memory admin identity` shows which file is missing or which link is wrong.",
}
"""The action for a user after a failure, by check."""


@dataclass(frozen=True)
class Result:
    """The result of a check for one day (for a week or month its first), or for everything (None)."""

    asset: str
    check: str
    day: date | None
    passed: bool
    severe: bool
    """Whether a failure is an error rather than a warning."""
    sentence: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)
    offenders: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.asset}/{self.check}"


@dataclass(frozen=True)
class Checked:
    """The results of a check over days; `about` is its description."""

    name: str
    about: str
    results: Mapping[date | None, Result]

    @property
    def failed(self) -> list[Result]:
        """The failures, newest first; those about everything come before those of days."""
        bad = [r for r in self.results.values() if not r.passed]
        return sorted(bad, key=lambda r: (r.day is None, r.day or date.min), reverse=True)

    @property
    def is_by_day(self) -> bool:
        """Whether the check has results by day, not for everything or by week or month."""
        return bool(set(self.results) - {None}) and LEVEL_OF.get(self.name.partition("/")[0], DAY) == DAY

    @property
    def advice(self) -> str:
        return ADVICE.get(self.name.rpartition("/")[2], "")

    def share_passed(self, days: Iterable[date]) -> float | None:
        """The share of these days that passed; None without results."""
        judged = [self.results[day].passed for day in days if day in self.results]
        return sum(judged) / len(judged) if judged else None


def by_check(results: Iterable[Result], about: Mapping[str, str]) -> list[Checked]:
    """The results in the order of ``about``, which maps each check to a sentence; later results override earlier
    ones."""
    found: dict[str, dict[date | None, Result]] = defaultdict(dict)
    for result in results:
        found[result.name][result.day] = result
    return [Checked(name, about[name], found.get(name, {})) for name in about]


def worst_days(results: Iterable[Result]) -> list[tuple[date, list[Result]]]:
    """The days with the most failures and these failures, errors before warnings, newer before older."""
    by_day: dict[date, list[Result]] = defaultdict(list)
    for result in results:
        if not result.passed and result.day is not None:
            by_day[result.day].append(result)
    days = sorted(by_day, key=lambda d: (sum(r.severe for r in by_day[d]), len(by_day[d]), d), reverse=True)
    return [(day, sorted(by_day[day], key=lambda r: (not r.severe, r.name))) for day in days[:WORST_DAYS]]


def changes(checked: Iterable[Checked], last: date) -> list[str]:
    """Improvements and deteriorations of the last seven days compared with the seven before."""
    week = [last - timedelta(days=n) for n in range(7)]
    found = []
    for check in checked:
        now, before = check.share_passed(week), check.share_passed(day - WEEK for day in week)
        if now is None or before is None or now == before:
            continue
        word = "fails more often" if now < before else "fails less often"
        if now == 1:
            word = "passes again"
        elif before == 1:
            word = "fails for the first time in two weeks"
        found.append(f"{check.name} {word}: {before:.0%} of the days passed, now {now:.0%}")
    return found
