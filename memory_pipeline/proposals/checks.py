"""The check on the life of proposals."""

from datetime import date

import dagster as dg
import polars as pl

from memory_pipeline.lake import Lake
from memory_pipeline.orchestration import PARTITIONS, LakeResource, report_by_day
from memory_pipeline.verdict import Verdict

ONE_END = "one_decision_each"


@dg.asset_check(asset="proposals", name=ONE_END, partitions_def=PARTITIONS)
def one_decision_each(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> dg.AssetCheckResult:
    """Every proposal of the day is pending or has exactly one decision."""
    tables = lake.open()
    decided = dict(tables.read("decisions").group_by("proposal_id").len().iter_rows())
    return report_by_day(
        context, "proposals", ONE_END, lambda day: judge(tables, day, decided), dg.AssetCheckSeverity.ERROR
    )


def judge(lake: Lake, day: date, decided: dict[str, int]) -> Verdict:
    proposals = lake.read("proposals", [day])
    ids = proposals["proposal_id"].to_list()
    offenders = [f"{p} has {decided[p]} decisions" for p in ids if decided.get(p, 0) > 1]
    offenders += [
        f"{p} was made twice" for p in proposals.filter(pl.col("proposal_id").is_duplicated())["proposal_id"].unique()
    ]
    pending = sum(p not in decided for p in ids)
    return Verdict(not offenders, {"proposals": len(ids), "pending": pending}, offenders)
