"""The summary of a run: counts, checks, cost, the location of its results, and what became of proposals meanwhile."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import polars as pl

from memory_pipeline.cli.console import escape_control, say, say_pair
from memory_pipeline.cli.workspace import shown_model
from memory_pipeline.embeddings.health import days_by_words, set_aside_files, vector_problems
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.config import NO_MODEL
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.applying import left_to_the_user, memory_loss
from memory_pipeline.proposals.events import (
    APPROVED,
    AUTO_SURFACE,
    DECIDED,
    EXPIRED,
    INVALID,
    REJECTED,
    REVIEW_SURFACE,
    SUPERSEDED,
    WITHDRAWN,
    ProposalLog,
)
from memory_pipeline.proposals.quoted_change import visible
from memory_pipeline.proposals.review import not_understood, now_utc
from memory_pipeline.recall.friction import summarize_patterns
from memory_pipeline.sessions.file_rows import not_read
from memory_pipeline.settings import Settings
from memory_pipeline.stages import INCOMPLETE
from memory_pipeline.text.priorities import PRIORITIES
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

SHOWN = 10
"""Maximum printed lines of a list."""
MAX_TITLE = 120
"""Maximum printed characters of a pattern's title."""


def summarise(settings: Settings, instance: Any | None, days: Sequence[date]) -> dict[str, Any]:
    """Figures of these days; proposals and their states of all days. Without a Dagster instance there are no results of
    checks."""
    from memory_pipeline.defs.runs import check_results

    lake = Lake.from_settings(settings)
    messages = lake.read("messages", days, ["role"])
    windows = lake.read("windows", days, ["observed", "dedupe_key"])
    observed = windows.filter(pl.col("observed"))["dedupe_key"]
    segments = lake.read("segments", days, ["dedupe_key"])
    left = observed.filter(~observed.is_in(segments["dedupe_key"].implode())).len()
    calls = lake.read("ledger").filter(pl.col("for_day").is_in(days), ~pl.col("cached"))
    observations = lake.read("observations", days, ["priority"])
    is_fix, proposals = pl.col("proposal_id").str.starts_with("f-"), ProposalLog(lake).frame
    status = proposals.filter(~is_fix)["status"]
    checks = check_results(settings, instance, set(days)) if instance else None
    read, unread = lake.read("files", columns=["reason"])["reason"].is_null().sum(), not_read(lake)
    return {
        "days": [str(day) for day in days],
        "session_files": {"read": read, "not_read": len(unread["files_not_read"])},
        **unread,
        "sessions": lake.read("sessions", days)["session_id"].n_unique(),
        "messages": messages.height,
        "user_messages": int((messages["role"] == "user").sum()),
        "windows": {
            "observed": observed.len() - left,
            "left": left,
            "stored_only": int((~windows["observed"]).sum()),
        },
        "days_unfinished": [f"{d}" for d in days if _is_waiting(lake, d)],
        "days_by_words": [f"{d}" for d in days_by_words(Workspace(settings, lake), days)],
        "problems": [
            *vector_problems(Workspace(settings, lake)),
            *filter(None, [memory_loss(lake, settings.memory_file)]),
        ],
        "set_aside": [str(path) for path in set_aside_files(Workspace(settings, lake))],
        "observations": {p: int((observations["priority"] == p).sum()) for p in PRIORITIES},
        "proposals": {name: int((status == name).sum()) for name in ("pending", "approved", "rejected")},
        "fixes_pending": proposals.filter(is_fix, status="pending").height,
        **summarize_patterns(settings, days[-1] if days else None),
        "checks": None if checks is None else _counts(checks),
        "model": shown_model(settings, settings.observer.model),
        "model_calls": calls.height,
        "model_tokens": int(calls["input_tokens"].sum()) + int(calls["output_tokens"].sum()),
        "spent_usd": float(calls["cost_usd"].sum()),
        "calls_of_unknown_price": calls["cost_usd"].null_count(),
    }


def _counts(checks: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "passed": sum(check["passed"] for check in checks.values()),
        "failed": sum(len(check["failed_days"]) for check in checks.values()),
        "failing": {name: sorted(check["failed_days"]) for name, check in checks.items() if check["failed_days"]},
    }


def _is_waiting(lake: Lake, day: date) -> bool:
    """Whether a part of the day waits for a model or its budget."""
    return any(lake.fingerprint(table, day) == INCOMPLETE for table in ("observations", "reflections"))


def say_friction(summary: Mapping[str, Any]) -> None:
    """Print the number of active patterns and the most severe one, or why there is none, from `summarize_patterns`."""
    patterns = summary["friction"]
    if not patterns:
        say_pair("friction", summary["no_friction"])
        return
    active = "1 active pattern" if len(patterns) == 1 else f"{len(patterns)} active patterns, the worst first"
    say_pair("friction", f"{active}: `memory friction`")
    worst = patterns[0]
    say_pair("", f"{worst['id']}  {clip(one_line(worst['title']), MAX_TITLE)} ({worst['sessions']} sessions)")


def say_list(name: str, lines: Sequence[str]) -> None:
    """Print the number of lines and the first ones, each on a single line."""
    say_pair(name, len(lines))
    for text in lines[:SHOWN]:
        say(f"  {escape_control(text)}")
    if len(lines) > SHOWN:
        say(f"  … {len(lines) - SHOWN} more with --json", "dim")


def say_not_read(data: Mapping[str, Any]) -> None:
    """Print the unreadable files, from `not_read`."""
    say_list("files not read", [f"{path}: {reason}" for path, reason in data["files_not_read"].items()])
    say_list("records not read", data["records_not_read"])


def say_problems(problems: Sequence[str], set_aside: Sequence[str]) -> None:
    """Print the problems, and the quarantined damaged files."""
    for problem in problems:
        say_pair("problem", problem, "yellow")
    for path in set_aside:
        say_pair("quarantined", path, "yellow")
    if set_aside:
        say_pair("", "It was damaged; `memory run --all` rebuilds its contents. Then delete it.", "yellow")


def _spent(summary: dict[str, Any]) -> str:
    calls, unknown = summary["model_calls"], summary["calls_of_unknown_price"]
    spent = f"${summary['spent_usd']:.2f}"
    if calls:
        spent += f" for {calls:,} calls of the model with {summary['model_tokens']:,} tokens"
    return spent + (f"; of {unknown:,} the price is not known" if unknown else "")


def print_summary(settings: Settings, summary: dict[str, Any], *, reviews: bool = True) -> None:
    days = summary["days"]
    say_pair("days", f"{len(days)}" + (f" ({days[0]} to {days[-1]})" if days else ""))
    say_pair("sessions", summary["sessions"])
    if summary["files_not_read"] or summary["records_not_read"]:
        say_not_read(summary)
    say_pair("messages", f"{summary['messages']}, {summary['user_messages']} of them typed by a person")
    windows = summary["windows"]
    left = f", {windows['left']} left for later" if windows["left"] else ""
    say_pair("windows", f"{windows['observed']} observed{left}, {windows['stored_only']} only stored")
    if unfinished := summary["days_unfinished"]:  # if rows of another observer are used, no window is left
        what = "the model or its budget" if summary["model"] or settings.reflector.model else "another run"
        say_pair("not finished", f"{len(unfinished)} days wait for {what} (last {unfinished[-1]})")
    if by_words := summary["days_by_words"]:
        say_pair("without vectors", f"{len(by_words)} days, without embeddings (last {by_words[-1]})")
    say_pair("observations", "  ".join(f"{settings.marks[p]} {n} {p}" for p, n in summary["observations"].items()))
    proposals = ", ".join(f"{n} {state}" for state, n in summary["proposals"].items())
    fixes = summary["fixes_pending"]
    say_pair("proposals", proposals + (f"; {fixes} friction fix{'es' * (fixes > 1)} pending" if fixes else ""))
    say_friction(summary)
    if checks := summary["checks"]:
        say_pair("checks", f"{checks['passed']} passed, {checks['failed']} failed")
        for name, failed in checks["failing"].items():
            say_pair("", f"{name} on {', '.join(failed[:5])}" + (" …" if len(failed) > 5 else ""))
    else:
        say_pair("checks", "none ran; `memory status` names those that fail")
    if not summary["model"]:
        say_pair("model", NO_MODEL)
    say_pair("money spent", _spent(summary))
    say_problems(summary["problems"], summary["set_aside"])
    here = f"{settings.review_file} or `memory review`" if reviews else "`memory review` where this lake is reviewed"
    say(f"\nReview the proposals: {here}. The Dagster UI: `memory ui`.")


def outcomes_since(settings: Settings, began: datetime) -> dict[str, Any]:
    """Ids by outcome, from the decisions since then. Decisions in the future come from a run with a wrong clock."""
    lake = Lake.from_settings(settings)
    log = ProposalLog(lake)
    recent = log.events(DECIDED, pl.col("happened_at").is_between(began, now_utc())).sort("happened_at", "proposal_id")
    is_read = pl.col("surface") == REVIEW_SURFACE
    read, other = recent.filter(is_read), recent.filter(~is_read)
    return {
        **{end: read.filter(decision=end)["proposal_id"].to_list() for end in (APPROVED, REJECTED)},
        "invalid": dict(read.filter(decision=INVALID).select("proposal_id", "reason").iter_rows()),
        "not_understood": not_understood(Workspace(settings, lake)),
        "to_make": {p: how for p, how in left_to_the_user(log).items() if p in set(recent["proposal_id"])},
        **{end: other.filter(decision=end)["proposal_id"].to_list() for end in (EXPIRED, SUPERSEDED, WITHDRAWN)},
        "automatic": other.filter(surface=AUTO_SURFACE)["proposal_id"].to_list(),
    }


def print_outcomes(settled: dict[str, Any]) -> None:
    """Print a line for the marks in REVIEW.md and one for automatic outcomes, if there are any."""
    by_hand = {APPROVED: "approved", REJECTED: "rejected", INVALID: "approved but not promoted"}
    read = [f"{len(settled[key])} {name}" for key, name in by_hand.items() if settled[key]]
    read += [f"{p}: {reason}" for p, reason in settled["invalid"].items()]
    read += [f"not understood: {', '.join(ids)}"] if (ids := settled["not_understood"]) else []
    if read:
        say(f"REVIEW.md: {', '.join(read)}", "yellow" if ids or settled["invalid"] else "")
    for how in settled["to_make"].values():
        say(visible(how), "cyan")
    automatic = {
        EXPIRED: "expired",
        SUPERSEDED: "superseded by newer ones",
        WITHDRAWN: "withdrawn, because their problem has stopped",
        "automatic": "promoted",
    }
    if ended := ", ".join(f"{len(settled[key])} {name}" for key, name in automatic.items() if settled[key]):
        say(f"Automatically: {ended}")
