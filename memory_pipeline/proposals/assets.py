"""The assets `proposals` and `memory_file`."""

from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

import dagster as dg
import polars as pl

from memory_pipeline.lake import Lake
from memory_pipeline.orchestration import (
    GROUP,
    ONE_RUN,
    PARTITIONS,
    LakeResource,
    markdown_table,
    run_stage,
    table_spec,
)
from memory_pipeline.proposals.lifecycle import Settled, promote, settle_review, with_status
from memory_pipeline.proposals.memory_file import lines_of
from memory_pipeline.proposals.stage import VERSION, ProposalsStage

PREVIEWED = 40


@dg.multi_asset(
    name="propose",
    specs=[
        table_spec(
            "proposals",
            deps=["reflections"],
            version=VERSION,
            description="High lines and notable medium ones, each offered once; what stands in MEMORY.md or was "
            "offered before is not offered again. A person decides in REVIEW.md or with `memory review`.",
        )
    ],
    partitions_def=PARTITIONS,
    backfill_policy=ONE_RUN,
)
def propose(context: dg.AssetExecutionContext, lake: LakeResource) -> Iterator[dg.MaterializeResult[Any]]:
    tables, settings = lake.open(), lake.settings()
    stage = ProposalsStage(settings, tables)
    decided = dict(tables.read("decisions").select("proposal_id", "decision").iter_rows())
    yield from run_stage(context, tables, stage, lambda table, day: describe(tables, day, decided))
    _report(context, settle_review(settings, tables, datetime.now(UTC)))


@dg.asset(
    deps=["proposals"],
    group_name=GROUP,
    kinds={"markdown"},
)
def memory_file(context: dg.AssetExecutionContext, lake: LakeResource) -> dg.MaterializeResult[Any]:
    """MEMORY.md: the lines that a person approved, each under its section, once.

    One file for all days, so it has no partitions. Decisions are read back from REVIEW.md and kept in the lake's
    table `decisions`, approved lines are added to MEMORY.md and kept in `promotions` (`memory sql` shows both).
    Nothing that a person wrote is changed, and a line that a person removed does not come back.
    """
    tables, settings, now = lake.open(), lake.settings(), datetime.now(UTC)
    settled = settle_review(settings, tables, now)
    _report(context, settled)
    added = promote(settings, tables, now)
    path = settings.memory_file
    lines = lines_of(path.read_bytes()) if path.exists() else []
    status = with_status(tables)["status"]
    return dg.MaterializeResult(
        metadata={
            "promoted": len(added),
            "approved_now": len(settled.approved),
            "rejected_now": len(settled.rejected),
            "pending": int((status == "pending").sum()),
            "lines": len(lines),
            "preview": dg.MetadataValue.md("\n".join(f"* {line.section}: {line.text}" for line in lines[-PREVIEWED:])),
            "path": dg.MetadataValue.path(path),
        }
    )


def describe(lake: Lake, day: date, decided: dict[str, str]) -> Mapping[str, Any]:
    status = pl.col("proposal_id").replace_strict(decided, default="pending", return_dtype=pl.String)
    frame = lake.read("proposals", [day]).with_columns(status.alias("status"))
    return {
        "pending": int((frame["status"] == "pending").sum()),
        "preview": markdown_table(frame.select("proposal_id", "section", "status", "text")),
    }


def _report(context: dg.AssetExecutionContext, settled: Settled) -> None:
    if settled.damaged:
        context.log.warning(
            f"REVIEW.md was not read ({settled.damaged}); no decision was taken, the old file is in backups/, "
            "and a fresh one was written."
        )
    if settled.ignored:
        context.log.warning(f"REVIEW.md says nothing clear about {', '.join(settled.ignored)}; they stay pending.")
