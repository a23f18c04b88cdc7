"""Days, weeks and months without a session are not missing in Dagster's catalogue, and become due when one turns up."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memory_pipeline.cli.ui import ui
from memory_pipeline.defs import empty_partitions, web_server
from memory_pipeline.defs.empty_partitions import DAILY, empty_periods, report_empty_partitions
from memory_pipeline.defs.graph import build_definitions
from memory_pipeline.defs.orchestration import daily_partitions
from memory_pipeline.defs.quality_history import results_of
from memory_pipeline.defs.runs import instance_of
from memory_pipeline.distillation.periods import DAY, MONTH, TABLE_OF, WEEK
from memory_pipeline.planning import Stages
from memory_pipeline.settings import Settings, load_settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cli.command import memory_json
from memory_pipeline_tests.conftest import conversation, write_session

EXAMPLES = Path(empty_partitions.__file__).parents[1] / "examples"
FIRST, SPOKEN, TODAY = date(2025, 1, 1), date(2025, 1, 7), date(2025, 2, 3)
"""A Wednesday, a Tuesday, and the Monday after January."""


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """A workspace with a session on one day of its second week."""
    monkeypatch.setenv("MEMORY_SESSION_DIRS", f"{tmp_path}/sessions")
    monkeypatch.setattr(empty_partitions, "today", lambda zone: TODAY)
    monkeypatch.setattr("memory_pipeline.distillation.stage.today", lambda zone: TODAY)
    say_on(tmp_path, SPOKEN)
    return load_settings()


@pytest.fixture
def instance(settings: Settings) -> Iterator[dg.DagsterInstance]:
    with instance_of(settings) as made:
        yield made


def say_on(folder: Path, day: date) -> None:
    (folder / "sessions").mkdir(exist_ok=True)
    at = datetime(day.year, day.month, day.day, 9, tzinfo=UTC)
    write_session(folder / "sessions" / f"{day}.jsonl", *conversation(at, topic=f"{day}"))


def looked(settings: Settings) -> Stages:
    """The stages, with the session files as they are now."""
    stages = Stages.from_settings(settings, now=datetime(2025, 2, 3, 9, tzinfo=UTC))
    stages.sessions.look()
    return stages


def report(settings: Settings, instance: dg.DagsterInstance) -> int:
    graph = build_definitions(settings).resolve_asset_graph()
    return report_empty_partitions(instance, Workspace.open(settings), looked(settings).sessions.catalogue, graph)


def days(first: date, last: date) -> set[str]:
    return {f"{first + timedelta(days=n)}" for n in range((last - first).days + 1)}


def materialized(instance: dg.DagsterInstance, asset: str) -> set[str]:
    return instance.get_materialized_partitions(dg.AssetKey(asset))


def test_every_partition_without_a_session_is_reported_once_today_too(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    empty = days(FIRST, TODAY) - {f"{SPOKEN}"}
    old_enough = empty - days(TODAY - timedelta(days=settings.distil_after_days - 1), TODAY)
    assert report(settings, instance) == len(empty) * (len(DAILY) - 1) + len(old_enough) + 4
    for asset in DAILY:
        assert materialized(instance, asset) == (old_enough if asset == TABLE_OF[DAY] else empty)
    weeks = {"2024-12-30", "2025-01-13", "2025-01-20", "2025-01-27"}  # 6 January has the session
    assert materialized(instance, TABLE_OF[WEEK]) == weeks
    assert materialized(instance, TABLE_OF[MONTH]) == set()
    assert report(settings, instance) == 0
    lake = Workspace.open(settings).lake
    assert [lake.days(table) for table in (*DAILY, TABLE_OF[WEEK])] == [[]] * (len(DAILY) + 1)


def test_every_check_passed_the_days_without_a_session_and_a_report_says_nothing_of_them(
    settings: Settings, instance: dg.DagsterInstance
) -> None:
    report(settings, instance)
    graph = build_definitions(settings).resolve_asset_graph()
    by_day = [key for key in graph.asset_check_keys if graph.get(key).partitions_def == daily_partitions(settings)]
    assert len(by_day) > 10
    empty = days(FIRST, TODAY) - {f"{SPOKEN}"}
    for key in by_day:
        found = instance.event_log_storage.get_asset_check_partition_info([key])
        assert {record.partition_key for record in found} == empty
        assert {record.latest_execution_status.value for record in found} == {"SUCCEEDED"}
        assert all(record.is_current and record.latest_target_materialization_storage_id for record in found)
    assert results_of(instance, graph) == []


def test_the_assets_that_are_reported_are_those_with_partitions(settings: Settings) -> None:
    graph = build_definitions(settings).get_repository_def().asset_graph
    partitioned = {key.path[-1] for key in graph.materializable_asset_keys if graph.get(key).is_partitioned}
    assert {*DAILY, TABLE_OF[WEEK], TABLE_OF[MONTH]} == partitioned


def test_dagster_shows_what_was_reported(settings: Settings, instance: dg.DagsterInstance) -> None:
    """As `report_runless_asset_event` would: the latest of the asset, its rows, and each partition's own."""
    report(settings, instance)
    instance.report_runless_asset_event(dg.AssetMaterialization("of_dagster", partition="2025-01-02"))
    ours, theirs = (latest(instance, asset) for asset in ("windows", "of_dagster"))
    assert (ours.run_id, ours.job_name) == (theirs.run_id, theirs.job_name)
    made = ours.asset_materialization
    assert made and made.partition == "2025-02-03" and made.metadata["dagster/row_count"].value == 0
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=dg.AssetKey("windows"), asset_partitions=["2025-01-02"]), limit=5
    ).records
    assert [record.partition_key for record in records] == ["2025-01-02"]


def latest(instance: dg.DagsterInstance, asset: str) -> Any:
    return instance.get_latest_materialization_event(dg.AssetKey(asset))


def test_a_day_that_gets_a_session_later_is_due(
    settings: Settings, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    report(settings, instance)
    later = date(2025, 1, 15)
    assert f"{later}" in materialized(instance, "sessions")
    say_on(tmp_path, later)
    stages = looked(settings)
    assert stages.runs_for(stages.sessions.catalogue.days()) == [(SPOKEN, later)]
    periods = empty_periods(Workspace.open(settings), stages.sessions.catalogue)
    assert later not in {period.last for period in periods[DAY]}
    assert f"{date(2025, 1, 13)}" not in {f"{period.key}" for period in periods[WEEK]}


def test_the_ui_reports_them_before_it_starts(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would become is not started here."""
    started: list[tuple[Settings, int, str]] = []
    monkeypatch.setattr(web_server, "serve", lambda *args: started.append(args))
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(settings.workspace.parent)  # where it leaves to, it is to come back from
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ui(port=port)
    assert [given[1:] for given in started] == [(port, "127.0.0.1")] and Path.cwd() == settings.dagster_home
    with instance_of(settings) as instance:
        assert {"2025-01-02"} < materialized(instance, "sessions")


@pytest.mark.parametrize("kind", ["ephemeral", "sqlite"])
def test_each_kind_of_storage_takes_them(settings: Settings, instance: dg.DagsterInstance, kind: str) -> None:
    with dg.DagsterInstance.ephemeral() as ephemeral:
        chosen = ephemeral if kind == "ephemeral" else instance
        assert report(settings, chosen)
        assert "2025-01-02" in materialized(chosen, "sessions")


def test_a_run_leaves_nothing_missing(tmp_path: Path) -> None:
    """The bundled examples, with a first day before them."""
    env = {"MEMORY_START_DATE": "2026-02-20", "MEMORY_TIMEZONE": "UTC", "MEMORY_WORKSPACE": f"{tmp_path / 'w'}"}
    summary = memory_json(tmp_path, "run", "--all", "--sessions", str(EXAMPLES), env=env)
    assert summary["failure"] is None
    settings = Settings(workspace=tmp_path / "w", timezone="UTC", start_date=date(2026, 2, 20))
    graph = build_definitions(settings).get_repository_def().asset_graph
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    old_enough = f"{yesterday - timedelta(days=settings.distil_after_days + 31)}"
    with instance_of(settings) as instance:
        for key in graph.materializable_asset_keys:
            if definition := graph.get(key).partitions_def:
                made = instance.get_materialized_partitions(key)
                wanted = set(definition.get_partition_keys())
                if key.path[-1] in (TABLE_OF[WEEK], TABLE_OF[MONTH]):
                    wanted = {name for name in wanted if name <= old_enough}
                assert wanted <= made and wanted, key
                assert made <= set(definition.get_partition_keys())
