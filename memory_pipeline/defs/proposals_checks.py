"""The checks on the life of proposals: that each has one end, and that somebody decides."""

from datetime import UTC, datetime

import dagster as dg

from memory_pipeline.defs.check_results import verdict_metadata
from memory_pipeline.defs.orchestration import WorkspaceResource
from memory_pipeline.proposals.attention import judge_attention
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.integrity import ProposalIntegrity

ONE_END, ATTENTION = "one_decision_each", "somebody_decides"


@dg.asset_check(asset="memory_file", name=ONE_END)
def one_decision_each(workspace: WorkspaceResource) -> dg.AssetCheckResult:
    """Every proposal is pending or has exactly one decision; the approved ones, and only they, are promoted.

    Promoted lines that a user removed from MEMORY.md are counted. A MEMORY.md that has lost all of them is an error,
    and how it comes back is said.
    It is about all proposals, so it has no partitions.

    Fails when MEMORY.md is gone, empty or has none of many promoted lines, and when files of `proposals`, `decisions`
    or `promotions` were changed or put back from different copies.
    """
    opened = workspace.open()
    verdict = ProposalIntegrity.from_lake(opened.lake, opened.settings.memory_file).judge()
    return dg.AssetCheckResult(passed=verdict.passed, description=verdict.sentence, metadata=verdict_metadata(verdict))


@dg.asset_check(asset="memory_file", name=ATTENTION)
def somebody_decides(workspace: WorkspaceResource) -> dg.AssetCheckResult:
    """While proposals wait, a user decides on one at least every two weeks; else the memory stays as it is.

    It is about all proposals, so it has no partitions.

    Fails when proposals wait and nobody has decided on any of those that were shown in the last 14 days.
    """
    verdict = judge_attention(ProposalLog(workspace.open().lake), datetime.now(UTC))
    return dg.AssetCheckResult(
        passed=verdict.passed,
        severity=dg.AssetCheckSeverity.WARN,
        description=verdict.sentence,
        metadata=verdict_metadata(verdict),
    )
