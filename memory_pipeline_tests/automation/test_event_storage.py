"""Our storage of Dagster's events: what it writes is what Dagster's own class reads, with far fewer connections."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import sqlalchemy as db
from dagster._core.storage.event_log import SqliteEventLogStorage

from memory_pipeline.defs.event_storage import KeptEventLog
from memory_pipeline.defs.partitions import range_tags
from memory_pipeline.defs.runs import instance_of
from memory_pipeline.settings import Settings

DAYS = dg.DailyPartitionsDefinition("2026-03-01", end_date="2026-04-10")
FIRST, LAST = "2026-03-01", "2026-04-09"


@dg.asset(partitions_def=DAYS, backfill_policy=dg.BackfillPolicy.single_run())
def log_of_day(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
    for key in context.partition_keys:
        context.add_asset_metadata({"lines": len(key)}, partition_key=key)
    return dg.MaterializeResult()


@dg.asset_check(asset=log_of_day)
def has_lines() -> dg.AssetCheckResult:
    return dg.AssetCheckResult(passed=False, metadata={"lines": 0})


JOB = dg.Definitions(
    assets=[log_of_day],
    asset_checks=[has_lines],
    jobs=[dg.define_asset_job("job", selection="log_of_day", executor_def=dg.in_process_executor)],
).resolve_job_def("job")


def run(instance: dg.DagsterInstance) -> str:
    tags = range_tags(date.fromisoformat(FIRST), date.fromisoformat(LAST))
    result = JOB.execute_in_process(instance=instance, tags=tags)
    assert result.success
    return result.run_id


@contextmanager
def dagsters_own(settings: Settings) -> Iterator[dg.DagsterInstance]:
    """The same home, read by an instance that does not know our class."""
    settings.dagster_home.mkdir(parents=True, exist_ok=True)
    (settings.dagster_home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    with instance_of(settings) as instance:
        assert type(instance.event_log_storage) is SqliteEventLogStorage
        yield instance


def told(instance: dg.DagsterInstance, run_id: str) -> dict[str, Any]:
    """What the UI asks: partitions, their metadata, the run's log, the check."""
    key = dg.AssetKey("log_of_day")
    records = instance.fetch_materializations(dg.AssetRecordsFilter(asset_key=key), limit=1000).records
    asset = instance.get_latest_materialization_event(key)
    assert asset and asset.dagster_event
    checks = instance.event_log_storage.get_asset_check_execution_history(dg.AssetCheckKey(key, "has_lines"), limit=10)
    return {
        "partitions": instance.get_materialized_partitions(key),
        "lines": sorted((r.partition_key, r.asset_materialization.metadata["lines"].value) for r in records),  # type: ignore[union-attr]
        "latest": asset.dagster_event.partition,
        "log": sorted((f"{e.dagster_event_type}", e.step_key or "") for e in instance.all_logs(run_id)),
        "check": [check.status.value for check in checks],
    }


def test_what_it_stores_is_what_dagsters_own_class_stores(tmp_path: Path) -> None:
    ours, theirs = Settings(workspace=tmp_path / "ours"), Settings(workspace=tmp_path / "theirs")
    with instance_of(ours) as instance:
        assert type(instance.event_log_storage) is KeptEventLog
        stored = told(instance, number := run(instance))
        assert len(stored["partitions"]) == 40
    with dagsters_own(ours) as instance:
        assert told(instance, number) == stored, "the files are Dagster's own"
    with dagsters_own(theirs) as instance:
        assert told(instance, run(instance)) == stored


def test_it_opens_a_few_connections_where_dagsters_own_opens_one_for_each_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    create = db.create_engine

    def counted(*args: Any, **named: Any) -> db.engine.Engine:
        engine = create(*args, **named)
        db.event.listen(engine, "connect", lambda *_: opened.append(f"{args[0]}"))
        return engine

    for module in (
        "memory_pipeline.defs.event_storage.db",
        "dagster._core.storage.event_log.sqlite.sqlite_event_log",
    ):
        monkeypatch.setattr(f"{module}.create_engine", counted)
    with instance_of(Settings(workspace=tmp_path / "ours")) as instance:
        run(instance)
    ours = len(opened)
    with dagsters_own(Settings(workspace=tmp_path / "theirs")) as instance:
        run(instance)
    assert ours < 10 < 160 < len(opened) - ours


def test_a_file_that_was_removed_or_put_back_meanwhile_is_opened_anew(tmp_path: Path) -> None:
    settings = Settings(workspace=tmp_path)
    with instance_of(settings) as instance:
        number = run(instance)
        instance.event_log_storage.dispose()  # which leaves all in one file
        file = settings.dagster_home / f"history/runs/{number}.db"
        copy = file.read_bytes()
        assert instance.all_logs(number)
        for left in file.parent.glob(f"{number}.db*"):
            left.unlink()
        assert instance.all_logs(number) == []
        instance.event_log_storage.dispose()
        file.unlink()
        file.write_bytes(copy)
        assert instance.all_logs(number)


def test_files_that_are_not_used_are_closed(tmp_path: Path) -> None:
    with instance_of(Settings(workspace=tmp_path)) as instance:
        storage = instance.event_log_storage
        assert isinstance(storage, KeptEventLog)
        numbers = [run(instance) for _ in range(6)]
        assert len(storage._engines) == 4
        assert [bool(instance.all_logs(number)) for number in numbers] == [True] * 6


def test_without_a_home_its_files_go_with_the_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `dagster definitions validate` in a checkout."""
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    with dg.instance_for_test(
        overrides={"event_log_storage": {"module": "memory_pipeline.defs.event_storage", "class": "KeptEventLog"}},
        set_dagster_home=False,
    ) as instance:
        storage = instance.event_log_storage
        assert isinstance(storage, KeptEventLog)
        folder = Path(storage._base_dir)
        assert instance.all_logs(run(instance))
        assert folder.is_dir()
    assert not folder.exists()
