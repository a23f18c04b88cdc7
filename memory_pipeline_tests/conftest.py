"""What every test stands on: an environment of its own, and pi sessions written in a few words.

::

    path = write_session(tmp_path / "one.jsonl", *conversation("2025-03-05T09:00:00", users=5))
    write_session(path, user("2025-03-05T09:00:00", "Never use npm."), compaction("2025-03-05T09:05:00"))
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from memory_pipeline.text import tokens
from memory_pipeline_tests import disk  # noqa: F401 - for what its import does
from memory_pipeline_tests.cli import command
from memory_pipeline_tests.examples import THOROUGH
from memory_pipeline_tests.prepared import shared_by_workers

if TYPE_CHECKING:
    from memory_pipeline_tests.lake.object_server import ObjectServer

# `make test` and CI take the first, and `make test-nightly` the second; `times` goes by them
settings.register_profile("fast", max_examples=25, deadline=None)
settings.register_profile("thorough", max_examples=THOROUGH, deadline=None)
settings.load_profile("fast")

CLEANED = (
    *("MEMORY_", "PI_", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_", "OPENCODE_", "XDG_DATA_HOME", "XDG_CONFIG_HOME"),
    *("DAGSTER_HOME", "DAGSTER_POSTGRES_", "EMBEDDING_MODEL", "QDRANT_", "TODOIST_"),
    *("OBSERVER_", "REFLECTOR_", "OPENAI_", "ANTHROPIC_", "GOOGLE_", "OLLAMA_"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
)
"""Variables that begin so would let the machine's own sessions, settings or keys into a test, or send what a test asks
of this machine through a proxy."""
PARTITIONED_BY = {"MEMORY_TIMEZONE": "UTC", "MEMORY_START_DATE": "2025-01-01"}
SHARED = Path(__file__).parents[2] / "shared"


def _cleaned() -> list[str]:
    return [name for name in os.environ if name.startswith(CLEANED)]


# memory_pipeline.defs.orchestration makes its partitions from the settings when it is imported, before any fixture
for _name in _cleaned():
    del os.environ[_name]
os.environ.update(PARTITIONED_BY)


@pytest.fixture(autouse=True)
def no_instance_of_before() -> None:
    """Dagster 1.13 keeps the storage of an instance that was left in another order than it was entered, and looks for
    the instance in every later load of definitions."""
    if module := sys.modules.get("dagster._core.storage.defs_state.base"):
        module._current_storage.set(None)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the homes of tests lie: `mktemp` looks through all folders that it has made, once for each test."""
    folder = shared_by_workers(tmp_path_factory) / "vectors"
    folder.mkdir(exist_ok=True)
    command.VECTORS[:] = [folder]
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def environment(homes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine is read, and nothing is written outside of the test's own directories."""
    for name in _cleaned():
        monkeypatch.delenv(name)
    monkeypatch.setattr(tokens._Method, "current", tokens.BY_SCRIPT)
    monkeypatch.setenv("HOME", tempfile.mkdtemp(dir=homes))
    monkeypatch.setenv("MEMORY_WORKSPACE", str(tmp_path / "workspace"))
    monkeypatch.setenv("MEMORY_DEFAULT_SESSION_DIRS", "false")
    for name, value in PARTITIONED_BY.items():
        monkeypatch.setenv(name, value)


def pytest_report_header() -> list[str]:
    versions = ", ".join(f"{name} {version(name)}" for name in ("dagster", "polars", "duckdb"))
    return [versions, f"shared fixtures: {SHARED if SHARED.is_dir() else 'not there, their tests skip'}"]


def utc(text: str) -> datetime:
    """A moment written as ISO 8601, in UTC unless it says otherwise."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Entry:
    """One record of a pi session, still without the id of the record before it."""

    at: datetime
    fields: dict[str, Any]
    id: str | None = None


def user(at: str | datetime, text: str, id: str | None = None) -> Entry:
    return _message(at, id, {"role": "user", "content": [{"type": "text", "text": text}]})


def assistant(at: str | datetime, text: str, id: str | None = None) -> Entry:
    return _message(at, id, {"role": "assistant", "content": [{"type": "text", "text": text}]})


def tool(at: str | datetime, text: str, id: str | None = None, *, name: str = "bash", is_error: bool = False) -> Entry:
    """The result of a tool call."""
    content = [{"type": "text", "text": text}]
    return _message(at, id, {"role": "toolResult", "toolName": name, "content": content, "isError": is_error})


def compaction(at: str | datetime, kept: str | None = None, id: str | None = None) -> Entry:
    """All before the record with the id `kept` (None: all before this one) is summarised away."""
    fields = {"type": "compaction", "summary": "What was said so far.", "firstKeptEntryId": kept, "tokensBefore": 100}
    return Entry(_moment(at), fields, id)


def conversation(start: str | datetime, users: int = 5, topic: str = "the parcel service") -> list[Entry]:
    """A person and a model in turn, a minute apart; ids begin with the topic's words."""
    first = _moment(start)
    found = []
    for turn in range(users):
        asked, name = first + timedelta(minutes=2 * turn), f"{topic} {turn}"
        found.append(user(asked, f"Please look at {topic}, part {turn}.", f"{name} asked"))
        found.append(assistant(asked + timedelta(minutes=1), f"I looked at {topic}, part {turn}.", f"{name} answered"))
    return found


def write_session(path: Path, *entries: Entry, session_id: str | None = None, cwd: str = "/src/parcels") -> Path:
    """A pi v3 session file with these entries; its session id is the file's stem unless another is given.

    An entry without an id gets its number in the file, so that a longer file has the same ids at its beginning.
    """
    start = min((entry.at for entry in entries), default=datetime(2025, 1, 1, tzinfo=UTC))
    header = {"type": "session", "version": 3, "id": session_id or path.stem, "timestamp": _text(start), "cwd": cwd}
    lines, parent = [header], None
    for number, entry in enumerate(entries):
        name = entry.id or f"{session_id or path.stem}-{number}"
        lines.append({"id": name, "parentId": parent, "timestamp": _text(entry.at), **entry.fields})
        parent = name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return path


@pytest.fixture
def as_nobody() -> Iterator[None]:
    """From where a test asks for it, it runs without root's right to read everything; ask after `open_tmp`."""
    if os.getuid():
        yield
        return
    os.setresuid(65534, 65534, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


@pytest.fixture
def open_tmp() -> Iterator[Path]:
    """A directory that any user may write to; those of pytest may be entered by their owner only."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o777)
    yield path
    for folder in [path, *path.rglob("*")]:
        if not folder.is_symlink():
            folder.chmod(0o755)
    shutil.rmtree(path)


def _message(at: str | datetime, id: str | None, message: dict[str, Any]) -> Entry:
    moment = _moment(at)
    message["timestamp"] = round(moment.timestamp() * 1000)
    return Entry(moment, {"type": "message", "message": message}, id)


def _moment(at: str | datetime) -> datetime:
    return utc(at) if isinstance(at, str) else at


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, for pages of our own; a Playwright `Browser`."""
    from playwright.sync_api import sync_playwright

    from memory_pipeline_tests.test_browser import BROWSER_ARGS, find_chromium

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=find_chromium(), args=BROWSER_ARGS)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def running_server() -> Iterator[ObjectServer]:
    from memory_pipeline_tests.lake.object_server import object_storage  # the client of a bucket is an extra

    with object_storage() as server:
        yield server


@pytest.fixture
def server(running_server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    """Object storage on loopback, which commands find by their environment."""
    running_server.calm()
    for name, value in running_server.env.items():
        monkeypatch.setenv(name, value)
    return running_server
