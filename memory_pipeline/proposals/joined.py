"""The join that computes the status of each proposal from its events."""

from __future__ import annotations

import polars as pl

from memory_pipeline.lake.tables import TABLES
from memory_pipeline.text.priorities import MEDIUM


def remembered_as_proposals(remembered: pl.DataFrame) -> pl.DataFrame:
    """Rows of `remembered` as rows of `proposals`: said once, without session or sources."""
    none = pl.lit(None)
    given = {
        "sources": pl.lit([], dtype=pl.List(pl.String)),
        "support": pl.lit(1),
        "evidence": none,
        "sessions": pl.lit(1),
        "session_ids": pl.lit([], dtype=pl.List(pl.String)),
        "last_seen": pl.col("said_at"),
        "supersedes": none,
        "cwds": pl.when(pl.col("cwd").is_not_null()).then(pl.concat_list("cwd")),
        "projects": pl.when(pl.col("project").is_not_null()).then(pl.concat_list("project")),
    }
    columns = TABLES["proposals"].columns
    return remembered.select(given.get(name, pl.col(name)).cast(kind).alias(name) for name, kind in columns.items())


def fixes_as_proposals(fixes: pl.DataFrame) -> pl.DataFrame:
    """Rows of `friction_fixes` as rows of `proposals`. The section of a fix that is no line of MEMORY.md is its
    file."""
    last = pl.col("last_day").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    given = {
        "section": pl.when(pl.col("place").is_null())
        .then("target_file")
        .otherwise(pl.coalesce("section", "target_file")),
        "priority": pl.lit(MEDIUM),
        "sources": pl.lit([], dtype=pl.List(pl.String)),
        "support": pl.col("occurrences"),
        "last_seen": last,
    }
    columns = TABLES["proposals"].columns
    return fixes.select(given.get(name, pl.col(name)).cast(kind).alias(name) for name, kind in columns.items())


def _all_of(column: str) -> pl.Expr:
    """The entries of all lists of a column."""
    return pl.col(column).list.explode(keep_nulls=False, empty_as_null=False)


def joined(
    proposals: pl.DataFrame, decisions: pl.DataFrame, supports: pl.DataFrame, displays: pl.DataFrame
) -> pl.DataFrame:
    """The rows of `ProposalState`: every proposal with its first valid decision, the support merged into it, and where
    it is displayed. Without a decision the `status` is null."""
    merged = supports.group_by("proposal_id").agg(
        pl.col("sources").list.len().sum().cast(pl.Int64).alias("more_support"),
        pl.col("sessions").sum().alias("more_counted"),
        _all_of("session_ids").alias("more_sessions"),
        pl.col("said_at").max(),
        _all_of("cwds").alias("more_cwds"),
        _all_of("projects").alias("more_projects"),
        pl.col("worth").max().alias("more_worth"),
    )
    decided = (
        decisions.sort("happened_at")
        .unique("proposal_id", keep="first")
        .select(
            "proposal_id",
            pl.col("decision").alias("status"),
            pl.col("text").alias("decided_text"),
            pl.col("section").alias("decided_section"),
            pl.col("content_hash").alias("decided_on"),
            "reason",
            "surface",
            pl.col("happened_at").alias("decided_at"),
        )
    )
    # the id alone could be that of another line, if rows were lost and rebuilt by a version that reused numbers
    decided = decided.join(proposals.select("proposal_id", "content_hash"), on="proposal_id").filter(
        pl.col("decided_on").is_null() | (pl.col("decided_on") == pl.col("content_hash"))
    )
    shown = displays.group_by("proposal_id").agg(
        (pl.col("came") > pl.col("went")).any().alias("on_display"),
        pl.col("first").min().alias("first_shown"),
        _all_of("days").unique().sort().alias("shown_on"),
    )
    found = proposals
    for other in (decided.drop("decided_on", "content_hash"), merged, shown):
        found = found.join(other, on="proposal_id", how="left")
    return (
        found.with_columns(
            pl.col("on_display").fill_null(False),
            (pl.col("support") + pl.col("more_support").fill_null(0)),
            pl.when(pl.col("session_ids").is_null())  # a row written before this column existed
            .then(pl.col("sessions").fill_null(1) + pl.col("more_counted").fill_null(0))
            .otherwise(pl.concat_list(pl.col("session_ids", "more_sessions").fill_null([])).list.n_unique())
            .alias("sessions"),
            pl.max_horizontal("last_seen", "said_at").alias("last_seen"),
            # a rule may be mentioned in passing before somebody states it
            pl.when(pl.col("worth").is_not_null()).then(pl.max_horizontal("worth", "more_worth")).alias("worth"),
            *(
                pl.concat_list(pl.col(name, f"more_{name}").fill_null([])).list.unique().list.sort().alias(name)
                for name in ("cwds", "projects")
            ),
        )
        .drop("more_support", "more_sessions", "more_counted", "said_at", "more_cwds", "more_projects", "more_worth")
        .sort("proposal_id")
    )
