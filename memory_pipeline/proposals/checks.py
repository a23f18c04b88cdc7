"""The check on the life of proposals."""

import dagster as dg

from memory_pipeline.check_results import verdict_metadata
from memory_pipeline.orchestration import WorkspaceResource
from memory_pipeline.proposals.integrity import ProposalIntegrity

ONE_END = "one_decision_each"


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
