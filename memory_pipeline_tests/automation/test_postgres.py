"""Dagster's record in a real Postgres, as deploy/dagster.postgres.yaml has it: the same memory, the same record, an
outage that is a sentence."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from memory_pipeline.cli.dagster_state import dagster_state
from memory_pipeline.cli.doctor import _examined
from memory_pipeline.defs.jobs import prune
from memory_pipeline.defs.placement import Placement
from memory_pipeline.defs.runs import instance_of
from memory_pipeline.operations.doctor import PROBLEM
from memory_pipeline.operations.forgetting.databases import database_changes
from memory_pipeline.operations.forgetting.request import ForgetRequest
from memory_pipeline.settings import Settings
from memory_pipeline.settings.dagster_record import (
    RecordMisconfiguredError,
    RecordUnavailableError,
    postgres_record,
)
from memory_pipeline.settings.loading import missing_extras
from memory_pipeline_tests.automation.test_pruning import checked, daily, run
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.cli.test_examples import demo  # noqa: F401 - a fixture
from memory_pipeline_tests.cli.test_examples import workspace as examples
from memory_pipeline_tests.postgres import YAML, Postgres, record_in_postgres, running
from memory_pipeline_tests.prepared import copied
from memory_pipeline_tests.rows import workspace

WHEN = ("events",)
GONE = "Dagster's record of runs in Postgres at 127.0.0.1:"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with running() as started:
        yield started


@pytest.fixture
def settings(tmp_path: Path, server: Postgres, monkeypatch: pytest.MonkeyPatch, request: Any) -> Settings:
    """A workspace whose record is in an empty database of its own."""
    made, _ = workspace(tmp_path)
    record_in_postgres(made)
    for name, value in server.database(request.node.name.lower()[:60]).items():
        monkeypatch.setenv(name, value)
    return made


def test_where_the_record_is(settings: Settings, server: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    record = postgres_record(settings)
    assert record and record.shown.startswith(f"127.0.0.1:{server.port}/") and server.password not in f"{record}"
    assert missing_extras(settings) == []
    monkeypatch.delenv("DAGSTER_POSTGRES_PASSWORD")
    with (
        pytest.raises(RecordMisconfiguredError, match=r"password .* from DAGSTER_POSTGRES_PASSWORD, which is not set"),
        instance_of(settings),
    ):
        pass
    monkeypatch.setattr("memory_pipeline.settings.loading.find_spec", lambda _: None)
    assert "[postgres]" in missing_extras(settings)[-1]


def test_a_server_that_refuses_is_a_sentence(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dagster_postgres.utils.time.sleep", lambda _: None)
    monkeypatch.setenv("DAGSTER_POSTGRES_PASSWORD", "wrong")
    with pytest.raises(RecordUnavailableError) as caught, instance_of(settings):
        pass
    assert "password authentication failed" in f"{caught.value}" and "\n" not in f"{caught.value}"


@pytest.mark.slow
def test_pruning_takes_the_same_as_in_files(settings: Settings) -> None:
    with instance_of(settings) as instance:
        replaced, first, second = (run(instance, f"2025-03-0{n}") for n in (1, 1, 2))
        going_on = instance.create_run_for_job(dg.job(name="waits")(lambda: None))
        before, found = instance.get_materialized_partitions(daily.key), checked(instance)
        assert prune(instance, settings.dagster_home, datetime.now(UTC) + timedelta(days=100)) == 1
        assert instance.get_materialized_partitions(daily.key) == before == {"2025-03-01", "2025-03-02"}
        assert checked(instance) == found
        assert {r.run_id for r in instance.get_runs()} == {first, second, going_on.run_id}
        assert instance.get_run_by_id(replaced) is None
        latest = instance.get_latest_materialization_event(daily.key)
        assert latest and latest.run_id == second
        assert prune(instance, settings.dagster_home, datetime.now(UTC) + timedelta(days=100)) == 0
        assert run(instance, "2025-03-03")


def test_what_is_forgotten_goes_from_postgres_too(settings: Settings, server: Postgres) -> None:
    said = "the falcon contract with Orrery"
    with instance_of(settings) as instance:
        instance.report_runless_asset_event(dg.AssetMaterialization("said", metadata={"line": f"On {said}, we wait."}))
    request = ForgetRequest(what="text", name=said, phrases=[said])
    assert any(said in line for change in database_changes(settings, request) for line in change.lines)
    for change in database_changes(settings, request):
        change.apply()
    assert [change.lines for change in database_changes(settings, request) if change.lines] == []
    with instance_of(settings) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey("said"))
    assert event and event.asset_materialization
    assert "falcon" not in f"{event.asset_materialization.metadata['line'].value}"


SPOKEN = ("2026-03-01", "2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05")
"""The month of the examples, and their days."""
BY_MONTH = "month_distillations"


def recorded(home: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the UI shows: runs by job, the partitions of each asset, the results of checks by day on which something was
    said; of others Postgres has none."""
    from memory_pipeline.defs.graph import build_definitions

    for name, value in env.items():
        monkeypatch.setenv(name, value)
    made = Settings(workspace=examples(home), timezone="UTC")
    definitions = build_definitions(Placement(made))
    checks = [key for definition in definitions.asset_checks or [] for key in definition.check_keys]
    assets = sorted(definitions.resolve_asset_graph().get_all_asset_keys())
    with instance_of(made) as instance:
        found = instance.event_log_storage.get_asset_check_partition_info(checks)
        return {
            "runs": sorted((run.job_name, run.status.value) for run in instance.get_runs()),
            "partitions": {key.to_user_string(): sorted(instance.get_materialized_partitions(key)) for key in assets},
            "known": sorted(key.to_user_string() for key in instance.all_asset_keys()),
            "checks": sorted(
                (i.check_key.to_user_string(), f"{i.partition_key}", f"{i.latest_execution_status}")
                for i in found
                if i.partition_key in SPOKEN[0 if BY_MONTH in i.check_key.to_user_string() else 1 :]
            ),
        }


def test_an_outage_is_a_sentence_and_the_next_run_goes_on(
    settings: Settings, server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dagster_postgres.utils.time.sleep", lambda _: None)

    @dg.asset
    def stops(context):
        server.stop()
        context.log.info("an event that cannot be stored")

    try:
        with instance_of(settings) as instance:
            run(instance, "2025-03-01")
        with pytest.raises(RecordUnavailableError) as caught, instance_of(settings) as instance:
            dg.materialize([stops], instance=instance, raise_on_error=False)
        assert f"{caught.value}".startswith(GONE) and "\n" not in f"{caught.value}"
        with pytest.raises(RecordUnavailableError), instance_of(settings):
            pass
        assert dagster_state(settings, [])["record_problem"].startswith(GONE)  # `memory status`
        [dagster] = [found for found in _examined(settings) if found.about == "Dagster"]
        assert dagster.said.startswith(GONE) and dagster.level == PROBLEM
    finally:
        server.start()
    with instance_of(settings) as instance:
        assert [record.job_name for record in instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))]
        run(instance, "2025-03-02")
        assert instance.get_materialized_partitions(daily.key) == {"2025-03-01", "2025-03-02"}


@pytest.mark.slow
def test_the_examples_with_the_record_in_postgres(
    tmp_path: Path,
    server: Postgres,
    demo: tuple[Path, str, str],  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same tables and the same record as in files, which `memory status` reads."""
    home, env = tmp_path / "home", server.database("examples")
    before = copied(demo[0], tmp_path / "before")
    there, tables = recorded(before, {}, monkeypatch), stored(before, made_in=demo[0])
    root = examples(home)
    for name in ("sessions", "lake/salt"):  # the same files with the same times, and the same marks of secrets
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        copied(examples(before) / name, root / name)
    (root / "dagster").mkdir()
    shutil.copyfile(YAML, root / "dagster" / "dagster.yaml")

    done = memory(home, "run", env=env)
    assert done.returncode == 0, done.stderr
    found = stored(home, made_in=home)
    assert found.keys() == tables.keys()
    assert [name for name in found if found[name] != tables[name]] == []
    assert recorded(home, env, monkeypatch) == there and len(there["runs"]) == 5
    status = memory_json(home, "status", env=env)
    assert status["record_problem"] is None and status["failing_checks"] == {} and status["last_success"]["messages"]
    assert not list(root.glob("dagster/**/*.db"))


def stored(home: Path, *, made_in: Path) -> dict[str, bytes]:
    """The rows of all tables as bytes, but for what says when and in which home a run was.

    Files also have a mark of what they were made from, which names this very index: no two workspaces share it.
    """
    lake = examples(home) / "lake"
    paths = (path for path in sorted(lake.rglob("*.parquet")) if path.parent.name not in WHEN)
    return {f"{path.relative_to(lake)}": _rows(path, made_in) for path in paths}


def _rows(path: Path, home: Path) -> bytes:
    bare = io.BytesIO()
    rows = pl.read_parquet(path).drop("happened_at", strict=False)
    rows.with_columns(pl.col(pl.String).str.replace_all(f"{home}", "~", literal=True)).write_parquet(bare)
    return bare.getvalue()
