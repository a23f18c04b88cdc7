"""Checks on observations: that they are grounded, that they condense, that they are there and betray nothing."""

import dagster as dg

from memory_pipeline.defs.check_results import check_by_day
from memory_pipeline.observations import evaluation
from memory_pipeline.settings import Settings

BLOCKING = {
    "times_are_recorded": evaluation.judge_timestamps,
    "evidence_is_verbatim": evaluation.judge_evidence,
    "no_secrets": evaluation.judge_secrets,
}
"""A day that fails one of these keeps its rows from everything behind them."""
FAILING = {
    "no_silent_zero": evaluation.judge_silent_zero,
    "hallucinated_timestamps": evaluation.judge_invented_times,
}
"""What was wrong is not stored, so it need not be kept from anything."""
WARNING = {
    "compression_ratio": evaluation.judge_compression,
    "ungrounded_specifics": evaluation.judge_specifics,
    "regurgitation": evaluation.judge_regurgitation,
    "high_is_rare": evaluation.judge_highs,
}


def observation_checks(settings: Settings) -> list[dg.AssetChecksDefinition]:
    warn, on = dg.AssetCheckSeverity.WARN, "observations"
    return [
        *(check_by_day(on, name, judge, settings, blocking=True) for name, judge in BLOCKING.items()),
        *(check_by_day(on, name, judge, settings) for name, judge in FAILING.items()),
        *(check_by_day(on, name, judge, settings, severity=warn) for name, judge in WARNING.items()),
    ]
