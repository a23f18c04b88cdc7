"""Word search over the tables, used without an index: slower, and without meaning."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

import polars as pl

from memory_pipeline.embeddings.index import OBSERVATION, PASSAGE, Filters
from memory_pipeline.embeddings.messages import spoken
from memory_pipeline.lake.store import Lake
from memory_pipeline.settings import Settings
from memory_pipeline.text.similarity import CJK

MAX_SHOWN = 1_000
"""Maximum characters of a message in a hit, around its first matching word."""


def scan(settings: Settings, wanted: Sequence[str], filters: Filters, limit: int) -> list[dict[str, Any]]:
    """The messages with the rarest of these terms, as fields of a `Found`; scores are the share of the terms, weighted
    by rarity. A stem matches the beginning of a word. Filters on fields that messages lack find nothing."""
    if filters.equals.keys() - {"session_id", "project", "harness"}:
        return []
    columns = ["day", "session_id", "message_id", "role", "said_at", "text", "voided"]
    said = _rows_of_days(settings, "messages", columns, filters)
    said = spoken(said).filter(~pl.col("voided").fill_null(False))
    return [_message(row, wanted) for row in _best(said, wanted, filters, limit, "said_at")]


def scan_observations(settings: Settings, wanted: Sequence[str], filters: Filters, limit: int) -> list[dict[str, Any]]:
    """The observations with the rarest of these terms, in the form of `scan`."""
    if filters.equals.keys() - {"session_id", "project", "harness", "priority", "kind"}:
        return []
    columns = ["day", "session_id", "observation_id", "observed_at", "text", "priority", "kind"]
    observed = _rows_of_days(settings, "observations", columns, filters)
    return [
        {"record": OBSERVATION, "source_id": row["observation_id"], "text": row["text"]}
        | {"priority": row["priority"], "kind": row["kind"]}
        | _shared(row, "observed_at")
        for row in _best(observed, wanted, filters, limit, "observed_at")
    ]


def _rows_of_days(settings: Settings, table: str, columns: list[str], filters: Filters) -> pl.DataFrame:
    """The rows of the requested days, with the data of their sessions."""
    lake = Lake.from_settings(settings)
    first, last = filters.first_day, filters.last_day
    days = [d for d in lake.days(table) if (first is None or d >= first) and (last is None or d <= last)]
    sessions = lake.read("sessions", days, columns=["session_id", "harness", "project", "name"])
    return lake.read(table, days, columns=columns).join(
        sessions.unique("session_id", keep="first", maintain_order=True), on="session_id", how="left"
    )


def _best(
    frame: pl.DataFrame, wanted: Sequence[str], filters: Filters, limit: int, moment: str
) -> list[dict[str, Any]]:
    for name, values in filters.equals.items():
        frame = frame.filter(pl.col(name).is_in(list(values)))
    if frame.is_empty() or not wanted:
        return []
    text = (
        pl.col("text").str.to_lowercase().str.replace_all("ß", "ss").str.normalize("NFKD").str.replace_all(r"\pM", "")
    )
    patterns = dict.fromkeys(map(_pattern, wanted))
    has = frame.select(text.alias("text")).select(
        pl.col("text").str.contains(pattern).alias(f"{i}") for i, pattern in enumerate(patterns)
    )
    rarity = [math.log(1 + frame.height / (1 + n)) for n in has.sum().row(0)]
    score = sum((pl.col(f"{i}") * weight for i, weight in enumerate(rarity)), pl.lit(0.0)) / sum(rarity)
    best = (
        frame.with_columns(has.select(score.alias("score")))
        .filter(pl.col("score") > 0)
        .sort(["score", moment], descending=[True, True])
        .head(limit)
    )
    return best.to_dicts()


def _pattern(term: str) -> str:
    """A pattern for the beginning of words with this stem, without accents, as only some stemmers remove them. In
    Chinese and similar scripts it matches anywhere."""
    return _stem(term) if CJK.search(term) else rf"(?:^|[^\p{{L}}\d]){_stem(term)}"


def _stem(term: str) -> str:
    """A pattern for the spellings of a stem: `empti` also for `empty`."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", term.replace("ß", "ss")) if not unicodedata.combining(c))
    return f"{re.escape(plain[:-1])}[iy]" if len(plain) > 3 and plain.endswith("i") else re.escape(plain)


def _message(row: dict[str, Any], wanted: Sequence[str]) -> dict[str, Any]:
    found = [m.start() for term in wanted if (m := re.search(re.escape(term), row["text"], re.IGNORECASE))]
    first = min(found, default=0)
    start = max(0, first - MAX_SHOWN // 4) if len(row["text"]) > MAX_SHOWN else 0
    end = min(len(row["text"]), start + MAX_SHOWN)
    place = {"source_id": row["message_id"], "text": row["text"][start:end], "start": start, "end": end}
    return {"record": PASSAGE, "role": row["role"]} | place | _shared(row, "said_at")


def _shared(row: dict[str, Any], moment: str) -> dict[str, Any]:
    return {
        "score": row["score"],
        "day": f"{row['day']}",
        "timestamp": row[moment].isoformat(),
        "session_id": row["session_id"],
        "session_name": row["name"] or "",
        "project": row["project"] or "",
        "harness": row["harness"] or "",
    }
