"""A workspace's first day is the day of its oldest session when it is made; nothing older is lost without a word."""

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memory_pipeline.cli.status import status
from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.settings import SettingError, load_settings
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.conftest import conversation, user, utc, write_session
from memory_pipeline_tests.loaded import session_sensor
from memory_pipeline_tests.rows import FakeEncoder, observation, put, use_encoder

OLD, NEW = date(2023, 4, 5), date(2024, 6, 7)


@pytest.fixture(autouse=True)
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that is read; no first day is set."""
    monkeypatch.delenv("MEMORY_START_DATE")
    (tmp_path / "sessions").mkdir()
    monkeypatch.setenv("MEMORY_SESSION_DIRS", str(tmp_path / "sessions"))
    return tmp_path / "sessions"


def today() -> date:
    return datetime.now(UTC).date()


def session(sessions: Path, day: date) -> None:
    write_session(sessions / f"{day}.jsonl", *conversation(f"{day}T09:00:00"))


def look(sessions: Path, *, seconds: float | None = None) -> Catalogue:
    """What `memory run` does before Dagster is there."""
    settings = load_settings()
    catalogue = Catalogue(Lake(settings.lake_dir), settings)
    catalogue.refresh(find_sources([sessions]), seconds=seconds)
    return catalogue


def mark() -> Path:
    return load_settings().lake_dir / "start_date"


def test_a_workspace_that_is_not_made_begins_today_and_writes_nothing() -> None:
    settings = load_settings()
    assert settings.start_date == today()
    assert not settings.workspace.exists()


def test_the_first_look_keeps_the_oldest_day(sessions: Path) -> None:
    session(sessions, OLD)
    session(sessions, NEW)
    catalogue = look(sessions)
    assert catalogue.settings.start_date == load_settings().start_date == OLD
    assert (catalogue.days(), catalogue.days_outside()) == ([OLD, NEW], [])


def test_older_sessions_that_turn_up_later_are_counted_and_can_be_taken_in(
    sessions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session(sessions, NEW)
    look(sessions)
    session(sessions, OLD)
    catalogue = look(sessions)
    assert (catalogue.days(), catalogue.days_outside()) == ([NEW], [OLD])
    assert load_settings().start_date == NEW
    status()
    printed = capsys.readouterr().out
    assert f"1, before the first day, {NEW}, or in the future ({OLD} …)" in printed
    assert f"`memory settings set start_date {OLD}`, then `memory backfill`, includes older days" in printed
    load_settings().settings_file.write_text(f"start_date = {OLD}\n")
    assert look(sessions).days() == [OLD, NEW]


@pytest.mark.parametrize("where", ["variable", "file"])
def test_what_a_person_sets_counts_more(where: str, sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session(sessions, OLD)
    if where == "variable":
        monkeypatch.setenv("MEMORY_START_DATE", f"{NEW}")
    else:
        path = load_settings().settings_file
        path.parent.mkdir(parents=True)
        path.write_text(f"start_date = {NEW}\n")
    catalogue = look(sessions)
    assert catalogue.settings.start_date == load_settings().start_date == NEW
    assert catalogue.days_outside() == [OLD]
    monkeypatch.delenv("MEMORY_START_DATE", raising=False)
    load_settings().settings_file.unlink(missing_ok=True)
    assert load_settings().start_date == OLD


def test_a_look_that_ran_out_of_time_keeps_no_day_and_leaves_out_none(sessions: Path) -> None:
    for number in range(3):
        session(sessions, NEW + timedelta(days=number))
    assert look(sessions, seconds=-1.0).rows == {}
    assert not mark().exists()
    half = load_settings()
    catalogue = Catalogue(Lake(half.lake_dir), half)
    first, *others = list(find_sources([sessions]))
    catalogue.refresh([first])  # as if the others were not there yet
    mark().unlink()
    catalogue = Catalogue(Lake(half.lake_dir), load_settings())
    assert catalogue.refresh([first, *others], seconds=-1.0).left == 2
    assert not mark().exists() and catalogue.days_outside() == []


def test_a_clock_that_ran_ahead_makes_no_workspace_of_the_future(sessions: Path) -> None:
    session(sessions, today() + timedelta(days=3))
    look(sessions)
    assert mark().read_text() == f"{today()}\n"


def test_a_workspace_from_before_has_the_days_of_its_tables(sessions: Path) -> None:
    lake = Lake(load_settings().lake_dir)
    put(lake, "observations", observation("Use uv.", day=NEW))
    assert load_settings().start_date == NEW
    (load_settings().log_dir).mkdir()
    load_settings().daily_log(OLD).write_text("- a note of my own\n")
    assert load_settings().start_date == OLD
    assert not mark().exists()  # loading writes nothing


def test_a_workspace_from_before_has_the_days_that_its_catalogue_knows(sessions: Path) -> None:
    """Days that were read but never run were partitions, and stay ones."""
    session(sessions, OLD)
    look(sessions)
    mark().unlink()
    put(Lake(load_settings().lake_dir), "observations", observation("Use uv.", day=NEW))
    assert load_settings().start_date == OLD
    look(sessions)
    assert mark().read_text() == f"{OLD}\n"


def test_a_catalogue_that_is_damaged_is_not_the_settings_to_tell(sessions: Path) -> None:
    lake = Lake(load_settings().lake_dir)
    put(lake, "observations", observation("Use uv.", day=NEW))
    (lake.root / "files").mkdir()
    (lake.root / "files/all.parquet").write_bytes(b"broken")
    assert load_settings().start_date == NEW


def test_a_mark_that_is_no_day_is_named(sessions: Path) -> None:
    session(sessions, OLD)
    look(sessions)
    path = mark()
    path.write_text("soon\n")
    assert load_settings().start_date == OLD  # by its copy
    (path.parents[1] / "backups/marks/start_date").unlink()
    with pytest.raises(SettingError, match=rf"^{path} should hold one day like 2025-01-31, not 'soon'\."):
        load_settings()


def test_the_sensor_asks_for_no_day_that_dagster_has_not_loaded(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dagster has loaded days from 2025-01-01 on, as in all tests; then older sessions made the workspace."""
    use_encoder(monkeypatch, FakeEncoder("parcels", dimension=384))
    session(sessions, OLD)
    session(sessions, date(2025, 3, 5))
    with (
        dg.DagsterInstance.ephemeral() as instance,
        dg.build_sensor_context(instance, resources={"workspace": WorkspaceResource()}) as context,
    ):
        answer = session_sensor(context)
    assert isinstance(answer, dg.SensorResult)
    assert [request.partition_key for request in answer.run_requests or []] == ["2025-03-05"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "home"


@pytest.mark.slow
def test_a_run_takes_in_sessions_of_long_ago(home: Path, sessions: Path) -> None:
    """Through Dagster in a process of its own, whose partitions begin with the oldest session."""
    write_session(
        sessions / "old.jsonl", *(user(utc(f"{OLD}T09:0{n}"), f"Never push to main, reason {n}.") for n in range(6))
    )
    result = memory(home, "run", "--sessions", str(sessions))
    assert result.returncode == 0, result.stderr
    assert (home / ".memory-pipeline/lake/start_date").read_text() == f"{OLD}\n"
    rows: list[dict[str, Any]] = memory_json(home, "sql", "select day, count(*) n from messages group by day")
    assert json.dumps(rows, default=str) == json.dumps([{"day": f"{OLD}", "n": 6}])
