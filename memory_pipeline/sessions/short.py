"""Days with a session that was too short to be observed but has grown since."""

from __future__ import annotations

from datetime import date

import polars as pl

from memory_pipeline.sessions.catalogue import Catalogue


def days_no_longer_short(catalogue: Catalogue) -> list[date]:
    """Days with stored windows of a session that was too short and now has enough messages, on any day."""
    windows = catalogue.lake.read("windows", columns=["day", "session_id", "rules_only"])
    short = windows.filter(pl.col("rules_only").fill_null(False)).select("day", "session_id").unique()
    possible = set(catalogue.days())
    return sorted({day for day, session in short.iter_rows() if catalogue.is_long(session)} & possible)
