"""Views of friction: the list of patterns, and one pattern with all its evidence."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
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


@dataclass(frozen=True)
class PatternFilter:
    """A filter of friction patterns."""

    projects: Collection[str | None] = ()
    """Names of projects, with None for patterns of no project; empty for all."""
    kinds: Collection[str] = ()
    """Kinds as stored; empty for all."""
    ended: bool = False
    """Whether to list ended patterns instead of active ones."""

    def matches(self, pattern: Pattern) -> bool:
        own: set[str | None] = {*(pattern.row["projects"] or ())} or {None}
        is_of_kind = not self.kinds or pattern.row["kind"] in self.kinds
        return is_of_kind and (not self.projects or bool(own & set(self.projects)))


def is_pattern(identifier: str) -> bool:
    """Whether the identifier has the form of a friction pattern's id."""
    return bool(_ID.fullmatch(identifier))


def list_patterns(settings: Settings, asked: PatternFilter) -> dict[str, Any]:
    """The matching patterns, most severe first (ended ones by their end, latest first), with the last day that was
    searched, `points` of the search and, if there is no pattern, the reason `why`."""
    workspace = Workspace(settings, Lake.from_settings(settings))
    lake, days = workspace.lake, settings.lookback_days
    day = last_day_looked_at(lake)
    every = (ended if asked.ended else active_patterns)(lake, day, days) if day else []
    found = [pattern for pattern in every if asked.matches(pattern)]
    status = ProposalLog(lake).status if found else {}
    return {
        "day": day,
        "lookback_days": days,
        "points": points_in(lake, lookback(day, days)) if day else None,
        "points_needed": settings.friction_min_points,
        "patterns": [_pattern_view(pattern, day, status) for pattern in found if day],
        "why": None if found else _explanation(workspace, asked, every),
    }


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


def _explanation(workspace: Workspace, asked: PatternFilter, every: list[Pattern]) -> str:
    if every:
        number = len(every)
        if number == 1:
            return f"1 pattern {'has ended' if asked.ended else 'is active'}, but it does not match the filters."
        return (
            f"{number} patterns {'have ended' if asked.ended else 'are active'}, but none of them matches the filters."
        )
    if asked.ended and last_day_looked_at(workspace.lake):
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
