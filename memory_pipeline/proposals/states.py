"""What has become of every proposal: the tables read once and joined."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import polars as pl

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.worth import OF_PRIORITY, with_sessions

PENDING = "pending"
APPROVED, REJECTED, EXPIRED, INVALID, SUPERSEDED = "approved", "rejected", "expired", "invalid", "superseded"
DECISIONS = (APPROVED, REJECTED, EXPIRED, INVALID, SUPERSEDED)
"""The ends that a proposal can have; it has exactly one, or it is pending."""
_BEFORE_ALL = datetime(1970, 1, 1, tzinfo=UTC)


def with_status(lake: Lake) -> pl.DataFrame:
    """Every proposal with its `status` (pending, or its first decision), that decision's text, section,
    reason, surface and time.

    `support`, `sessions` and `last_seen` count what was merged into it too; `first_shown` is null until it was shown.
    """
    decisions = lake.read("decisions").sort("decided_at").unique("proposal_id", keep="first")
    merged = (
        lake.read("supports", columns=["proposal_id", "sources", "sessions", "session_ids", "said_at"])
        .group_by("proposal_id")
        .agg(
            pl.col("sources").list.len().sum().cast(pl.Int64).alias("more_support"),
            pl.col("sessions").sum().alias("more_counted"),
            pl.col("session_ids").list.explode(keep_nulls=False, empty_as_null=False).alias("more_sessions"),
            pl.col("said_at").max(),
        )
    )
    shown = lake.read("showings").group_by("proposal_id").agg(pl.col("shown_at").min().alias("first_shown"))
    decided = decisions.select(
        "proposal_id",
        pl.col("decision").alias("status"),
        pl.col("text").alias("decided_text"),
        pl.col("section").alias("decided_section"),
        "reason",
        "surface",
        "decided_at",
    )
    joined = lake.read("proposals")
    for other in (decided, merged, shown):
        joined = joined.join(other, on="proposal_id", how="left")
    return (
        joined.with_columns(
            pl.col("status").fill_null(PENDING),
            (pl.col("support") + pl.col("more_support").fill_null(0)),
            pl.when(pl.col("session_ids").is_null())  # a row from before they were kept
            .then(pl.col("sessions").fill_null(1) + pl.col("more_counted").fill_null(0))
            .otherwise(pl.concat_list(pl.col("session_ids", "more_sessions").fill_null([])).list.n_unique())
            .alias("sessions"),
            pl.max_horizontal("last_seen", "said_at").alias("last_seen"),
        )
        .drop("more_support", "more_sessions", "more_counted", "said_at")
        .sort("proposal_id")
    )


def pending(lake: Lake) -> list[dict[str, Any]]:
    """The pending proposals, those of most value first."""
    return Book.of(lake).pending()


@dataclass
class Book:
    """All proposals as they stand: the tables are read once, decisions taken since are noted in `status`."""

    frame: pl.DataFrame
    status: dict[str, str]

    @classmethod
    def of(cls, lake: Lake) -> Self:
        frame = with_status(lake)
        return cls(frame, dict(frame.select("proposal_id", "status").iter_rows()))

    def rows(self, ids: list[str]) -> dict[str, dict[str, Any]]:
        """These proposals by id; unknown ids are left out."""
        found = self.frame.filter(pl.col("proposal_id").is_in(ids))
        return {row["proposal_id"]: row | {"status": self.status[row["proposal_id"]]} for row in found.to_dicts()}

    def surface(self, proposal_id: str) -> str | None:
        """Where it was decided, as of when the tables were read."""
        found: list[str | None] = self.frame.filter(pl.col("proposal_id") == proposal_id)["surface"].to_list()
        return found[0] if found else None

    def with_state(self, *states: str) -> list[str]:
        return [p for p, state in self.status.items() if state in states]

    def pending(self) -> list[dict[str, Any]]:
        """By value: the line's worth and its sessions, then its support, then what was said last."""
        return sorted(self.rows(self.with_state(PENDING)).values(), key=value)


def value(row: dict[str, Any]) -> tuple[Any, ...]:
    """What a row of `with_status` is worth to the reviewer: sorts the best to the front."""
    seen = row["last_seen"] or _BEFORE_ALL
    own = OF_PRIORITY[row["priority"]] if row["worth"] is None else row["worth"]
    return -with_sessions(own, row["sessions"]), -row["support"], -seen.timestamp(), row["proposal_id"]
