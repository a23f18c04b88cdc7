"""The check on friction: what was observed has vectors, by which it is drawn among the patterns."""

from datetime import date

import dagster as dg

from memory_pipeline.days import lookback
from memory_pipeline.defs.check_results import Judged, days_to_judge, report_by_day
from memory_pipeline.defs.orchestration import WorkspaceResource, daily_partitions
from memory_pipeline.friction.active import without_vectors
from memory_pipeline.settings import Settings
from memory_pipeline.verdict import Verdict

COMPARED = "compared_by_meaning"


def friction_checks(settings: Settings) -> list[dg.AssetChecksDefinition]:
    @dg.asset_check(asset="friction_clusters", name=COMPARED, partitions_def=daily_partitions(settings))
    def compared_by_meaning(context: dg.AssetCheckExecutionContext, workspace: WorkspaceResource) -> Judged:
        """The observations of the days that were looked back on have vectors; a window with nothing in it passes.

        Fails when there are observations and none of them has a vector of the model that is set, and when the index is
        gone: then no picture is drawn. Patterns are found all the same, by vectors of their own.
        """
        opened = workspace.open()

        def judge(day: date) -> Verdict:
            told = without_vectors(opened, lookback(day, settings.lookback_days))
            judged = f"The observations of the {settings.lookback_days} days to {day}"
            return Verdict(told is None, offenders=[told] if told else [], judged=judged)

        days = days_to_judge(context, opened.lake, "friction_clusters", daily_partitions(settings))
        yield from report_by_day(context, "friction_clusters", COMPARED, judge, dg.AssetCheckSeverity.WARN, days)

    return [compared_by_meaning]
