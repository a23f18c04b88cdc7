"""Checks on reflections: that they condense, and that they are there."""

import dagster as dg

from memory_pipeline.defs.check_results import check_by_day
from memory_pipeline.reflections import evaluation
from memory_pipeline.settings import Settings


def reflection_checks(settings: Settings) -> list[dg.AssetChecksDefinition]:
    warn, on = dg.AssetCheckSeverity.WARN, "reflections"
    return [
        check_by_day(on, "no_silent_zero", evaluation.judge_silent_zero, settings),
        check_by_day(on, "compression_ratio", evaluation.judge_compression, settings, severity=warn),
    ]
