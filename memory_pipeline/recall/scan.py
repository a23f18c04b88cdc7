"""Word search over the tables themselves, for when there is no index: slower, and blind to meaning."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from memory_pipeline.embeddings.passages import SPEAKERS
from memory_pipeline.lake.store import Lake
from memory_pipeline.recall.fusion import Filters
from memory_pipeline.settings import Settings

MAX_SHOWN = 1_000
"""Characters of a message that a hit holds, around its first word that was asked for."""


def scan(settings: Settings, wanted: Sequence[str], filters: Filters, limit: int) -> list[dict[str, Any]]:
    """The messages with the rarest of these terms, as fields of a `Found`. A stem counts where a word begins with it;
    filters on what only the index knows (priority, kind) find nothing."""
    lake = Lake(settings.lake_dir)
    days = [d for d in lake.days("messages") if _is_within(d, filters)]
    known = {"session_id", "project", "harness", "owner", "record"}
    if not days or not wanted or filters.equals.keys() - known:
        return []
    sessions = lake.read("sessions", days, columns=["session_id", "harness", "project", "name"])
    sessions = sessions.unique("session_id", keep="first")
    said = lake.read(
        "messages", days, columns=["day", "session_id", "message_id", "role", "said_at", "text", "voided"]
    ).filter(pl.col("role").is_in(SPEAKERS) & ~pl.col("voided").fill_null(False))
    said = said.join(sessions, on="session_id", how="left")
    for name, values in filters.equals.items():
        if name in said.columns:
            said = said.filter(pl.col(name).is_in(list(values)))
    if said.is_empty():
        return []
    has = said.select(
        pl.col("text").str.contains(rf"(?i)(?:^|[^\p{{L}}\d]){re.escape(term)}").alias(f"{i}")
        for i, term in enumerate(wanted)
    )
    counts = has.sum().row(0)
    rarity = [math.log(1 + said.height / (1 + n)) for n in counts]
    total = sum(rarity)
    score = sum((pl.col(f"{i}") * weight for i, weight in enumerate(rarity)), pl.lit(0.0)) / total
    best = (
        said.with_columns(has.select(score.alias("score")))
        .filter(pl.col("score") > 0)
        .sort(["score", "said_at"], descending=[True, True])
        .head(limit)
    )
    return [_fields(row, wanted) for row in best.iter_rows(named=True)]


def _is_within(day: Any, filters: Filters) -> bool:
    return (filters.first_day is None or day >= filters.first_day) and (
        filters.last_day is None or day <= filters.last_day
    )


def _fields(row: dict[str, Any], wanted: Sequence[str]) -> dict[str, Any]:
    lowered = row["text"].lower()
    first = min((at for term in wanted if (at := lowered.find(term)) >= 0), default=0)
    start = max(0, first - MAX_SHOWN // 4) if len(row["text"]) > MAX_SHOWN else 0
    end = min(len(row["text"]), start + MAX_SHOWN)
    return {
        "record": "message",
        "source_id": row["message_id"],
        "score": row["score"],
        "text": row["text"][start:end],
        "day": f"{row['day']}",
        "timestamp": row["said_at"].isoformat(),
        "session_id": row["session_id"],
        "session_name": row["name"] or "",
        "project": row["project"] or "",
        "harness": row["harness"] or "",
        "role": row["role"],
        "start": start,
        "end": end,
    }
