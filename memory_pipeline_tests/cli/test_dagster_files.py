"""Dagster's own files can be made again: where they are damaged the command says so, and dead runs are closed."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.defs.runs import DamagedInstanceError, dagster_yaml, instance_of, prepare_home
from memory_pipeline.defs.under_way import PROCESS_TAG, close_dead_runs
from memory_pipeline_tests.rows import workspace


@pytest.mark.parametrize("content", [b"telemetry: [", b"not yaml: at: all: {", b"no_such_key: 1\n"])
def test_a_wrong_dagster_yaml_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    settings, _ = workspace(tmp_path)
    (prepare_home(settings) / "dagster.yaml").write_bytes(content)
    with pytest.raises(DamagedInstanceError) as caught, instance_of(settings):
        pass
    assert f"mv {settings.dagster_home} {settings.dagster_home}.broken" in f"{caught.value}"


def test_so_is_a_damaged_database(tmp_path: Path) -> None:
    settings, _ = workspace(tmp_path)
    with instance_of(settings):
        pass
    databases = list(settings.dagster_home.rglob("*.db"))
    assert databases
    for database in databases:
        database.write_bytes(b"\xff" * 5000)
    with (
        pytest.raises(DamagedInstanceError, match="They hold the record of runs, not your memory"),
        instance_of(settings),
    ):
        pass
    settings.dagster_home.rename(f"{settings.dagster_home}.broken")
    with instance_of(settings) as instance:
        assert instance.get_runs_count() == 0


def test_an_empty_dagster_yaml_counts_as_missing(tmp_path: Path) -> None:
    settings, _ = workspace(tmp_path)
    own = prepare_home(settings) / "dagster.yaml"
    own.write_bytes(b"")
    prepare_home(settings)
    assert own.read_bytes() == dagster_yaml().read_bytes() and b"telemetry" in own.read_bytes()
    own.write_bytes(b"telemetry:\n  enabled: false\n# mine\n")
    prepare_home(settings)
    assert own.read_bytes().endswith(b"# mine\n")


@pytest.mark.parametrize("status", ["NOT_STARTED", "STARTING", "STARTED", "CANCELING"])
def test_a_run_whose_process_is_gone_is_closed(tmp_path: Path, status: str) -> None:
    settings, _ = workspace(tmp_path)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    with instance_of(settings) as instance:
        for process in (child, os.getpid()):
            run = dg.DagsterRun(
                job_name="day_job", tags={PROCESS_TAG: f"{process}"}, status=dg.DagsterRunStatus(status)
            )
            instance.add_run(run)
        again = {"root_run_id": run.run_id, "parent_run_id": run.run_id}  # by the UI, which copies the tags
        instance.add_run(
            dg.DagsterRun(
                job_name="day_job", tags={PROCESS_TAG: f"{child}"}, status=dg.DagsterRunStatus(status), **again
            )
        )
        instance.add_run(dg.DagsterRun(job_name="day_job", status=dg.DagsterRunStatus(status)))
        close_dead_runs(instance)
        found = [run.status.value for run in instance.get_runs()]
    assert sorted(found) == sorted(["FAILURE", status, status, status])
