"""The assets `segments` and `observations`, and their checks."""

from collections import Counter
from collections.abc import Iterator
from datetime import date
from typing import Any

import dagster as dg
import polars as pl

from memory_pipeline.defs.check_results import check_by_day
from memory_pipeline.defs.orchestration import (
    MODEL_RETRY,
    OWN_DAY,
    calls_today,
    markdown_table,
    run_stage,
    stage_asset,
    table_spec,
)
from memory_pipeline.defs.placement import Placement
from memory_pipeline.observations import evaluation
from memory_pipeline.observations.evaluation import condensed
from memory_pipeline.observations.stage import VERSION, ObservationsStage, observer_of
from memory_pipeline.text.priorities import PRIORITIES
from memory_pipeline.workspace.workspace import Workspace


def observation_assets(placement: Placement) -> dg.AssetsDefinition:
    """The assets `segments` and `observations`.

    Model and prompts are part of the version, so that after an edited prompt they are shown as stale once the code
    location is reloaded. A run uses the settings and prompts at its start.
    """
    version = f"{VERSION} {observer_of(Workspace.open(placement.settings)).version}"
    specs = [
        table_spec(
            placement,
            "segments",
            deps=["messages", "windows"],
            version=version,
            description="A topic ends when the user continues after finished work, when the vocabulary changes, or "
            "after a pause. The narrative states the request, the work and its outcome.",
        ),
        table_spec(
            placement,
            "observations",
            deps=["messages", "windows"],
            version=version,
            description="Facts with priority, time and supporting spans: quotes, or lines of the model of "
            "OBSERVER_MODEL that the session supports. Only windows marked `observed` have rows, and windows marked "
            "`rules_only` in which the user said something. Also written to the day's log, memory/YYYY-MM-DD.md.",
        ),
    ]

    @stage_asset(placement, "observe", OWN_DAY, specs, retry_policy=MODEL_RETRY)
    def observe(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        opened = placement.open(context)
        stage = ObservationsStage.from_workspace(opened)
        yield from run_stage(context, opened, stage, lambda table, day: describe(opened, table, day))

    return observe


def describe(workspace: Workspace, table: str, day: date) -> dict[str, Any]:
    frame = workspace.lake.read(table, [day])
    if table == "segments":
        narratives = frame.sort("dedupe_key", "position").select("narrative")
        unparsed = frame.filter(~pl.col("parsed").fill_null(True))
        problems = {"problems": markdown_table(unparsed.select("problem", "answer"))} if unparsed.height else {}
        return problems | {
            "windows": frame["dedupe_key"].n_unique(),
            "unparsed": unparsed.height,
            "preview": markdown_table(narratives),
        }
    tokens, said = condensed(workspace, day)
    counts = {priority: int((frame["priority"] == priority).sum()) for priority in PRIORITIES}
    flags = Counter(flag for flags in frame["flags"] for flag in flags)
    return (
        counts
        | dict(flags)
        | calls_today(workspace, "observations", day)
        | {
            "observers": ", ".join(sorted(frame["observer"].unique())),
            "tokens": int(frame["tokens"].sum()),
            "compression_ratio": round(tokens / said, 4) if said else 0.0,
            "preview": markdown_table(frame.sort("observed_at").select("priority", "kind", "text")),
        }
    )


CHECKS = {
    "times_are_recorded": evaluation.judge_timestamps,
    "evidence_is_verbatim": evaluation.judge_evidence,
    "no_secrets": evaluation.judge_secrets,
    "no_silent_zero": evaluation.judge_silent_zero,
    "hallucinated_timestamps": evaluation.judge_invented_times,
    "compression_ratio": evaluation.judge_compression,
    "ungrounded_specifics": evaluation.judge_specifics,
    "regurgitation": evaluation.judge_regurgitation,
    "high_is_rare": evaluation.judge_highs,
}
BLOCKING = {"times_are_recorded", "evidence_is_verbatim", "no_secrets"}
"""Checks that keep the rows of a failed day from later stages."""
WARNING = {"compression_ratio", "ungrounded_specifics", "regurgitation", "high_is_rare"}


def observation_checks(placement: Placement) -> list[dg.AssetChecksDefinition]:
    warn, error = dg.AssetCheckSeverity.WARN, dg.AssetCheckSeverity.ERROR
    return [
        check_by_day(
            placement, "observations", name, judge, warn if name in WARNING else error, blocking=name in BLOCKING
        )
        for name, judge in CHECKS.items()
    ]
