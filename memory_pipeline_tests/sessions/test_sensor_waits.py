"""The session sensor asks for nothing while something works on days: what is due then may be done when that has ended.

A backfill of 24 days made ten days due on the way, each of which was asked for and found to be up to date.
"""

import os
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.execution.backfill import BulkActionStatus, PartitionBackfill

from memory_pipeline.defs.partitions import range_tags
from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.defs.under_way import PROCESS_TAG
from memory_pipeline_tests.conftest import conversation, write_session
from memory_pipeline_tests.loaded import session_sensor
from memory_pipeline_tests.rows import FakeEncoder, use_encoder

DAY = date(2025, 3, 5)
STARTED = dg.DagsterRunStatus.STARTED


@pytest.fixture(autouse=True)
def one_day_is_due(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_encoder(monkeypatch, FakeEncoder("invoices", "parcels", dimension=384))
    monkeypatch.setenv("MEMORY_SESSION_DIRS", f"{tmp_path / 'sessions'}")
    (tmp_path / "sessions").mkdir()
    path = write_session(tmp_path / "sessions" / "a.jsonl", *conversation(datetime(2025, 3, 5, 9, tzinfo=UTC)))
    long_ago = datetime(2025, 3, 5, 10, tzinfo=UTC).timestamp()
    os.utime(path, (long_ago, long_ago))


def tick(instance: dg.DagsterInstance, cursor: str | None = None) -> Any:
    with dg.build_sensor_context(instance, cursor, resources={"workspace": WorkspaceResource()}) as context:
        answer = session_sensor(context)
        return answer, context.cursor


def run_of(process: int | None = None, status: dg.DagsterRunStatus = STARTED) -> dg.DagsterRun:
    tags = range_tags(date(2025, 3, 1), date(2025, 3, 24)) | ({PROCESS_TAG: f"{process}"} if process else {})
    return dg.DagsterRun(job_name="day_job", tags=tags, status=status)


def a_dead_process() -> int:
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    return child


def test_a_day_that_is_due_waits_for_what_is_under_way() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_run(run_of(os.getpid()))
        answer, _ = tick(instance)
        assert isinstance(answer, dg.SkipReason)
        assert "1 days are due and wait for the end of" in f"{answer.skip_message}"
        assert "day_job" in f"{answer.skip_message}"


def test_it_waits_for_a_backfill_between_its_runs() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_backfill(
            PartitionBackfill(
                backfill_id="abcdef",
                status=BulkActionStatus.REQUESTED,
                from_failure=False,
                tags={},
                backfill_timestamp=0.0,
                partition_names=[f"{DAY}"],
            )
        )
        answer, _ = tick(instance)
        assert isinstance(answer, dg.SkipReason) and "backfill abcdef" in f"{answer.skip_message}"


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(lambda: run_of(a_dead_process()), id="one that was killed"),
        pytest.param(lambda: run_of(status=dg.DagsterRunStatus.SUCCESS), id="one that ended"),
    ],
)
def test_nothing_waits_for(run: Any) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_run(run())
        answer, _ = tick(instance)
        assert isinstance(answer, dg.SensorResult)
        assert [request.partition_key for request in answer.run_requests or []] == [f"{DAY}"]
