"""Checks on observations: that they are grounded, that they condense, that they are there and betray nothing."""

from collections.abc import Callable
from datetime import date

import dagster as dg

from memory_pipeline.lake.store import Lake
from memory_pipeline.observations import evaluation as judges
from memory_pipeline.orchestration import PARTITIONS, LakeResource, report_by_day
from memory_pipeline.settings import Settings
from memory_pipeline.verdict import Verdict

Judge = Callable[[Lake, Settings, date], Verdict]
ERROR, WARN = dg.AssetCheckSeverity.ERROR, dg.AssetCheckSeverity.WARN


def _check(
    name: str, judge: Judge, severity: dg.AssetCheckSeverity, *, blocking: bool = False
) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset="observations",
        name=name,
        description=judge.__doc__,
        partitions_def=PARTITIONS,
        blocking=blocking,
    )
    def check(context: dg.AssetCheckExecutionContext, lake: LakeResource) -> dg.AssetCheckResult:
        tables, settings = lake.open(), lake.settings()
        return report_by_day(context, "observations", name, lambda day: judge(tables, settings, day), severity)

    return check


OBSERVATION_CHECKS = (
    _check("hallucinated_timestamps", judges.judge_timestamps, ERROR, blocking=True),
    _check("evidence_is_verbatim", judges.judge_evidence, ERROR, blocking=True),
    _check("no_secrets", judges.judge_secrets, ERROR, blocking=True),
    _check("no_silent_zero", judges.judge_silent_zero, ERROR),
    _check("compression_ratio", judges.judge_compression, WARN),
    _check("ungrounded_specifics", judges.judge_specifics, WARN),
    _check("regurgitation", judges.judge_regurgitation, WARN),
    _check("high_is_rare", judges.judge_highs, WARN),
)
"""Those that block keep the day's rows from everything behind them."""
