"""The check that a reflection condenses."""

from datetime import date

import dagster as dg

from memory_pipeline.lake import Lake
from memory_pipeline.orchestration import PARTITIONS, LakeResource, report_by_day
from memory_pipeline.reflections.compression import judge
from memory_pipeline.verdict import Verdict

COMPRESSION = "compression_ratio"


@dg.asset_check(asset="reflections", name=COMPRESSION, partitions_def=PARTITIONS)
def compression_ratio(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> dg.AssetCheckResult:
    """The reflection is smaller than the observations it came from, and not next to nothing."""
    tables = lake.open()
    return report_by_day(
        context, "reflections", COMPRESSION, lambda day: judge_compression(tables, day), dg.AssetCheckSeverity.WARN
    )


def judge_compression(lake: Lake, day: date) -> Verdict:
    frame = lake.read("reflections", [day])
    spent = int(frame["input_tokens"].max() or 0)  # type: ignore[arg-type]
    tokens = int(frame["tokens"].sum())
    return judge(tokens, spent)
