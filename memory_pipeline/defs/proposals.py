"""The assets `proposals` and `memory_file`, and their checks: one decision per proposal, a reviewed backlog, and
identity files."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import dagster as dg
import polars as pl

from memory_pipeline.actions.outcomes import OUTCOMES, stored_times
from memory_pipeline.days import today
from memory_pipeline.defs.check_results import check_of_all_days
from memory_pipeline.defs.orchestration import (
    LOOKS_BACK,
    MODEL_RETRY,
    markdown_table,
    other_asset,
    run_stage,
    stage_asset,
    table_spec,
)
from memory_pipeline.defs.placement import Placement
from memory_pipeline.operations.identity import NOT_SET, look_at_identity
from memory_pipeline.proposals.automatic import report
from memory_pipeline.proposals.evaluation import judge_attention, judge_integrity
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.memory_file import lines_of
from memory_pipeline.proposals.review import Reconciled, reconcile
from memory_pipeline.proposals.stage import VERSION, ProposalsStage
from memory_pipeline.settings import Settings
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace

STATES = ("approved", "rejected", "expired", "superseded", "invalid")
"""The states that proposals got while decisions were read; the UI plots the number of each."""


def proposal_assets(placement: Placement) -> dg.AssetsDefinition:
    """The asset `proposals`."""
    spec = table_spec(
        placement,
        "proposals",
        deps=["reflections"],
        version=VERSION,
        description="High lines and notable medium ones, each offered once; a repetition of a line of MEMORY.md or of "
        "an earlier proposal is merged into it (`supports`). Questions, suppositions and instructions that only tools "
        "or pasted text gave are left out and counted. A user decides in REVIEW.md or with `memory review`; a proposal "
        "that was shown on seven days without a decision expires.",
    )

    @stage_asset(placement, "propose", LOOKS_BACK, [spec], retry_policy=MODEL_RETRY)
    def propose(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        opened = placement.open(context)
        stage = ProposalsStage(opened)
        decided = dict(ProposalLog(opened.lake).decisions.select("proposal_id", "decision").iter_rows())
        yield from run_stage(context, opened, stage, lambda _, day: describe(stage, day, decided))

    return propose


def memory_file_asset(placement: Placement) -> dg.AssetsDefinition:
    """The asset `memory_file`."""

    @other_asset(placement, "memory_file", deps=["proposals"], kinds={"markdown"})
    def memory_file(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        """MEMORY.md: the lines that a user approved, each under its section, once.

        One file for all days, so it has no partitions. Decisions are read from REVIEW.md and stored in the lake's
        table `events`, and approved lines are added to MEMORY.md (`memory sql` offers `decisions` and `promotions`).
        Nothing that a user wrote is changed, and a line that a user removed is not added again.
        """
        opened = placement.open(context)
        reconciled = reconcile(opened, datetime.now(UTC))
        _report(context, reconciled)
        log, path = ProposalLog(opened.lake), opened.settings.memory_file
        lines = lines_of(path.read_bytes()) if path.exists() else []
        approved = [(line.section, line.text) for line in reversed(lines)]
        shadow = "\n".join(f"* {sentence}" for sentence in report(opened, log))
        return dg.MaterializeResult(
            metadata={
                "pending": reconciled.pending,
                "review": dg.MetadataValue.path(opened.settings.review_file),
                "lines": len(lines),
                "path": dg.MetadataValue.path(path),
                "promoted": len(reconciled.promoted),
                "promoted_automatically": len(reconciled.automatic),
                "fixes_applied": len(reconciled.applied),
                "fixes_offered_now": len(reconciled.offered),
                "fixes_withdrawn_now": len(reconciled.withdrawn),
                **{f"{state}_now": len(getattr(reconciled, state)) for state in STATES},
                **_hints(opened.settings),
                "preview": markdown_table(pl.DataFrame(approved, schema=["section", "text"], orient="row")),
                **({"auto_promotion": dg.MetadataValue.md(shadow)} if shadow else {}),
            }
        )

    return memory_file


def _hints(settings: Settings) -> dict[str, int]:
    """The lines that agents were shown at tool calls so far, by what became of them; empty without hooks."""
    times = stored_times(settings)
    return {f"hints_{name}": times[name] for name in OUTCOMES} | {"hints_shown": times.total()} if times else {}


def describe(stage: ProposalsStage, day: date, decided: dict[str, str]) -> dict[str, Any]:
    lake = stage.lake
    status = pl.col("proposal_id").replace_strict(decided, default="pending", return_dtype=pl.String)
    frame = lake.read("proposals", [day]).with_columns(status.alias("status"))
    return {
        "pending": int((frame["status"] == "pending").sum()),
        "merged": lake.read("supports", [day]).height,
        "preview": markdown_table(frame.select("proposal_id", "section", "status", "text")),
    }


def _report(context: dg.AssetExecutionContext, reconciled: Reconciled) -> None:
    for message in reconciled.messages:
        context.log.info(message)
    for warning in filter(None, [reconciled.damaged, *reconciled.warnings]):
        context.log.warning(warning)


def memory_file_checks(placement: Placement) -> list[dg.AssetChecksDefinition]:
    """The checks of `memory_file`. They are about files and all proposals, not days, so they have no partitions."""
    warn, on = dg.AssetCheckSeverity.WARN, "memory_file"
    return [
        check_of_all_days(placement, on, "one_decision_each", _judge_decisions),
        check_of_all_days(placement, on, "review_backlog", _judge_backlog, warn),
        check_of_all_days(placement, on, "identity_files", _judge_files, warn),
    ]


def _judge_decisions(workspace: Workspace) -> Verdict:
    """Every proposal is pending or has exactly one decision; exactly the approved ones are promoted.

    Promoted lines that a user removed from MEMORY.md are counted. A MEMORY.md without any of them is an error, and the
    result says how to restore it.

    Fails when MEMORY.md is missing, empty or has none of many promoted lines, or files of `proposals` or `events`
    were changed or restored from different copies.
    """
    return judge_integrity(workspace.lake, workspace.settings.memory_file)


def _judge_backlog(workspace: Workspace) -> Verdict:
    """While proposals are pending, a user decides on one at least every two weeks; otherwise the memory stays as it is.

    It is about all proposals, so it has no partitions.

    Fails when proposals are pending and nobody has decided on any of those shown in the last 14 days.
    """
    return judge_attention(ProposalLog(workspace.lake), datetime.now(UTC))


def _judge_files(workspace: Workspace) -> Verdict:
    """The files that agents read before MEMORY.md exist, and every link to them is valid.

    It is about files, not days, so it has no partitions. `memory admin identity` shows the same.

    Fails when a file of the list is missing or empty, or a link is broken or points elsewhere.
    """
    return judge_identity(workspace.settings, today(workspace.settings.zone))


def judge_identity(settings: Settings, day: date) -> Verdict:
    found = look_at_identity(settings, day)
    if found is None:
        return Verdict(True, {"judged": f"not set: {NOT_SET}"}, judged="No list of files is set")
    broken = [looked.line for looked in found.broken]
    numbers: dict[str, float | int | str] = {"files": len(found.files), "links": len(found.links)}
    return Verdict(not broken, numbers, broken, f"{len(found.files)} files and {len(found.links)} links to them")
