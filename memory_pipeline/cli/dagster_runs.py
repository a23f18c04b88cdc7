"""Running jobs in this process, recorded in the workspace's Dagster instance so that the UI shows them."""

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import memory_pipeline
from memory_pipeline.settings import Settings

_START, _END = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"


def dagster_yaml() -> Path:
    """The instance settings: beside the package when installed, at the top of a checkout."""
    package = Path(memory_pipeline.__file__).parent
    return next(p for p in (package / "dagster.yaml", package.parent / "dagster.yaml") if p.exists())


def prepare_home(settings: Settings) -> Path:
    """The workspace's DAGSTER_HOME with its dagster.yaml; a person's own changes to that file are kept."""
    home = settings.dagster_home
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "dagster.yaml").exists():
        shutil.copyfile(dagster_yaml(), home / "dagster.yaml")
    return home


@contextmanager
def instance_of(settings: Settings) -> Iterator[Any]:
    import dagster as dg

    with dg.DagsterInstance.from_config(str(prepare_home(settings))) as instance:
        yield instance


def run_job(instance: Any, job: str, days: tuple[date, date] | None = None) -> str | None:
    """Run to the end; None when it succeeded, else what failed first, in one line."""
    from memory_pipeline.definitions import defs

    logging.getLogger("alembic").setLevel(logging.WARNING)
    result = defs.resolve_job_def(job).execute_in_process(
        instance=instance,
        tags={_START: f"{days[0]}", _END: f"{days[1]}"} if days else {},
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        raise_on_error=False,
    )
    if result.success:
        return None
    failures = [e.step_failure_data for e in result.all_events if e.is_step_failure]
    reasons = [_reason(failure.error) for failure in failures if failure.error]
    return reasons[0] if reasons else "The run failed; the Dagster UI shows its log."


def check_results(instance: Any, days: set[date]) -> dict[str, dict[str, Any]]:
    """Per check ("asset/check"): how many of the days passed, and which failed, by the latest result of each day."""
    from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus as Status

    from memory_pipeline.definitions import defs

    keys = [key for definition in defs.asset_checks or [] for key in definition.check_keys]
    found: dict[str, dict[str, Any]] = {
        f"{key.asset_key.to_user_string()}/{key.name}": {"passed": 0, "failed_days": []} for key in keys
    }
    wanted = [f"{day}" for day in days]
    for record in instance.event_log_storage.get_asset_check_partition_info(keys, partition_keys=wanted):
        result = found[f"{record.check_key.asset_key.to_user_string()}/{record.check_key.name}"]
        if record.latest_execution_status is Status.SUCCEEDED:
            result["passed"] += 1
        elif record.latest_execution_status is Status.FAILED:
            result["failed_days"].append(record.partition_key)
    return found


def _reason(error: Any) -> str:
    while error.cause:
        error = error.cause
    return " ".join(error.message.split())[:600]
