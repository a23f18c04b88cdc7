"""Views of friction: the list of patterns, and one pattern with all its evidence."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import date
from typing import Any

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.friction.active import (
    Pattern,
    active_patterns,
    ended,
    last_day_looked_at,
    patterns_on,
    points_in,
    why_none,
)
from memory_pipeline.lake.rows import FrictionRow, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace

_ID = re.compile(r"f-\d{8}-\d{3,}")


class NoSuchPatternError(MemoryPipelineError):
    """No friction pattern has that id."""


def is_pattern(identifier: str) -> bool:
    """Whether the identifier has the form of a friction pattern's id."""
    return bool(_ID.fullmatch(identifier))


def list_patterns(
    settings: Settings, projects: Collection[str | None] = (), kinds: Collection[str] = (), *, is_ended: bool = False
) -> dict[str, Any]:
    """The active (or ended) patterns of these projects and kinds, empty for all; None stands for patterns of no
    project. The most severe is first, of ended ones the latest. With them come the last day that was searched, `points`
    of the search and, if there is no pattern, the reason `why`."""
    workspace = Workspace(settings, Lake.from_settings(settings))
    lake, days = workspace.lake, settings.lookback_days
    day = last_day_looked_at(lake)
    every = (ended if is_ended else active_patterns)(lake, day, days) if day else []
    found = [pattern for pattern in every if _matches(pattern, projects, kinds)]
    status = ProposalLog(lake).status if found else {}
    return {
        "day": day,
        "lookback_days": days,
        "points": points_in(lake, lookback(day, days)) if day else None,
        "points_needed": settings.friction_min_points,
        "patterns": [_pattern_view(pattern, day, status) for pattern in found if day],
        "why": None if found else _explanation(workspace, every, is_ended),
    }


def _matches(pattern: Pattern, projects: Collection[str | None], kinds: Collection[str]) -> bool:
    own: set[str | None] = {*(pattern.row["projects"] or ())} or {None}
    return (not kinds or pattern.row["kind"] in kinds) and (not projects or not own.isdisjoint(projects))


def explain_pattern(settings: Settings, identifier: str) -> dict[str, Any]:
    """A pattern as in `list_patterns`, with its state on each of its days, the `history` of its fix, and the quotes of
    every occurrence (`said`), oldest first. Raises `NoSuchPatternError`."""
    from memory_pipeline.proposals.history import history
    from memory_pipeline.recall.origin import quoted_messages

    lake = Lake.from_settings(settings)
    frame = lake.read("friction_clusters").filter(pl.col("pattern_id") == identifier).sort("day")
    if frame.is_empty():
        raise NoSuchPatternError(
            f"There is no friction pattern {identifier}; `memory friction` lists the active ones, `memory friction "
            f"--ended` the ended ones."
        )
    day = last_day_looked_at(lake) or frame["day"][-1]
    (pattern,) = patterns_on(day, typed_rows(frame, FrictionRow), settings.lookback_days)
    days = frame.select("day", "sessions", "occurrences", "minutes", "severity", "ended_on").to_dicts()
    spans = {tuple(span.values()): span for evidence in frame["evidence"].to_list() for span in evidence or ()}
    said = quoted_messages(settings, list(spans.values()))
    log = ProposalLog(lake)
    return {
        **_pattern_view(pattern, day, log.status),
        "days": days,
        "history": history(Workspace(settings, lake), identifier),
        "said": sorted(said, key=lambda each: f"{each.get('said_at', '')}"),
    }


def summarize_patterns(settings: Settings, day: date | None = None) -> dict[str, Any]:
    """A summary of the patterns that were active on the day, by default the last one searched (`friction`), or the
    reason why there is none (`no_friction`)."""
    lake = Lake.from_settings(settings)
    day = day or last_day_looked_at(lake)
    found = active_patterns(lake, day, settings.lookback_days) if day else []
    keys = ("sessions", "occurrences", "severity")
    return {
        "friction": [
            {"id": p.row["pattern_id"], "title": p.row["title"], "kind": p.row["kind"]}
            | {key: p.row[key] for key in keys}  # type: ignore[literal-required]
            for p in found
        ],
        "no_friction": None if found else why_none(Workspace(settings, lake), day),
    }


def _explanation(workspace: Workspace, every: list[Pattern], is_ended: bool) -> str:
    """The reason why no pattern is listed."""
    if len(every) == 1:
        return f"1 pattern {'has ended' if is_ended else 'is active'}, but it does not match the filters."
    if every:
        are = "have ended" if is_ended else "are active"
        return f"{len(every)} patterns {are}, but none of them matches the filters."
    if is_ended and last_day_looked_at(workspace.lake):
        return "No pattern has ended."
    return why_none(workspace)


def _pattern_view(pattern: Pattern, until: date, status: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict(pattern.row)
    as_stored = ("title", "kind", "projects", "sessions", "occurrences", "turns", "minutes", "severity", "confidence")
    change = ("target_file", "section", "adds", "replaces", "change", "low_risk")
    return {
        "id": row["pattern_id"],
        **{name: row[name] for name in as_stored},
        "kind_in_words": pattern.kind,
        "first_day": pattern.first_day,
        "last_day": pattern.last_day,
        "ended_on": pattern.ended_on,
        "by_week": [{"week": week, "occurrences": n} for week, n in pattern.weeks(until)],
        **{name: row[name] for name in change},
        "fix": status.get(row["pattern_id"]),
    }
