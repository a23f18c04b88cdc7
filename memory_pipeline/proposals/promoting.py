"""Approved proposals become lines of MEMORY.md, once."""

from __future__ import annotations

from datetime import datetime

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.safe_write import update_file
from memory_pipeline.proposals.memory_file import Promotion, add_lines, strike_lines
from memory_pipeline.proposals.records import append
from memory_pipeline.proposals.states import APPROVED, with_status
from memory_pipeline.settings import Settings


def promote(settings: Settings, lake: Lake, now: datetime) -> list[str]:
    """Put approved proposals that are not there yet into MEMORY.md; returns their ids.

    The lines that they replace are struck through. A line that a person removed later does not come back: what was
    promoted once is on record.
    """
    done = lake.read("promotions", columns=["proposal_id"])
    rows = with_status(lake).filter(pl.col("status") == APPROVED).join(done, on="proposal_id", how="anti").to_dicts()
    if not rows:
        return []
    promotions = [
        Promotion(r["proposal_id"], r["decided_section"] or r["section"], r["decided_text"], r["day"]) for r in rows
    ]
    today = day_of(now, settings.zone)
    replaced = {old: (r["proposal_id"], today) for r in rows for old in r["supersedes"] or []}
    present: list[str] = []

    def edit(current: bytes | None) -> bytes:
        result = add_lines(current, promotions, settings.sections)
        present[:] = result.present
        return strike_lines(result.data, replaced)

    update_file(settings.memory_file, edit, backups=settings.backups)
    made = [
        {
            "proposal_id": p.proposal_id,
            "section": p.section,
            "text": p.text,
            "promoted_at": now,
            "already_there": p.proposal_id in present,
        }
        for p in promotions
    ]
    append(settings, lake, "promotions", made, now)
    return [p.proposal_id for p in promotions]
