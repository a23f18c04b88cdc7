"""A run that failed is told to a real server on loopback and to a notifier on PATH."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memory_pipeline.defs.placement import Placement, WorkspaceResource
from memory_pipeline.defs.sensors import failure_sensor, tell
from memory_pipeline.settings import SettingError, load_settings
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import changed, workspace

SECRET = "ghp_M4deUpT0kenN0tRea11234567890abcdefgh"


class Receiver(HTTPServer):
    """Keeps what is posted to it; answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.got: list[dict[str, Any]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook/t0ken"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.server.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@dg.op
def breaks() -> None:
    raise ValueError(f"no room for {SECRET}")


@dg.job
def breaking() -> None:
    breaks()


def told_of_a_failure() -> Any:
    sensor = failure_sensor(Placement(load_settings()))
    with dg.DagsterInstance.ephemeral() as instance:
        result = breaking.execute_in_process(instance=instance, raise_on_error=False)
        (event,) = [e for e in result.all_events if e.event_type is dg.DagsterEventType.RUN_FAILURE]
        context = dg.build_run_status_sensor_context(
            "tell_failures", event, instance, result.dagster_run, resources={"workspace": WorkspaceResource()}
        ).for_run_failure()
        return sensor(context)


@pytest.fixture
def posted(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Receiver:
    monkeypatch.setenv("MEMORY_WORKSPACE", f"{tmp_path / 'ws'}")
    monkeypatch.setenv("MEMORY_NOTIFY", receiver.url)
    return receiver


def test_the_address_gets_what_failed_without_secrets(posted: Receiver) -> None:
    told_of_a_failure()
    (got,) = posted.got
    assert got["text"].startswith("memory_pipeline: breaking failed: ")
    assert "no room for" in got["text"]
    assert SECRET not in got["text"]


def test_an_address_that_refuses_is_a_red_tick(posted: Receiver) -> None:
    posted.status = 500
    with pytest.raises(Exception, match="500") as caught:
        told_of_a_failure()
    assert "t0ken" not in f"{caught.value}"


def test_off_tells_nobody(posted: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_NOTIFY", "off")
    told_of_a_failure()
    assert posted.got == []


def test_the_sensor_is_on_where_somebody_is_named(posted: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    assert failure_sensor(Placement(load_settings())).default_status is dg.DefaultSensorStatus.RUNNING
    monkeypatch.delenv("MEMORY_NOTIFY")
    assert failure_sensor(Placement(load_settings())).default_status is dg.DefaultSensorStatus.STOPPED


def test_the_desktop_is_told_by_its_own_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = changed(workspace(tmp_path)[0], notify="desktop")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("PATH", f"{tmp_path}")
    with pytest.raises(dg.Failure, match="notify-send"):
        tell(settings, "x")
    program = tmp_path / "notify-send"
    program.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {tmp_path}/said\n')
    program.chmod(0o755)
    tell(settings, "day_job failed: $(touch owned)")
    assert (
        tmp_path / "said"
    ).read_text() == "--app-name|memory_pipeline|memory_pipeline|day_job failed: $(touch owned)|"


@each("value", ["yes", "ftp://x", "https://", "http://a b"])
def test_another_value_is_refused(value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MEMORY_WORKSPACE", f"{tmp_path}")
    monkeypatch.setenv("MEMORY_NOTIFY", value)
    with pytest.raises(SettingError, match="MEMORY_NOTIFY"):
        load_settings()
