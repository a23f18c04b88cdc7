"""The assets `proposals` and `memory_file`."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import dagster as dg
import polars as pl

from memory_pipeline.lake.store import Lake
from memory_pipeline.orchestration import (
    GROUP,
    MODEL_RETRY,
    ONE_RUN,
    PARTITIONS,
    LakeResource,
    markdown_table,
    run_stage,
    table_spec,
)
from memory_pipeline.proposals.auto_promotion import HOW_TO_TAKE_BACK, in_shadow, told
from memory_pipeline.proposals.lifecycle import MORE_TO_COME, Settled, promote, settle_review
from memory_pipeline.proposals.memory_file import lines_of
from memory_pipeline.proposals.stage import VERSION, ProposalsStage
from memory_pipeline.proposals.states import with_status

PREVIEWED = 40


@dg.multi_asset(
    name="propose",
    specs=[
        table_spec(
            "proposals",
            deps=["reflections"],
            version=VERSION,
            description="High lines and notable medium ones, each offered once; what stands in MEMORY.md or was "
            "offered before is merged into it (`supports`) and not offered again. Questions, suppositions and orders "
            "that only tools or pastes gave are left out and counted. A person decides in REVIEW.md or with "
            "`memory review`; what was shown for a week without a decision expires.",
        )
    ],
    partitions_def=PARTITIONS,
    backfill_policy=ONE_RUN,
    retry_policy=MODEL_RETRY,
)
def propose(context: dg.AssetExecutionContext, lake: LakeResource) -> Iterator[dg.MaterializeResult[Any]]:
    tables, settings = lake.open(), lake.settings()
    stage = ProposalsStage(settings, tables)
    decided = dict(tables.read("decisions").select("proposal_id", "decision").iter_rows())
    yield from run_stage(
        context, tables, stage, lambda table, day: describe(tables, day, decided) | _left_out(stage, day)
    )
    _report(context, settle_review(settings, tables, datetime.now(UTC), offers=_offers(context)))
    promote(settings, tables, datetime.now(UTC))  # the check asks of every approved line whether it is there


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
    settled = settle_review(settings, tables, now, offers=_offers(context))
    _report(context, settled)
    added = promote(settings, tables, now)
    path = settings.memory_file
    lines = lines_of(path.read_bytes()) if path.exists() else []
    status = with_status(tables)["status"]
    for why in in_shadow(settings, tables):
        context.log.warning(f"MEMORY_AUTO_PROMOTE=on: {why}.")
    shadow = "\n".join(f"* {sentence}" for sentence in told(settings, tables))
    return dg.MaterializeResult(
        metadata={
            "promoted": len(added),
            "promoted_automatically": len(settled.automatic),
            "approved_now": len(settled.approved),
            "rejected_now": len(settled.rejected),
            "expired_now": len(settled.expired),
            "superseded_now": len(settled.superseded),
            "invalid_now": len(settled.invalid),
            "pending": int((status == "pending").sum()),
            "lines": len(lines),
            "preview": dg.MetadataValue.md("\n".join(f"* {line.section}: {line.text}" for line in lines[-PREVIEWED:])),
            "path": dg.MetadataValue.path(path),
            **({"auto_promotion": dg.MetadataValue.md(shadow)} if shadow else {}),
        }
    )


def _offers(context: dg.AssetExecutionContext) -> bool:
    """Of a run that others follow nothing is shown yet: the best of all come first, not those of the oldest days."""
    return MORE_TO_COME not in context.run.tags


def describe(lake: Lake, day: date, decided: dict[str, str]) -> dict[str, Any]:
    status = pl.col("proposal_id").replace_strict(decided, default="pending", return_dtype=pl.String)
    frame = lake.read("proposals", [day]).with_columns(status.alias("status"))
    return {
        "pending": int((frame["status"] == "pending").sum()),
        "merged": lake.read("supports", [day]).height,
        "preview": markdown_table(frame.select("proposal_id", "section", "status", "text")),
    }


def _left_out(stage: ProposalsStage, day: date) -> dict[str, int]:
    return {f"left_out_{reason}": count for reason, count in stage.left_out(day).items()}


def _report(context: dg.AssetExecutionContext, settled: Settled) -> None:
    if settled.damaged:
        context.log.warning(
            f"REVIEW.md was not read ({settled.damaged}); no decision was taken, the old file is in backups/, "
            "and a fresh one was written."
        )
    if settled.ignored:
        context.log.warning(f"REVIEW.md says nothing clear about {', '.join(settled.ignored)}; nothing was decided.")
    for proposal_id, state in settled.already.items():
        context.log.info(f"{proposal_id} is {state} already, so its line in an older copy of REVIEW.md was not read.")
    for proposal_id, reason in settled.invalid.items():
        context.log.warning(f"{proposal_id} was approved and is not in MEMORY.md: {reason}.")
    for proposal_id in settled.automatic:
        context.log.info(f"{proposal_id} is {HOW_TO_TAKE_BACK}.")
    for proposal_id in settled.too_late:
        context.log.warning(f"{proposal_id} was decided on too late: it is {HOW_TO_TAKE_BACK}.")
    for proposal_id, state in settled.late.items():
        context.log.warning(
            f"{proposal_id} is {state} already, so its line in REVIEW.md was not read; if it is to stay, write "
            "it into MEMORY.md yourself."
        )
