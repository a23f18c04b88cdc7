"""Promoting without asking, where a person's own decisions have earned it: off unless asked for, in shadow first.

In shadow mode a row of `auto_promotions` keeps what would have been promoted, and nothing else happens; what the person
then decides is set beside it. Only a section whose shadow was right so often is promoted to, when the setting is `on`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.files.blocks import one_line
from memory_pipeline.lake import Lake
from memory_pipeline.proposals.acceptance import (
    BY_PERSON,
    FEWEST,
    STANDING,
    TAKEN,
    TRUSTED_FROM,
    Standing,
    standings,
    taken_back,
)
from memory_pipeline.proposals.records import AUTO_SURFACE, append
from memory_pipeline.proposals.screening import PERSON
from memory_pipeline.proposals.states import APPROVED, PENDING, Book, with_status
from memory_pipeline.proposals.validity import invalid
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import HIGH

OFF, ON = "off", "on"
SHOWN_FOR = timedelta(days=1)
"""Time in which the person can decide first."""
HOW_TO_TAKE_BACK = "promoted automatically; delete or strike out its line in MEMORY.md to take it back"


def automatic_decisions(
    settings: Settings, lake: Lake, book: Book, now: datetime, *, unread: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Keep what would be promoted without asking, once each; the decisions to take now, where the section is `on`.

    ``unread`` may have been decided on a surface that nobody has looked at yet.
    """
    if settings.auto_promote == OFF:
        return []
    earned = standings(settings, lake, with_status(lake))  # with what the person decided just now
    rows = _candidates(settings, lake, book, earned, now, unread)
    made = [
        {
            "proposal_id": row["proposal_id"],
            "section": row["section"],
            "would_promote_at": now,
            "acceptance": (rate := earned[row["section"]].acceptance).share,
            "lower_bound": rate.lower,
            "decisions_counted": rate.counted,
        }
        for row in rows
    ]
    append(settings, lake, "auto_promotions", made, now)
    return [
        {
            "proposal_id": row["proposal_id"],
            "decision": APPROVED,
            "surface": AUTO_SURFACE,
            "text": one_line(row["text"]),
            "reason": HOW_TO_TAKE_BACK,
        }
        for row in rows
        if settings.auto_promote == ON and earned[row["section"]].precision.is_trusted
    ]


def _candidates(
    settings: Settings,
    lake: Lake,
    book: Book,
    earned: Mapping[str, Standing],
    now: datetime,
    unread: Collection[str],
) -> list[dict[str, Any]]:
    """Pending high lines of trusted sections, in the person's own words, that were shown for a day and still hold.

    One that takes another line's place is none: striking out is the person's.
    """
    trusted = [section for section, standing in earned.items() if standing.acceptance.is_trusted]
    waiting = book.frame.filter(
        pl.col("section").is_in(trusted),
        pl.col("priority") == HIGH,
        pl.col("supersedes").list.len().fill_null(0) == 0,
        pl.col("first_shown") <= now - SHOWN_FOR,
    )
    open_ids = set(book.with_state(PENDING)) - set(unread)
    rows = _in_own_words(settings, lake, [r for r in waiting.to_dicts() if r["proposal_id"] in open_ids])
    unfit = invalid(settings, lake, book, {r["proposal_id"]: one_line(r["text"]) for r in rows})
    return [r for r in rows if r["proposal_id"] not in unfit]


def _in_own_words(settings: Settings, lake: Lake, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those that rest on unflagged words of the person alone; what is no longer in the tables cannot be told."""
    days = {day for row in rows for day in lookback(row["day"], settings.lookback_days)}
    columns = ["observation_id", "trust", "flags"]
    observed = {o: (trust, flags) for o, trust, flags in lake.read("observations", days, columns).iter_rows()}

    def is_own(source: str) -> bool:
        trust, flags = observed.get(source, (None, None))
        return trust == PERSON and not flags

    return [row for row in rows if row["sources"][1:] and all(map(is_own, row["sources"][1:]))]


def told(settings: Settings, lake: Lake) -> list[str]:
    """A sentence for each section: what it has earned, and how its shadow fared. None while the setting is off."""
    if settings.auto_promote == OFF:
        return []
    earned = standings(settings, lake, with_status(lake))
    order = [s for s in settings.sections if s in earned] + sorted(set(earned) - set(settings.sections))
    return [_sentence(section, earned[section], is_on=settings.auto_promote == ON) for section in order]


def in_shadow(settings: Settings, lake: Lake) -> list[str]:
    """Sections that `on` is asked for and that have not earned it yet, each with the reason."""
    if settings.auto_promote != ON:
        return []
    earned = standings(settings, lake, with_status(lake))
    return [f"{section} stays in shadow: {why}" for section, s in sorted(earned.items()) if (why := _why_in_shadow(s))]


def _sentence(section: str, standing: Standing, *, is_on: bool) -> str:
    rate = standing.acceptance
    enough = f"at least {rate.lower:.2f}" if rate.counted >= FEWEST else f"{FEWEST} decisions are needed"
    parts = [f"{rate.good} of your last {rate.counted} decisions took the line as offered ({enough})"]
    if standing.would_promote:
        parts.append(_outcomes(standing))
    if is_on:
        parts.append(_why_in_shadow(standing) or "on")
        if parts[-1] != "on":
            parts[-1] = f"stays in shadow: {parts[-1]}"
    word = "trusted" if rate.is_trusted else "not trusted"
    return f"{section}: {word}, " + "; ".join(parts)


def _outcomes(standing: Standing) -> str:
    """`would have promoted 12; you approved 11, rejected 1 (precision 0.92)`"""
    ends, precision = standing.outcomes, standing.precision
    person = [f"{end} {ends[end]}" for end in BY_PERSON if ends[end] or end == TAKEN]
    rate = f"precision {precision.share:.2f}, at least {precision.lower:.2f}" if precision.counted else "none decided"
    other = f"; promoted {ends[STANDING]}, standing" if ends[STANDING] else ""
    return f"would have promoted {standing.would_promote}; you {', '.join(person)} ({rate}){other}"


def _why_in_shadow(standing: Standing) -> str | None:
    """Why nothing is promoted to a section even where it is asked for."""
    precision = standing.precision
    if not standing.acceptance.is_trusted:
        return "its decisions do not carry it yet"
    if precision.counted < FEWEST:
        return f"you decided {precision.counted} lines that it would have promoted, {FEWEST} are needed"
    if not precision.is_trusted:
        return f"its precision is at least {precision.lower:.2f}, {TRUSTED_FROM:.2f} is needed"
    return None


def recently_promoted(settings: Settings, lake: Lake, frame: pl.DataFrame, now: datetime) -> list[str]:
    """What was promoted automatically within the time that a proposal is shown for, and still stands."""
    since = now - timedelta(days=settings.proposal_expiry_days)
    recent = frame.filter(pl.col("surface") == AUTO_SURFACE, pl.col("decided_at") > since)
    back = taken_back(settings, lake, frame) if recent.height else set()
    return [p for p in recent.sort("decided_at", "proposal_id")["proposal_id"] if p not in back]
