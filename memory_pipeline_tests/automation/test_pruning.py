"""What pruning takes out of Dagster's record, and that nothing which the UI shows of the days goes with it."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.defs.graph import build_definitions
from memory_pipeline.defs.jobs import prune
from memory_pipeline.defs.placement import Placement
from memory_pipeline.operations.retention import Retired
from memory_pipeline.settings import Settings
from memory_pipeline_tests.rows import workspace

DAYS = dg.DailyPartitionsDefinition("2025-03-01", end_date="2025-03-10")
LATER = timedelta(days=100)


@dg.asset(partitions_def=DAYS)
def daily() -> dg.MaterializeResult:  # type: ignore[type-arg]
    print("said by the step")
    return dg.MaterializeResult(metadata={"rows": 1})


@dg.asset_check(asset=daily, partitions_def=DAYS)
def fine() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=True)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made, _ = workspace(tmp_path)
    made.dagster_home.mkdir(parents=True)
    return made


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(f"{settings.dagster_home}") as made:
        yield made


def run(instance: dg.DagsterInstance, day: str) -> str:
    result = dg.materialize([daily, fine], partition_key=day, instance=instance)
    assert result.success
    return result.run_id


def checked(instance: dg.DagsterInstance) -> dict[str | None, str]:
    found = instance.event_log_storage.get_asset_check_partition_info([fine.check_key], partition_keys=["2025-03-01"])
    return {info.partition_key: f"{info.latest_execution_status}" for info in found}


def test_what_was_replaced_goes_and_the_days_stay(instance: dg.DagsterInstance, settings: Settings) -> None:
    replaced, first, second = (run(instance, f"2025-03-0{n}") for n in (1, 1, 2))
    before, found = instance.get_materialized_partitions(daily.key), checked(instance)
    assert found

    assert prune(instance, settings.dagster_home, datetime.now(UTC) + LATER) == 1
    assert instance.get_materialized_partitions(daily.key) == before == {"2025-03-01", "2025-03-02"}
    assert checked(instance) == found
    assert {record.dagster_run.run_id for record in instance.get_run_records()} == {first, second}
    assert instance.get_run_by_id(replaced) is None
    latest = instance.get_latest_materialization_event(daily.key)
    assert latest and latest.run_id == second
    assert not list(settings.dagster_home.rglob(f"{replaced}*"))

    assert prune(instance, settings.dagster_home, datetime.now(UTC) + LATER) == 0
    assert run(instance, "2025-03-03")
    assert "2025-03-03" in instance.get_materialized_partitions(daily.key)


def test_what_is_young_or_goes_on_stays(instance: dg.DagsterInstance, settings: Settings) -> None:
    runs = {run(instance, "2025-03-01") for _ in range(2)}
    going_on = instance.create_run_for_job(dg.job(name="waits")(lambda: None))
    assert prune(instance, settings.dagster_home, datetime.now(UTC)) == 0
    assert {r.run_id for r in instance.get_runs()} == {*runs, going_on.run_id}
    prune(instance, settings.dagster_home, datetime.now(UTC) + LATER)
    assert going_on.run_id in {r.run_id for r in instance.get_runs()}


def test_the_job_tells_what_is_no_longer_kept(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which rows that are is told in `operations/test_retention.py`."""
    monkeypatch.setenv("MEMORY_WORKSPACE", f"{settings.workspace}")
    many = [date(2025, 1, n) for n in range(1, 13)]
    done = {"messages": Retired(many, []), "embeddings": Retired([], many[:1])}
    monkeypatch.setattr("memory_pipeline.defs.jobs.retire", lambda settings, today: done)
    logged: list[str] = []
    monkeypatch.setattr(dg.OpExecutionContext, "log", Logged(logged))
    job = build_definitions(Placement(settings)).get_job_def("prune_job")
    with dg.DagsterInstance.local_temp(f"{settings.dagster_home}") as instance:
        result = job.execute_in_process(instance=instance)
    (output,) = [e for e in result.all_events if e.is_successful_output and e.step_key == "retire_rows"]
    counts = {name: value.value for name, value in output.step_output_data.metadata.items()}
    assert counts == {"days of messages": 12, "days of embeddings": 0}
    assert "messages: 12 days are no longer kept: from 2025-01-01 to 2025-01-12." in logged
    assert "embeddings: not up to date, so these days are kept until they are: 2025-01-01." in logged


class Logged:
    """Takes in what a step logs."""

    def __init__(self, lines: list[str]) -> None:
        self.info = self.warning = lines.append
