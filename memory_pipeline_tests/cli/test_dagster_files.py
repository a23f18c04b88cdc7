"""Dagster's own files can be made again: where they are damaged the command says so, and dead runs are closed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.defs.runs import DamagedInstanceError, dagster_yaml, instance_of, last_words, prepare_home
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
        for process, tag in ((child, "memory/process"), (child, PROCESS_TAG), (os.getpid(), PROCESS_TAG)):
            run = dg.DagsterRun(job_name="day_job", tags={tag: f"{process}"}, status=dg.DagsterRunStatus(status))
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
    assert sorted(found) == sorted(["FAILURE", "FAILURE", status, status, status])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGBUS])
def test_a_process_that_is_ended_by_a_signal_has_last_words(tmp_path: Path, number: signal.Signals) -> None:
    code = (
        "import os, sys; from pathlib import Path; from memory_pipeline.defs.runs import last_words\n"
        "from memory_pipeline.settings import Settings\n"
        "with last_words(Settings(workspace=Path(sys.argv[1]))): os.kill(os.getpid(), int(sys.argv[2]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, f"{tmp_path}", f"{int(number)}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == -number
    assert done.stderr.endswith(
        "The run was ended from outside or by the system. Run it again; what is stored is whole.\n"
    )


def test_what_a_run_says_is_told_also_where_dagster_leaves_the_streams_in_a_full_file() -> None:
    code = (
        "import os, sys; from contextlib import suppress; from memory_pipeline.defs.runs import streams_kept\n"
        "from dagster._core.execution.compute_logs import redirect_stream\n"
        "with suppress(OSError), streams_kept(), open('/dev/full', 'w') as full, redirect_stream(full, sys.stdout):\n"
        "    print('lost')\n"
        "print('The disk is full.')"
    )
    buffered = {"PATH": os.environ["PATH"]}  # without buffers the step itself would fail, and earlier
    done = subprocess.run([sys.executable, "-c", code], env=buffered, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith("The disk is full.\n")


def test_one_that_ends_by_itself_has_none(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings, _ = workspace(tmp_path)
    with last_words(settings):
        pass
    with pytest.raises(ZeroDivisionError), last_words(settings):
        1 / 0  # noqa: B018
    assert capfd.readouterr().err == ""
