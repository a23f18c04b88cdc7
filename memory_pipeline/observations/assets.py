"""The assets `segments` and `observations`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import date
from typing import Any

import dagster as dg
import polars as pl

from memory_pipeline.days import today
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.stage import VERSION, ObservationsStage, observer_of
from memory_pipeline.orchestration import (
    MODEL_RETRY,
    ONE_RUN,
    PARTITIONS,
    LakeResource,
    markdown_table,
    run_stage,
    table_spec,
)
from memory_pipeline.settings import Settings, load_settings
from memory_pipeline.text.priorities import PRIORITIES

PREVIEWED = 40
_SETTINGS = load_settings()
_VERSION = f"{VERSION} {observer_of(_SETTINGS, Lake(_SETTINGS.lake_dir)).version}"
"""Model and prompts are part of it, so that an edited prompt shows its assets as stale, once the code location is
reloaded. A run asks for what the settings and prompts say when it begins."""


@dg.multi_asset(
    name="observe",
    specs=[
        table_spec(
            "segments",
            deps=["messages", "windows"],
            version=_VERSION,
            description="A topic ends where the person goes on behind something finished, where the words change "
            "or after a pause. The narrative tells what was asked, what was done and how it ended.",
        ),
        table_spec(
            "observations",
            deps=["messages", "windows"],
            version=_VERSION,
            description="Facts with priority, time and the spans that carry them: quotes, or what the model of "
            "OBSERVER_MODEL wrote and what was said bears out. Only windows marked `observed` have rows. Also written "
            "to the day's log, memory/YYYY-MM-DD.md.",
        ),
    ],
    partitions_def=PARTITIONS,
    backfill_policy=ONE_RUN,
    retry_policy=MODEL_RETRY,
    # where it cannot, Dagster 1.13 refuses a backfill on some starts: it compares how each key's days are written down
    can_subset=True,
)
def observe(context: dg.AssetExecutionContext, lake: LakeResource) -> Iterator[dg.MaterializeResult[Any]]:
    tables, settings = lake.open(), lake.settings()
    stage = ObservationsStage.of(settings, tables)
    calls_for = calls_by_day(tables, settings)
    yield from run_stage(
        context, tables, stage, lambda t, day: describe(tables, settings, t, day, calls_for) | left_of(stage, day)
    )
    for day, reason in stage.left.items():
        context.log.warning(f"{day} is not finished: {reason}")
    for key in stage.log_blocks_edited:
        context.log.warning(f"A block of the daily log was edited by hand and left as it is: {key}")


def left_of(stage: ObservationsStage, day: date) -> dict[str, Any]:
    """What there is to say of windows that could not be observed yet."""
    return {"left_for_later": stage.left[day]} if day in stage.left else {}


def calls_by_day(lake: Lake, settings: Settings) -> Callable[[date], pl.DataFrame]:
    """The model's calls for a day, whenever they were made. Those made before today are read once, not for each day."""
    now, columns = today(settings.zone), ["for_day", "stage", "cached", "cost_usd"]

    def read(days: Iterable[date]) -> pl.DataFrame:
        return lake.read("ledger", days, columns).filter(pl.col("stage") == "observations")

    before = read(day for day in lake.days("ledger") if day < now)
    return lambda day: pl.concat([before, read(d for d in lake.days("ledger") if d >= now)]).filter(
        pl.col("for_day") == day
    )


def describe(
    lake: Lake, settings: Settings, table: str, day: date, calls_for: Callable[[date], pl.DataFrame]
) -> dict[str, Any]:
    frame = lake.read(table, [day])
    if table == "segments":
        narratives = frame.sort("dedupe_key", "position").select("narrative")
        unparsed = frame.filter(~pl.col("parsed").fill_null(True))
        problems = {"problems": markdown_table(unparsed.select("problem", "answer"))} if unparsed.height else {}
        return problems | {
            "windows": frame["dedupe_key"].n_unique(),
            "unparsed": unparsed.height,
            "preview": markdown_table(narratives),
        }
    said = int(lake.read("windows", [day]).filter(pl.col("observed"))["tokens_said"].sum())
    tokens = int(frame["tokens"].sum())
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
            "tokens": tokens,
            "compression_ratio": round(tokens / said, 4) if said else 0.0,
            "preview": dg.MetadataValue.md(_preview(frame, settings)),
        }
    )


def _preview(frame: pl.DataFrame, settings: Settings) -> str:
    rows = frame.sort("observed_at").head(PREVIEWED).iter_rows(named=True)
    marks, zone = settings.marks, settings.zone
    lines = [f"* {marks[o['priority']]} ({o['observed_at'].astimezone(zone):%H:%M}) {o['text']}" for o in rows]
    more = [f"… and {frame.height - PREVIEWED} more"] if frame.height > PREVIEWED else []
    return "\n".join([*lines, *more]) or "nothing worth keeping"
