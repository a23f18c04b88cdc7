"""The session sensor: a day is asked for when its sessions are idle and are not what its tables say."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.days import day_of
from memory_pipeline.defs import sensors as module
from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.defs.sensors import MAX_DAYS
from memory_pipeline.lake.store import Lake
from memory_pipeline.planning import Stages
from memory_pipeline.settings import SettingError, load_settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline_tests.conftest import conversation, user, utc, write_session
from memory_pipeline_tests.llm.openai_server import openai_server
from memory_pipeline_tests.loaded import defs, session_sensor
from memory_pipeline_tests.rows import FakeEncoder, use_encoder

DAY = date(2025, 3, 5)
NINE = utc("2025-03-05T09:00")


@pytest.fixture(autouse=True)
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_encoder(monkeypatch, FakeEncoder("invoices", "parcels", dimension=384))
    path = tmp_path / "sessions"
    path.mkdir()
    monkeypatch.setenv("MEMORY_SESSION_DIRS", str(path))
    return path


def tick(*runs: dg.DagsterRun) -> dg.SensorResult | dg.SkipReason:
    """One evaluation, with the lake and the settings of this environment, after these runs (oldest first)."""
    with dg.DagsterInstance.ephemeral() as instance:
        for run in runs:
            instance.add_run(run)
        with dg.build_sensor_context(instance, resources={"workspace": WorkspaceResource()}) as context:
            answer = session_sensor(context)
    assert isinstance(answer, dg.SensorResult | dg.SkipReason)
    return answer


def asked() -> dict[str, str]:
    """The partitions that a tick asks for, with their run keys; none when it skips."""
    answer = tick()
    if isinstance(answer, dg.SkipReason):
        return {}
    requests = answer.run_requests or []
    assert requests, "a result without requests would be a tick that says nothing"
    found = {f"{request.partition_key}": f"{request.run_key}" for request in requests}
    assert len(found) == len(requests)
    return found


def skipped() -> str:
    answer = tick()
    assert isinstance(answer, dg.SkipReason)
    return f"{answer.skip_message}"


def materialize(*days: date) -> None:
    """What a run of these days does to the tables, in every stage."""
    stages = Stages.from_settings(load_settings())
    stages.sessions.look()
    for stage in stages.all():
        for day in days:
            bring_up_to_date(stage, stages.sessions.lake, day)


# --- what is asked for ---


def test_a_new_file_asks_for_its_day_once(sessions: Path) -> None:
    write_session(sessions / "a.jsonl", *conversation(NINE))
    (key,) = (first := asked()).values()
    assert list(first) == [f"{DAY}"]
    assert key.startswith(f"{DAY}:")
    assert asked() == first  # the same key, so Dagster does not start it twice


def test_dagster_turns_the_answer_into_a_run_of_that_partition(sessions: Path) -> None:
    write_session(sessions / "a.jsonl", *conversation(NINE))
    repository = defs.get_repository_def()
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(
            instance, repository_def=repository, resources={"workspace": WorkspaceResource()}
        )
        (request,) = repository.get_sensor_def("session_sensor").evaluate_tick(context).run_requests or []
    assert request.tags["dagster/partition"] == f"{DAY}"
    assert repository.has_job("day_job")


def test_nothing_new_is_a_skip_that_says_what_was_looked_at(sessions: Path) -> None:
    write_session(sessions / "a.jsonl", *conversation(NINE))
    (sessions / "notes.json").write_text("{}")
    materialize(DAY)
    assert skipped() == "2 session files, 0 changed, 0 still to be read; no run is requested."


def test_a_grown_file_asks_again_under_another_key(sessions: Path) -> None:
    path = write_session(sessions / "a.jsonl", *conversation(NINE))
    first = asked()
    materialize(DAY)
    assert asked() == {}
    write_session(path, *conversation(NINE), user(NINE + timedelta(hours=1), "more"))
    second = asked()
    assert list(second) == list(first) == [f"{DAY}"]
    assert second != first
    materialize(DAY)
    assert asked() == {}


def test_a_run_that_died_between_two_tables_is_asked_for(sessions: Path) -> None:
    write_session(sessions / "a.jsonl", *conversation(NINE))
    materialize(DAY)
    Lake(load_settings().lake_dir).path("windows", DAY).unlink()
    assert list(asked()) == [f"{DAY}"]


def test_days_that_are_no_partition_are_not_asked_for(sessions: Path) -> None:
    """Dagster would refuse the whole tick."""
    write_session(sessions / "a.jsonl", user("2024-12-31T09:00", "x"), user(datetime(2031, 1, 1, tzinfo=UTC), "y"))
    assert asked() == {}


# --- sessions that go on ---


def test_an_active_session_waits_until_it_is_idle(sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    write_session(sessions / "a.jsonl", user(now - timedelta(minutes=1), "still typing"))
    assert asked() == {}
    monkeypatch.setenv("MEMORY_IDLE_MINUTES", "1")
    assert list(asked()) == [f"{(now - timedelta(minutes=1)).date()}"]


# --- limits of one tick ---


def sessions_on(sessions: Path, days: Iterable[date]) -> None:
    for day in days:
        write_session(sessions / f"{day}.jsonl", user(datetime(day.year, day.month, day.day, 9, tzinfo=UTC), "x"))


def test_a_few_old_days_are_asked_for_oldest_first(sessions: Path) -> None:
    days = [DAY + timedelta(days=number) for number in range(MAX_DAYS)]
    sessions_on(sessions, days)
    assert MAX_DAYS == 20
    assert list(asked()) == [f"{day}" for day in days]


def test_years_of_history_are_offered_for_a_backfill_and_recent_days_asked_for(sessions: Path) -> None:
    days = [DAY + timedelta(days=number) for number in range(MAX_DAYS + 1)]
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    sessions_on(sessions, days)
    told = skipped()
    assert f"21 days from {days[0]} to {days[-1]}" in told and "`memory backfill`" in told
    sessions_on(sessions, [yesterday])
    assert list(asked()) == [f"{yesterday}"]
    materialize(yesterday, *days[:1])
    assert list(asked()) == [f"{day}" for day in days[1:]]  # those that are left are few enough


def test_a_tick_without_time_left_says_so_and_the_next_goes_on(sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_session(sessions / "a.jsonl", *conversation(NINE))
    with monkeypatch.context() as patch:
        patch.setattr(module, "REFRESH_SECONDS", -1.0)
        assert skipped() == "1 session files, 0 changed, 1 still to be read; no run is requested."
    assert list(asked()) == [f"{DAY}"]


# --- directories ---


def test_no_session_directory_is_a_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORY_SESSION_DIRS")
    monkeypatch.setenv("MEMORY_DEFAULT_SESSION_DIRS", "true")
    assert skipped() == "0 session files, 0 changed, 0 still to be read; no run is requested."


def test_a_named_directory_that_is_missing_fails_the_tick(sessions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows red in the UI; a skip would look as if there were nothing to do."""
    monkeypatch.setenv("MEMORY_SESSION_DIRS", f"{sessions}:{sessions}/gone")
    with pytest.raises(SettingError, match="/gone is not a directory that can be read"):
        tick()


def test_a_tick_writes_only_the_catalogue(sessions: Path, tmp_path: Path) -> None:
    write_session(sessions / "a.jsonl", *conversation(NINE))
    tick()
    workspace = tmp_path / "workspace"
    written = [path.relative_to(workspace) for path in workspace.rglob("*.*") if path.suffix != ".lock"]
    assert {path.parts[0] for path in written} <= {"lake", "index"}
    assert [path for path in written if path.suffix == ".parquet"] == [Path("lake/files/all.parquet")]


def test_a_day_is_asked_for_when_a_day_that_it_looks_back_on_has_changed(sessions: Path) -> None:
    write_session(sessions / "b.jsonl", *conversation(NINE + timedelta(days=2), topic="parcels"))
    materialize(DAY + timedelta(days=2))
    write_session(sessions / "a.jsonl", *conversation(NINE, topic="invoices"))
    materialize(DAY)
    assert list(asked()) == [f"{DAY + timedelta(days=2)}"]


# --- runs that failed ---


def test_dagster_retries_a_failed_run(sessions: Path) -> None:
    write_session(sessions / "a.jsonl", *conversation(NINE))
    (request,) = tick().run_requests or []  # type: ignore[union-attr]
    assert request.tags["dagster/max_retries"] == "2"


def test_a_day_that_failed_after_its_sessions_were_stored_is_asked_for_again(sessions: Path) -> None:
    """The tables of the first stage are right; a later stage of the run was not."""
    write_session(sessions / "a.jsonl", *conversation(NINE))
    stages = Stages.from_settings(load_settings())
    stages.sessions.look()
    bring_up_to_date(stages.sessions, stages.sessions.lake, DAY)
    assert list(asked()) == [f"{DAY}"]
    materialize(DAY)
    assert asked() == {}


def test_a_day_that_waits_for_a_model_is_asked_for_once_more_on_each_new_day(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A budget begins anew with the day; asking every minute until then would do nothing."""
    write_session(sessions / "a.jsonl", *conversation(NINE))
    with openai_server("never asked") as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OBSERVER_MODEL", "openai:scripted")
        monkeypatch.setenv("OBSERVER_BASE_URL", server.url)
        monkeypatch.setenv("MEMORY_DAILY_BUDGET_TOKENS", "0")
        before = asked()[f"{DAY}"]
        materialize(DAY)
        today = asked()[f"{DAY}"]
        assert asked()[f"{DAY}"] == today != before
        tomorrow = day_of(datetime.now(UTC) + timedelta(days=1), UTC)  # type: ignore[arg-type]
        monkeypatch.setattr(module, "day_of", lambda moment, zone: tomorrow)
        assert asked()[f"{DAY}"] not in (today, before)
        assert server.requests == []
