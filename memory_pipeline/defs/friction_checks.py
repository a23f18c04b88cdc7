"""The check on friction: patterns stand on what was said."""

import dagster as dg

from memory_pipeline.defs.check_results import check_by_day
from memory_pipeline.friction.evaluation import judge_evidence
from memory_pipeline.settings import Settings


def friction_checks(settings: Settings) -> list[dg.AssetChecksDefinition]:
    warn = dg.AssetCheckSeverity.WARN
    return [check_by_day("friction_clusters", "evidence_is_stored", judge_evidence, settings, severity=warn)]
