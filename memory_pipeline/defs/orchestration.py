"""The declaration of a table as an asset, and the loop over the days of a run."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from datetime import date
from typing import Any

import dagster as dg
import polars as pl

from memory_pipeline.days import today
from memory_pipeline.defs.partitions import daily_partitions
from memory_pipeline.defs.placement import Placement
from memory_pipeline.embeddings.index_pool import indexes_kept_open
from memory_pipeline.errors import CannotGoOnError, TryAgainLaterError
from memory_pipeline.lake.tables import TABLES, duckdb_type
from memory_pipeline.llm.errors import SetAsideError
from memory_pipeline.markdown.escaping import escaped
from memory_pipeline.stages import Stage, bring_up_to_date
from memory_pipeline.workspace.free_space import require_space
from memory_pipeline.workspace.workspace import Workspace

# backfill policies are in beta and partitioned checks in preview in 1.13, which is why its version is pinned
warnings.filterwarnings("ignore", category=dg.BetaWarning)
warnings.filterwarnings("ignore", category=dg.PreviewWarning)
# intended: a job over all assets of a range is split like the most finely split asset
warnings.filterwarnings("ignore", "Asset job .* materializes assets with varying BackfillPolicies")


DAYS_POOL, LOOK_BACK_POOL = "days", "look_back"
"""Pools of runs with one slot each; a user gives `days` more slots for a parallel backfill."""
OWN_DAY = {"pool": DAYS_POOL, "backfill_policy": dg.BackfillPolicy.multi_run(max_partitions_per_run=10)}
"""Policy of an asset whose day depends on that day alone: a backfill may be several concurrent runs."""
LOOKS_BACK = {"pool": LOOK_BACK_POOL, "backfill_policy": dg.BackfillPolicy.single_run()}
"""Policy of an asset whose day depends on earlier days: a single run, oldest day first."""
MODEL_RETRY = dg.RetryPolicy(max_retries=2, delay=5, backoff=dg.Backoff.EXPONENTIAL, jitter=dg.Jitter.PLUS_MINUS)
"""Retries of steps that wait for the index's lock or a server; bad data is not retried."""
FAILED_DAYS = "failed_days"
"""Metadata of a failed step: a sentence for each failed day, which begins with the day."""
REBUILT = "rebuilt"
"""Metadata of a day of a table: whether the run rebuilt it or found it up to date."""
UNTRIED_DAYS = "untried_days"
"""Metadata of a failed step: the number of later days that were skipped, as they would have failed likewise."""
STOPPED = "The run was stopped. Run it again; what is finished is kept."

Describe = Callable[[str, date], Mapping[str, Any]]
"""Metadata of a table's day, for the UI."""

DayOfKey = Callable[[str], date]
"""The `day` of a partition's rows: the partition itself, or the last day of a week or month."""

on_progress: ContextVar[Callable[[str, int], None] | None] = ContextVar("on_progress", default=None)
"""A function that receives a description of the current work and the number of days of a stage that were finished since
its last call; the command line sets it to draw a progress bar."""


def table_spec(
    placement: Placement, table: str, *, version: str, description: str, deps: Sequence[str | dg.AssetDep] = ()
) -> dg.AssetSpec:
    """An asset that is a table of the lake; dependencies are names of tables, or have a mapping of partitions."""
    return dg.AssetSpec(
        placement.key(table),
        deps=[placement.key(dep) if isinstance(dep, str) else dep for dep in deps],
        description=f"One row is {TABLES[table].description}.\n\n{description}",
        group_name=placement.group,
        code_version=version,
        kinds={"parquet", "polars"},
        metadata={"dagster/column_schema": table_schema(table)},
    )


def stage_asset(
    placement: Placement,
    op: str,
    policy: Mapping[str, Any],
    specs: Sequence[dg.AssetSpec],
    partitions_def: dg.PartitionsDefinition[Any] | None = None,
    **options: Any,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """A decorator of the function that builds the tables of a stage, by default partitioned by day."""
    return dg.multi_asset(
        name=placement.name(op),
        specs=specs,
        partitions_def=partitions_def or daily_partitions(placement.settings),
        # without it, Dagster 1.13 sometimes rejects a backfill, as it compares the output of each key
        can_subset=len(specs) > 1,
        required_resource_keys=placement.needs,
        **policy,
        **options,
    )


def other_asset(
    placement: Placement, name: str, *, deps: Sequence[str | dg.AssetDep], **options: Any
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """A decorator of the function that materializes an asset that is no stage."""
    decorator: Callable[[Callable[..., Any]], dg.AssetsDefinition] = dg.asset(
        key=placement.key(name),
        deps=[placement.key(dep) if isinstance(dep, str) else dep for dep in deps],
        group_name=placement.group,
        required_resource_keys=placement.needs,
        **options,
    )
    return decorator


def table_schema(table: str) -> dg.TableSchema:
    about = TABLES[table]
    columns = [dg.TableColumn(name, duckdb_type(kind), about.notes[name]) for name, kind in about.columns.items()]
    return dg.TableSchema(columns)


def days_of(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext, day_of_key: DayOfKey = date.fromisoformat
) -> dict[date, str]:
    """The days of the run with their partitions, oldest first, as stages may look back."""
    return dict(sorted((day_of_key(key), key) for key in context.partition_keys))


def run_stage(
    context: dg.AssetExecutionContext,
    workspace: Workspace,
    stage: Stage,
    describe: Describe,
    day_of_key: DayOfKey = date.fromisoformat,
    *,
    newest_first: bool = False,
) -> list[dg.MaterializeResult[Any]]:
    """Update every day of the run and report each table by day, with the notes of the build.

    A failed day does not stop the others; the step fails at the end and names it. Finished days are stored, so the next
    run skips them. All tables of a stage are built together, whichever are selected.
    """
    keys = {key.path[-1]: key for key in context.selected_asset_keys}
    selected = [table for table in stage.tables if table in keys]
    failed: dict[date, Exception] = {}
    untried = 0
    lake, rebuilt, days = workspace.lake, 0, days_of(context, day_of_key)
    report = on_progress.get()
    ordered = list(reversed(days) if newest_first else days)
    with lake.seen_once(), indexes_kept_open():
        for done, day in enumerate(ordered, 1):
            if report:
                report(f"{stage.tables[-1]} {day}", 0)
            try:
                require_space(workspace.settings.workspace)
                built = bring_up_to_date(stage, lake, day)
            except (KeyboardInterrupt, dg.DagsterExecutionInterruptedError):
                # the retry policy would count it as a failure and restart the step
                raise dg.Failure(STOPPED, allow_retries=False) from None
            except Exception as caught:
                context.log.exception(f"{stage.tables[-1]} of {day} failed")
                failed[day] = caught
                if isinstance(caught, (TryAgainLaterError, CannotGoOnError)) and not isinstance(caught, SetAsideError):
                    untried = len(ordered) - done
                    break  # every other day would fail likewise
                continue
            rebuilt += built is not None
            for warning in built.warnings if built else ():
                context.log.warning(warning)
            for table in selected:
                rows = lake.read(table, [day]).height
                metadata = {"dagster/row_count": rows, "path": dg.MetadataValue.path(lake.place(table, day))}
                metadata |= {REBUILT: built is not None} | dict(describe(table, day))
                metadata |= built.notes if built else {}
                context.add_asset_metadata(metadata, asset_key=keys[table], partition_key=days[day])
            if report:
                report(f"{stage.tables[-1]} {day}", 1)
    if failed:
        first, error = next(iter(failed.items()))
        raise dg.Failure(
            f"{len(failed)} of {len(days)} days failed, first {first}: {type(error).__name__}: {error}",
            metadata={
                FAILED_DAYS: dg.MetadataValue.json([f"{d}: {e}" for d, e in failed.items()]),
                UNTRIED_DAYS: untried,
            },
            allow_retries=isinstance(error, TryAgainLaterError) and not isinstance(error, SetAsideError),
        ) from error
    context.log.info(f"{', '.join(stage.tables)}: {rebuilt} of {len(days)} days were out of date")
    return [dg.MaterializeResult(asset_key=keys[table]) for table in selected]


def calls_today(workspace: Workspace, stage: str, day: date) -> dict[str, Any]:
    """Calls of the model and their cost for a day of a stage since this morning; empty if it was not asked."""
    made = workspace.lake.read("ledger", [today(workspace.settings.zone)], ["for_day", "stage", "cached", "cost_usd"])
    calls = made.filter((pl.col("for_day") == day) & (pl.col("stage") == stage) & ~pl.col("cached"))
    return {"model_calls": calls.height, "spent_usd": float(calls["cost_usd"].sum())} if calls.height else {}


def markdown_table(frame: pl.DataFrame, limit: int = 20) -> dg.MarkdownMetadataValue:
    """The first rows as a Markdown table."""
    head = frame.head(limit)
    rows = [[escaped(f"{value}") for value in row] for row in head.iter_rows()]
    lines = [" | ".join(head.columns), " | ".join("---" for _ in head.columns), *(" | ".join(row) for row in rows)]
    more = f"\n\n… and {frame.height - limit} more" if frame.height > limit else ""
    return dg.MetadataValue.md("\n".join(f"| {line} |" for line in lines) + more)
