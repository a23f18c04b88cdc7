"""The check on the life of proposals."""

import dagster as dg

from memory_pipeline.orchestration import PARTITIONS, LakeResource, report_by_day
from memory_pipeline.proposals.ends import Ends

ONE_END = "one_decision_each"


@dg.asset_check(asset="proposals", name=ONE_END, partitions_def=PARTITIONS)
def one_decision_each(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> dg.AssetCheckResult:
    """Every proposal of the day is pending or has exactly one decision; the approved ones, and only they, are promoted.

    Promoted lines that a person removed from MEMORY.md are counted. A MEMORY.md that has lost all of them is an error.
    """
    ends = Ends.of(lake.open(), lake.settings().memory_file)
    return report_by_day(context, "proposals", ONE_END, ends.judge, dg.AssetCheckSeverity.ERROR)
