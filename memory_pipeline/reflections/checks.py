"""Checks on reflections: that they condense, and that they are there."""

from collections.abc import Callable
from datetime import date

import dagster as dg

from memory_pipeline.lake.store import Lake
from memory_pipeline.orchestration import PARTITIONS, LakeResource, report_by_day
from memory_pipeline.reflections import evaluation as judges
from memory_pipeline.settings import Settings
from memory_pipeline.verdict import Verdict

Judge = Callable[[Lake, Settings, date], Verdict]


def _check(name: str, judge: Judge, severity: dg.AssetCheckSeverity) -> dg.AssetChecksDefinition:
    @dg.asset_check(asset="reflections", name=name, description=judge.__doc__, partitions_def=PARTITIONS)
    def check(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> dg.AssetCheckResult:
        tables, settings = lake.open(), lake.settings()
        return report_by_day(context, "reflections", name, lambda day: judge(tables, settings, day), severity)

    return check


REFLECTION_CHECKS = (
    _check("no_silent_zero", judges.judge_silent_zero, dg.AssetCheckSeverity.ERROR),
    _check("compression_ratio", judges.judge_compression, dg.AssetCheckSeverity.WARN),
)
