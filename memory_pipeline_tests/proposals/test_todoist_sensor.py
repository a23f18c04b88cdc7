"""The sensor on Todoist: a run where there is something to do, a sentence where there is not, and no loop of either."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.defs.jobs import TODOIST_JOB
from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.loaded import defs, todoist_sensor
from memory_pipeline_tests.proposals.todoist_server import TOKEN, Refuse, TodoistServer, todoist_server
from memory_pipeline_tests.rows import bytes_of, proposal, put, workspace
from memory_pipeline_tests.test_definitions import in_a_new_process


class Watch:
    """A workspace with two proposals in review, the sensor and its job."""

    def __init__(self, folder: Path, server: TodoistServer) -> None:
        self.server = server
        self.settings, self.lake = workspace(folder / "workspace")
        self.workspace = Workspace(self.settings, self.lake)
        put(self.lake, "proposals", proposal(1, "Use uv."), proposal(2, "Never use npm."))
        reconcile(self.workspace, datetime.now(UTC))
        self.instance = dg.DagsterInstance.ephemeral()
        self.cursor: str | None = None

    def tick(self) -> dg.SensorResult | dg.SkipReason:
        context = dg.build_sensor_context(
            self.instance, cursor=self.cursor, resources={"workspace": WorkspaceResource()}
        )
        result = todoist_sensor(context)
        self.cursor = context.cursor
        assert isinstance(result, dg.SensorResult | dg.SkipReason)
        return result

    def asked(self) -> list[str | None]:
        """The run keys of a tick."""
        result = self.tick()
        return [] if isinstance(result, dg.SkipReason) else [r.run_key for r in result.run_requests or []]

    def told(self) -> str:
        """What a tick says that asks for nothing."""
        result = self.tick()
        assert isinstance(result, dg.SkipReason)
        return result.skip_message or ""

    def run(self, *, succeeds: bool = True) -> None:
        result = defs.resolve_job_def(TODOIST_JOB).execute_in_process(
            instance=self.instance, resources={"workspace": WorkspaceResource()}, raise_on_error=False
        )
        assert result.success is succeeds


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    monkeypatch.setenv("MEMORY_TODOIST", "true")
    monkeypatch.setenv("TODOIST_API_TOKEN", TOKEN)
    with todoist_server() as server:
        monkeypatch.setattr("memory_pipeline.proposals.todoist.client.URL", server.url)
        made = Watch(tmp_path, server)
        yield made
        made.instance.dispose()


def test_it_is_off_until_it_is_switched_on(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEMORY_TODOIST")
    assert "MEMORY_TODOIST=true" in watch.told()
    watch.run(succeeds=False)
    assert watch.server.requests == []


LOADED = """
import json
from memory_pipeline.definitions import defs
print(json.dumps(defs().get_sensor_def("todoist_sensor").default_status.value))
"""


@pytest.mark.slow
@each(("switch", "status"), [("true", "RUNNING"), ("false", "STOPPED")])
def test_it_runs_by_itself_where_it_is_switched_on(tmp_path: Path, switch: str, status: str) -> None:
    assert in_a_new_process(LOADED, tmp_path, MEMORY_TODOIST=switch) == status


def test_proposals_in_review_ask_for_a_run_that_makes_the_tasks(watch: Watch) -> None:
    (key,) = watch.asked()
    assert watch.asked() == [key]  # the same key, so Dagster does not start it twice
    watch.run()
    assert watch.server.open() == ["Use uv.", "Never use npm."]
    assert "none of them was decided" in watch.told()


def test_a_tick_is_one_request(watch: Watch) -> None:
    watch.run()
    watch.server.complete("Use uv.")
    before = len(watch.server.requests)
    assert len(watch.asked()) == 1
    assert [request.call for request in watch.server.requests[before:]] == ["GET /tasks"]


def test_a_decision_asks_for_a_run_that_promotes_it(watch: Watch) -> None:
    first = watch.asked()
    watch.run()
    watch.server.complete("Use uv.")
    assert watch.asked() != first
    watch.run()
    assert "Use uv." in watch.settings.memory_file.read_text("utf-8")
    assert watch.asked() == []


def test_what_fails_is_asked_for_again_in_the_next_hour(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    before = watch.asked()
    later = datetime.now(UTC) + timedelta(hours=1)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return later

    monkeypatch.setattr("memory_pipeline.defs.sensors.datetime", Clock)
    assert watch.asked() not in ([], before)


def test_a_request_to_wait_holds_for_the_ticks_after(watch: Watch) -> None:
    watch.server.fail("GET /tasks", Refuse(429, {"Retry-After": "300"}))
    assert "wait 300 seconds" in watch.told()
    assert "asked to wait until" in watch.told()
    assert len(watch.server.requests) == 1
    watch.cursor = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    assert len(watch.asked()) == 1


def test_a_server_that_is_down_is_a_sentence_and_the_next_tick_asks_again(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as down:
        down.setattr("memory_pipeline.proposals.todoist.client.URL", "http://127.0.0.1:1")
        assert "did not answer" in watch.told()
        watch.run(succeeds=False)
    assert len(watch.asked()) == 1


@pytest.mark.parametrize("token", ["", "wrong-0815"])
def test_a_wrong_token_is_a_red_tick_that_names_the_setting(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    monkeypatch.setenv("TODOIST_API_TOKEN", token)
    with pytest.raises(dg.Failure) as caught:
        watch.tick()
    assert "TODOIST_API_TOKEN" in (caught.value.description or "")
    assert "wrong-0815" not in f"{caught.value.description}"
    watch.run(succeeds=False)


def test_the_token_is_in_no_event_and_no_file(
    tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Neither when all goes well nor when Todoist refuses it."""
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(str(tmp_path / "dagster")) as instance:
        watch.instance = instance
        watch.run()
        watch.server.complete("Use uv.")
        watch.run()
        watch.server.fail("*", Refuse(403, body=f"no {TOKEN} here"), times=2)
        watch.run(succeeds=False)
        with contextlib.suppress(dg.Failure):
            watch.tick()
        runs = instance.get_runs()
        assert len(runs) == 3
        events = "".join(f"{entry.to_json()}" for run in runs for entry in instance.all_logs(run.run_id))
        assert "sync_todoist" in events
        assert TOKEN not in events
    assert [name for name, data in bytes_of(tmp_path).items() if TOKEN.encode() in data] == []
    printed = capfd.readouterr()
    assert TOKEN not in printed.out + printed.err
