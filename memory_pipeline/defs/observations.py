"""The assets `segments` and `observations`, and their checks."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Any

import dagster as dg
import polars as pl

from memory_pipeline.days import today
from memory_pipeline.defs.check_results import check_by_day
from memory_pipeline.defs.orchestration import MODEL_RETRY, OWN_DAY, markdown_table, run_stage, stage_asset, table_spec
from memory_pipeline.defs.placement import Placement
from memory_pipeline.markdown.escaping import escaped
from memory_pipeline.observations import evaluation
from memory_pipeline.observations.evaluation import condensed
from memory_pipeline.observations.observing import VERSION
from memory_pipeline.observations.stage import ObservationsStage, observer_of
from memory_pipeline.settings import Settings
from memory_pipeline.text.dates import clock_of
from memory_pipeline.text.priorities import PRIORITIES
from memory_pipeline.workspace.daily_log.markers import write_markers
from memory_pipeline.workspace.workspace import Workspace

PREVIEWED = 40


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
        stage, calls_for = ObservationsStage.from_workspace(opened), calls_by_day(opened)
        write_markers(opened.settings)  # for all days: a change of the markers alone does not make days out of date
        yield from run_stage(context, opened, stage, lambda table, day: describe(opened, table, day, calls_for))

    return observe


def calls_by_day(workspace: Workspace) -> Callable[[date], pl.DataFrame]:
    """The model's calls for a day, at any time. Calls before today are read once, not for each day."""
    now, columns = today(workspace.settings.zone), ["for_day", "stage", "cached", "cost_usd"]

    def read(days: Iterable[date]) -> pl.DataFrame:
        return workspace.lake.read("ledger", days, columns).filter(pl.col("stage") == "observations")

    before = read(day for day in workspace.lake.days("ledger") if day < now)
    return lambda day: pl.concat([before, read(d for d in workspace.lake.days("ledger") if d >= now)]).filter(
        pl.col("for_day") == day
    )


def describe(workspace: Workspace, table: str, day: date, calls_for: Callable[[date], pl.DataFrame]) -> dict[str, Any]:
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
    calls = calls_for(day)
    return (
        counts
        | dict(flags)
        | {
            "observers": ", ".join(sorted(frame["observer"].unique())),
            "model_calls": calls.filter(~pl.col("cached")).height,
            "spent_usd": float(calls["cost_usd"].sum()),
            "tokens": int(frame["tokens"].sum()),
            "compression_ratio": round(tokens / said, 4) if said else 0.0,
            "preview": dg.MetadataValue.md(_preview(frame, workspace.settings)),
        }
    )


def _preview(frame: pl.DataFrame, settings: Settings) -> str:
    rows = frame.sort("observed_at").head(PREVIEWED).iter_rows(named=True)
    marks, zone = settings.marks, settings.zone
    lines = [
        f"* {marks[o['priority']]} ({clock_of(o['observed_at'], zone, o['untimed'])}) {escaped(o['text'])}"
        for o in rows
    ]
    more = [f"… and {frame.height - PREVIEWED} more"] if frame.height > PREVIEWED else []
    return "\n".join([*lines, *more]) or "nothing worth keeping"


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
