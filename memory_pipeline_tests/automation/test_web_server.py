"""Dagster's UI answers its own pages and nobody else's, and takes nothing from the folder that it is started in."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.defs.web_server import GuardedApp
from memory_pipeline_tests.cases import each

OWN = {"host": "127.0.0.1:3000"}
JSON_HEADER = {"content_type": "application/json; charset=utf-8"}


async def _app(scope: Any, receive: Any, send: Any) -> None:
    headers = [(b"content-security-policy", b"script-src 'nonce-1';"), (b"x-other", b"1")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"answer"})


def ask(method: str = "GET", path: str = "/", query: str = "", kind: str = "http", **headers: str) -> list[Any]:
    """What the guarded application sends."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": f"{kind}.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    given = OWN | {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
    }
    asyncio.run(GuardedApp(_app)(scope, receive, send))
    return sent


def status(**request: Any) -> int:
    return int(ask(**request)[0]["status"])


@each("host", ["127.0.0.1:3000", "localhost:3000", "[::1]:3000", "LOCALHOST:8080", "localhost"])
def test_its_own_names_are_answered(host: str) -> None:
    assert status(host=host) == 200
    assert status(host=host, method="POST", path="/graphql", origin=f"http://{host}", **JSON_HEADER) == 200


@each(
    "host",
    ["evil.example", "evil.example:3000", "127.0.0.1.evil.example", "localhost@evil.example", "", "[", "10.0.0.1"],
)
def test_no_other_name_is(host: str) -> None:
    assert status(host=host) == 403
    assert ask(host=host, kind="websocket") == [{"type": "websocket.close", "code": 1008, "reason": "refused"}]


@each("origin", ["http://evil.example", "null", "http://127.0.0.1:8000", "http://localhost:3000", ""])
def test_no_other_page_may_ask(origin: str) -> None:
    assert status(origin=origin) == 403
    assert status(origin=origin, method="POST", path="/graphql", **JSON_HEADER) == 403
    assert ask(origin=origin, kind="websocket")[0]["type"] == "websocket.close"


def test_graphql_is_not_asked_by_get_which_any_image_can_do() -> None:
    assert status(path="/graphql", query="query=mutation{launchRun}") == 405
    assert status(path="/graphql") == 200


@each("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
@each("path", ["/graphql", "/report_asset_check/x"])
def test_a_form_of_another_page_changes_nothing(kind: str, path: str) -> None:
    assert status(method="POST", path=path, content_type=kind) == 415


def test_nothing_of_other_hosts_is_shown() -> None:
    (policy,) = [value for name, value in ask()[0]["headers"] if name == b"content-security-policy"]
    assert policy.startswith(b"script-src 'nonce-1'; img-src 'self' data: blob:;")
    assert (b"x-other", b"1") in ask()[0]["headers"]


class Ui:
    """`memory ui` in a folder whose owner wishes us ill."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.workspace = folder, folder / "workspace"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        here = folder / "cloned"
        here.mkdir(exist_ok=True)
        (here / ".env").write_text(f"OBSERVER_MODEL={folder / 'evil.sh'}\nMEMORY_EVIL=1\n", "utf-8")
        for name in ("memory_pipeline.py", "dagster.py", "sitecustomize.py"):
            (here / name).write_text(f"open({str(folder / 'pwned')!r}, 'w').close()\n", "utf-8")
        self.log = folder / "ui.log"
        env = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")} | {
            "HOME": f"{folder}",
            "MEMORY_WORKSPACE": "../workspace",
            "MEMORY_DEFAULT_SESSION_DIRS": "false",
            "MEMORY_SESSION_DIRS": "../sessions",
        }
        memory = Path(sys.executable).with_name("memory")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [memory, "ui", "--port", f"{self.port}"],
                cwd=here,
                env=env,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait(self) -> None:
        deadline = time.monotonic() + 300
        while True:
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/server_info", timeout=5):
                return
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.3)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def graphql(self, query: str) -> Any:
        body = json.dumps({"query": query}).encode()
        request = urllib.request.Request(f"{self.url}/graphql", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["data"]

    def processes(self) -> list[int]:
        """Of the session that the command leads, the zombies aside."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[3]) == self.process.pid and fields[0] != "Z":
                    found.append(int(stat.parent.name))
        return found


@pytest.fixture
def ui(tmp_path: Path) -> Iterator[Ui]:
    (tmp_path / "sessions").mkdir()
    ui = Ui(tmp_path)
    try:
        ui.wait()
        yield ui
    finally:
        for process in ui.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        ui.process.wait(30)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")
def test_the_folder_it_is_started_in_counts_for_nothing_and_it_leaves_nothing_behind(ui: Ui, tmp_path: Path) -> None:
    assert (tmp_path / "workspace/dagster").is_dir()
    names = ui.graphql("{ workspaceOrError { ... on Workspace { locationEntries { loadStatus name } } } }")
    assert names["workspaceOrError"]["locationEntries"] == [
        {"loadStatus": "LOADED", "name": "memory_pipeline.definitions"}
    ]
    assert not (tmp_path / "pwned").exists()
    for process in ui.processes():
        environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        assert Path(f"/proc/{process}/cwd").resolve() != tmp_path / "cloned"
        assert not [pair for pair in environment if pair.startswith(b"OBSERVER_MODEL=")]
    assert "Loaded environment variables" not in ui.log.read_text()

    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(f"{ui.url}/graphql?query=mutation%7BwipeAssets%7D", timeout=60)
    foreign = urllib.request.Request(f"{ui.url}/server_info", headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(foreign, timeout=60)

    second = Ui(tmp_path)
    assert second.process.wait(120) == 1
    assert f"The UI of {tmp_path / 'workspace'} is already open" in second.log.read_text().replace("\n", " ")

    assert len(ui.processes()) > 2
    os.kill(ui.process.pid, signal.SIGKILL)
    ui.process.wait(30)
    deadline = time.monotonic() + 180
    while left := ui.processes():
        assert time.monotonic() < deadline, left
        time.sleep(0.5)
