"""The event log that reuses open files: Dagster's own storage and this one read what the other wrote."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memory_pipeline.defs import runs
from memory_pipeline.defs.event_log import ReusingSqliteEventLogStorage

RUNS = 3


@dg.asset(partitions_def=dg.StaticPartitionsDefinition(["a", "b"]))
def numbers() -> dg.MaterializeResult[Any]:
    return dg.MaterializeResult(metadata={"rows": 3})


@dg.asset_check(asset=numbers)
def are_right() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=True)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "dagster.yaml").write_bytes(runs.dagster_yaml().read_bytes())
    return tmp_path


def materialised(instance: dg.DagsterInstance, partition: str) -> str:
    return dg.materialize([numbers, are_right], instance=instance, partition_key=partition).run_id


def kinds(instance: dg.DagsterInstance, run: str) -> list[str]:
    return [entry.dagster_event_type.name for entry in instance.all_logs(run) if entry.dagster_event_type]


def test_both_read_what_the_other_wrote_while_both_are_open(home: Path) -> None:
    with runs._open(home) as reusing, dg.DagsterInstance.from_config(str(home)) as own:
        assert isinstance(reusing.event_log_storage, ReusingSqliteEventLogStorage)
        assert not isinstance(own.event_log_storage, ReusingSqliteEventLogStorage)
        ours, theirs = materialised(reusing, "a"), materialised(own, "b")
        for instance in (reusing, own):
            assert kinds(instance, ours) == kinds(instance, theirs)
            assert {"ASSET_MATERIALIZATION", "ASSET_CHECK_EVALUATION", "RUN_SUCCESS"} <= set(kinds(instance, ours))
            assert instance.get_materialized_partitions(numbers.key) == {"a", "b"}


def test_two_threads_lose_no_event(home: Path) -> None:
    with runs._open(home) as instance:
        run = materialised(instance, "a")
        before = len(instance.all_logs(run))

        def report(number: int) -> None:
            instance.report_engine_event(f"event {number}", run_id=run, job_name="numbers")

        with ThreadPoolExecutor(2) as threads:
            list(threads.map(report, range(20)))
        added = [entry.message for entry in instance.all_logs(run)[before:]]
    assert sorted(added) == sorted(f"event {number}" for number in range(20))


def test_the_files_of_two_databases_are_open_at_most(home: Path) -> None:
    with runs._open(home) as instance:
        made = [materialised(instance, "a") for _ in range(RUNS)]
        assert set(instance.event_log_storage._engines) == {"index", made[-1]}
    with dg.DagsterInstance.from_config(str(home)) as own:  # which reads the copied files like those it made
        assert len({tuple(kinds(own, run)) for run in made}) == 1
        assert len({own.event_log_storage.get_stats_for_run(run).steps_succeeded for run in made}) == 1
    assert not list(home.glob("history/runs/*.tmp"))


def test_a_record_elsewhere_stays_as_it_is_configured(home: Path) -> None:
    own = {"module": "dagster._core.storage.event_log", "class": "ConsolidatedSqliteEventLogStorage"}
    (home / "dagster.yaml").write_text(
        f"event_log_storage:\n  module: {own['module']}\n  class: {own['class']}\n  config: {{base_dir: {home}}}\n"
    )
    with runs._open(home) as instance:
        assert type(instance.event_log_storage).__name__ == own["class"]
