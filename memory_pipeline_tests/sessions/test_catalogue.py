"""The catalogue: every file is read once, again when it changed, and none of them can stop the others."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.harnesses.model import ParsedSession, Source
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.sessions import catalogue as module
from memory_pipeline.sessions import reading
from memory_pipeline.sessions.catalogue import Catalogue, Refresh
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.file_rows import PROBLEMS_KEPT
from memory_pipeline.settings import Settings, load_settings
from memory_pipeline_tests.conftest import assistant, conversation, user, utc, write_session

DAY = date(2025, 3, 5)
NINE = utc("2025-03-05T09:00")


class Workspace:
    """A directory of session files and the catalogue over it; `reads` are the files that were parsed."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sessions = root / "sessions"
        self.sessions.mkdir(parents=True)
        self.reads: list[str] = []
        reads = self.reads

        class Counting(reading.Reading):
            def read(self) -> ParsedSession:
                reads.append(Path(self.transcript.source.path).name)
                return super().read()

        self.monkeypatch = monkeypatch
        monkeypatch.setattr(reading, "Reading", Counting)

    def catalogue(self, **settings: Any) -> Catalogue:
        """As a new process sees it."""
        self.monkeypatch.setattr(module, "_READINGS", reading.Readings())
        chosen: Settings = load_settings().model_copy(update=settings)
        return Catalogue(Lake(chosen.lake_dir), chosen)

    def look(self, *, seconds: float | None = None, **settings: Any) -> tuple[Catalogue, Refresh, list[str]]:
        """A refresh by a new process: the catalogue, what it says of itself, and the files that it read."""
        catalogue = self.catalogue(**settings)
        self.reads.clear()
        seen = catalogue.refresh(find_sources([self.sessions]), seconds=seconds)
        return catalogue, seen, list(self.reads)

    def write(self, name: str, content: bytes) -> Path:
        path = self.sessions / name
        path.write_bytes(content)
        return path

    def reason(self, name: str) -> str | None:
        reason: str | None = self.catalogue().rows[str(self.sessions / name)]["reason"]
        return reason


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    return Workspace(tmp_path, monkeypatch)


# --- what is read, and when ---


def test_each_file_is_read_once(workspace: Workspace) -> None:
    for name in "ab":
        write_session(workspace.sessions / f"{name}.jsonl", *conversation(NINE))
    assert workspace.look()[1:] == (Refresh(files=2, changed=2), ["a.jsonl", "b.jsonl"])
    assert workspace.look()[1:] == (Refresh(files=2, changed=0), [])


def test_a_look_that_finds_nothing_new_writes_nothing(workspace: Workspace) -> None:
    write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    catalogue, *_ = workspace.look()
    before = catalogue.lake.path("files").stat()
    workspace.look()
    assert catalogue.lake.path("files").stat() == before


def test_a_file_that_grew_is_read_again_and_no_other(workspace: Workspace) -> None:
    for name in "ab":
        write_session(workspace.sessions / f"{name}.jsonl", *conversation(NINE, users=2))
    before = workspace.look()[0].files_of(DAY)
    write_session(workspace.sessions / "b.jsonl", *conversation(NINE, users=3))
    catalogue, seen, reads = workspace.look()
    assert (seen.changed, reads) == (1, ["b.jsonl"])
    after = catalogue.files_of(DAY)
    assert {Path(path).name for path in after if after[path] != before[path]} == {"b.jsonl"}
    assert catalogue.rows[str(workspace.sessions / "b.jsonl")]["messages"] == 6


def test_growth_on_a_later_day_leaves_the_digest_of_the_earlier(workspace: Workspace) -> None:
    """A session that goes on for weeks must not make all of its days out of date each time."""
    path = write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    before = workspace.look()[0].files_of(DAY)
    write_session(path, *conversation(NINE), user(NINE + timedelta(days=1), "more"))
    catalogue, *_ = workspace.look()
    assert catalogue.files_of(DAY) == before
    assert list(catalogue.files_of(DAY + timedelta(days=1))) == [str(path)]


def test_a_file_that_is_reached_by_another_way_is_not_read_again(workspace: Workspace, tmp_path: Path) -> None:
    """Neither a link that comes first nor the folder itself, once it is read too, makes new sessions."""
    write_session(tmp_path / "elsewhere/a.jsonl", *conversation(NINE))
    (workspace.sessions / "m").symlink_to(tmp_path / "elsewhere")
    catalogue, seen, reads = workspace.look()
    assert (list(catalogue.rows), seen, reads) == (
        [str(workspace.sessions / "m/a.jsonl")],
        Refresh(files=1, changed=1),
        ["a.jsonl"],
    )
    rows = catalogue.rows
    (workspace.sessions / "b").symlink_to(tmp_path / "elsewhere")
    assert workspace.look()[1:] == (Refresh(files=1, changed=0), [])
    (catalogue := workspace.catalogue()).refresh(find_sources([tmp_path]))
    assert catalogue.rows == rows
    (workspace.sessions / "m").unlink()  # then it is another one, with the same messages
    catalogue, seen, _ = workspace.look()
    assert seen == Refresh(files=1, changed=1)
    assert list(catalogue.files_of(DAY)) == [str(workspace.sessions / f"{name}/a.jsonl") for name in "bm"]


def test_a_file_that_vanished_keeps_its_row_but_is_not_present(workspace: Workspace) -> None:
    path = write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    workspace.look()
    path.unlink()
    catalogue, seen, _ = workspace.look()
    assert seen == Refresh(files=0, changed=0)
    assert list(catalogue.files_of(DAY)) == [str(path)]
    assert str(path) not in catalogue.present
    assert catalogue.session(str(path)) is None


def test_a_file_that_vanishes_while_the_directory_is_read_is_no_error(workspace: Workspace) -> None:
    catalogue = workspace.catalogue()
    gone = write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    write_session(workspace.sessions / "b.jsonl", *conversation(NINE))
    sources = list(find_sources([workspace.sessions]))
    gone.unlink()
    assert catalogue.refresh(sources) == Refresh(files=2, changed=2)
    assert catalogue.rows[str(gone)]["reason"] == "The file cannot be read: no such file or directory."
    write_session(gone, *conversation(NINE))
    assert catalogue.refresh(find_sources([workspace.sessions])) == Refresh(files=2, changed=1)  # it came back


@pytest.mark.parametrize("setting", [{"timezone": "Asia/Tokyo"}, {"tool_text_limit": 200}])
def test_a_setting_that_changes_what_is_read_makes_every_file_new(
    setting: dict[str, Any], workspace: Workspace
) -> None:
    write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    workspace.look()
    assert workspace.look(**setting)[1].changed == 1
    assert workspace.look(**setting)[1].changed == 0


def test_another_timezone_puts_messages_on_other_days(workspace: Workspace) -> None:
    write_session(workspace.sessions / "a.jsonl", user("2025-03-05T20:00", "late"))
    assert workspace.look()[0].days() == [DAY]
    catalogue, *_ = workspace.look(timezone="Asia/Tokyo")
    assert catalogue.days() == [DAY, DAY + timedelta(days=1)]  # the day that they left is to be emptied
    path = str(workspace.sessions / "a.jsonl")
    assert [catalogue.messages_of(path, day) for day in catalogue.days()] == [0, 1]


def test_the_catalogue_can_be_deleted(workspace: Workspace) -> None:
    write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    catalogue, *_ = workspace.look()
    stored = catalogue.lake.path("files").read_bytes()
    shutil.rmtree(catalogue.lake.root / "files")
    assert workspace.look()[2] == ["a.jsonl"]
    assert catalogue.lake.path("files").read_bytes() == stored


def test_when_the_time_is_up_the_rest_is_left_for_the_next_look(workspace: Workspace) -> None:
    for name in "abc":
        write_session(workspace.sessions / f"{name}.jsonl", *conversation(NINE))
    assert workspace.look(seconds=-1)[1:] == (Refresh(files=3, changed=0, left=3), [])
    assert workspace.look(seconds=60)[1] == Refresh(files=3, changed=3, left=0)
    write_session(workspace.sessions / "b.jsonl", *conversation(NINE, users=6))
    catalogue, seen, _ = workspace.look(seconds=-1)
    assert seen == Refresh(files=3, changed=0, left=1)  # only what changed has to be read
    assert len(catalogue.files_of(DAY)) == 3


def test_what_was_read_before_the_time_was_up_is_kept(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [write_session(workspace.sessions / f"{name}.jsonl", *conversation(NINE)) for name in "ab"]
    catalogue = workspace.catalogue()

    def slowly() -> Iterator[Source]:
        yield reading.source_of(paths[0])
        clock[0] += 3600
        yield reading.source_of(paths[1])

    clock = [0.0]
    monkeypatch.setattr("memory_pipeline.sessions.catalogue.time.monotonic", lambda: clock[0])
    assert catalogue.refresh(slowly(), seconds=60) == Refresh(files=2, changed=1, left=1)
    assert list(workspace.catalogue().rows) == [str(paths[0])]


def test_every_file_that_is_read_is_reported(workspace: Workspace) -> None:
    paths = [write_session(workspace.sessions / f"{name}.jsonl", *conversation(NINE)) for name in "ab"]
    reported: list[Source] = []
    workspace.catalogue().refresh(find_sources([workspace.sessions]), on_file=reported.append)
    assert reported == [reading.source_of(path) for path in paths]


# --- files that are none ---

GEMINI = b'{"sessionId": "x", "projectHash": "y", "messages": []}'
BAD = [
    (b"", "The file is empty."),
    (b"\n\n", "It is not JSON."),
    (b"# Notes\n", "It is not JSON."),
    (bytes(range(256)) * 10, "It is not JSON."),
    (b"[" * 100_000, "It is not JSON."),
    (b'{"a":' * 5_000, "It is not JSON."),
    (b'{"name": "a package"}', "It is JSON, but not a session of a known coding agent."),
    (b"[1, 2]", "It is JSON, but not a session of a known coding agent."),
    (GEMINI, "It is a gemini file, but has no messages."),
    (
        b'{"type":"session","version":3,"id":"x","timestamp":"2025-03-05T09:00:00Z","cwd":"/"}\n',
        "It is a pi file, but has no messages.",
    ),
]


@pytest.mark.parametrize(("content", "reason"), BAD)
def test_a_file_that_is_no_session_says_why_and_does_not_stop_the_others(
    content: bytes, reason: str, workspace: Workspace
) -> None:
    workspace.write("a.jsonl", content)
    write_session(workspace.sessions / "b.jsonl", *conversation(NINE))
    catalogue, seen, _ = workspace.look()
    assert seen == Refresh(files=2, changed=2)
    assert workspace.reason("a.jsonl") == reason
    assert list(catalogue.files_of(DAY)) == [str(workspace.sessions / "b.jsonl")]
    assert workspace.look()[1].changed == 0  # a bad file is not read again either


def test_a_bad_file_that_becomes_a_session_is_read(workspace: Workspace) -> None:
    """A harness makes the file first and writes into it later."""
    workspace.write("a.jsonl", b"")
    workspace.look()
    write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    catalogue, *_ = workspace.look()
    assert (workspace.reason("a.jsonl"), catalogue.days()) == (None, [DAY])


def test_broken_lines_of_a_session_are_counted_and_the_rest_is_read(workspace: Workspace) -> None:
    path = write_session(workspace.sessions / "a.jsonl", *conversation(NINE, users=1))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b"{broken\n" * 100 + b"".join(lines[1:]) + b'{"type":"message","id"')
    catalogue, *_ = workspace.look()
    row = catalogue.rows[str(path)]
    assert (row["reason"], row["messages"]) == (None, 2)
    assert len(row["problems"]) == PROBLEMS_KEPT
    assert row["problems"][0]["line"] == 2


def test_unknown_record_types_are_counted(workspace: Workspace) -> None:
    path = write_session(workspace.sessions / "a.jsonl", *conversation(NINE, users=1))
    with path.open("ab") as file:
        file.write(b'{"type":"hologram","id":"h","timestamp":"2025-03-05T09:30:00Z"}\n' * 2)
    workspace.look()
    assert workspace.catalogue().rows[str(path)]["unknown_records"] == [{"type": "hologram", "count": 2}]


@pytest.mark.parametrize("where", ["header", "type"])
def test_text_that_no_table_can_hold_does_not_stop_the_others(where: str, workspace: Workspace) -> None:
    """A lone surrogate is valid in JSON but not in UTF-8."""
    path = write_session(workspace.sessions / "a.jsonl", *conversation(NINE, users=1))
    lone = r"\ud800"
    lines = path.read_text().splitlines()
    if where == "header":
        lines[0] = lines[0].replace('"id": "a"', f'"id": "{lone}a"').replace("/src/parcels", f"/src/{lone}")
    else:
        lines.append(f'{{"type":"{lone}x","id":"h","timestamp":"2025-03-05T09:30:00Z"}}')
    path.write_text("\n".join(lines))
    write_session(workspace.sessions / "b.jsonl", *conversation(NINE))
    assert len(workspace.look()[0].files_of(DAY)) == 2


def test_a_name_that_is_not_utf_8_is_refused_and_does_not_stop_the_others(workspace: Workspace) -> None:
    """No table can hold the name, so no row could be traced back to the file."""
    good = write_session(workspace.sessions / "b.jsonl", *conversation(NINE))
    strange = Path(os.fsdecode(os.fsencode(workspace.sessions) + b"/\xff.jsonl"))
    shutil.copyfile(good, strange)
    catalogue, seen, _ = workspace.look()
    assert seen == Refresh(files=2, changed=2)
    assert list(catalogue.files_of(DAY)) == [str(good)]
    assert workspace.reason("\\udcff.jsonl") == "The file's name is not UTF-8; rename it to have it read."
    assert workspace.look()[1].changed == 0


def test_a_file_that_may_not_be_read_is_read_once_it_may(
    open_tmp: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Giving the right changes neither size nor time of the file, so it is tried each time."""
    monkeypatch.setenv("MEMORY_WORKSPACE", str(open_tmp / "workspace"))
    workspace = Workspace(open_tmp, monkeypatch)
    path = write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    path.chmod(0o000)
    if not os.getuid():
        os.chown(path, 65534, -1)
    request.getfixturevalue("as_nobody")
    workspace.look()
    assert workspace.reason("a.jsonl") == "The file cannot be read: permission denied."
    path.chmod(0o600)
    assert workspace.look()[2] == ["a.jsonl"]
    assert workspace.reason("a.jsonl") is None
    assert workspace.look()[1].changed == 0


# --- days ---


def test_days_before_the_start_date_and_in_the_future_are_left_out(workspace: Workspace) -> None:
    now = datetime.now(UTC)
    moments = [utc("2024-12-31T23:59"), utc("2025-01-01T00:00"), now, now + timedelta(days=2)]
    write_session(workspace.sessions / "a.jsonl", *(user(moment, "x") for moment in moments))
    assert workspace.look()[0].days() == [date(2025, 1, 1), now.date()]
    assert workspace.look(start_date=date(2024, 12, 31))[0].days()[0] == date(2024, 12, 31)


# --- idle sessions ---


def test_a_session_is_idle_once_nothing_was_said_for_the_configured_time(workspace: Workspace) -> None:
    path = str(write_session(workspace.sessions / "a.jsonl", user(NINE, "x"), assistant("2025-03-05T09:05", "y")))
    catalogue, *_ = workspace.look(idle_minutes=10)
    assert not catalogue.is_idle(path, NINE.date(), utc("2025-03-05T09:14:59"))
    assert catalogue.is_idle(path, NINE.date(), utc("2025-03-05T09:15:00"))


def test_a_session_of_the_future_is_idle_by_the_time_of_its_file(workspace: Workspace) -> None:
    """A clock that ran ahead must not keep a session active for years."""
    path = write_session(workspace.sessions / "a.jsonl", user("2031-01-01T00:00", "x"))
    os.utime(path, (NINE.timestamp(), NINE.timestamp()))
    catalogue, *_ = workspace.look(idle_minutes=10)
    assert not catalogue.is_idle(str(path), NINE.date(), NINE + timedelta(minutes=9))
    assert catalogue.is_idle(str(path), NINE.date(), NINE + timedelta(minutes=10))


# --- the fingerprint of a day ---

NOW = utc("2025-03-05T12:00")


def test_a_fingerprint_is_the_same_in_the_next_process(workspace: Workspace) -> None:
    write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    first = workspace.look()[0].fingerprint(DAY, NOW)
    assert workspace.look()[0].fingerprint(DAY, NOW + timedelta(days=30)) == first


@pytest.mark.parametrize("setting", [{"tool_text_limit": 200}, {"min_user_messages": 2}])
def test_a_fingerprint_follows_the_settings_that_decide_the_rows(setting: dict[str, Any], workspace: Workspace) -> None:
    write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    assert workspace.look(**setting)[0].fingerprint(DAY, NOW) != workspace.look()[0].fingerprint(DAY, NOW)


def test_a_fingerprint_follows_the_files_of_its_day_only(workspace: Workspace) -> None:
    write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    first = workspace.look()[0].fingerprint(DAY, NOW)
    write_session(workspace.sessions / "b.jsonl", user(NINE + timedelta(days=1), "x"))
    assert workspace.look()[0].fingerprint(DAY, NOW) == first
    write_session(workspace.sessions / "c.jsonl", user(NINE, "x"))
    assert workspace.look()[0].fingerprint(DAY, NOW) != first


def test_a_fingerprint_changes_when_a_session_becomes_idle(workspace: Workspace) -> None:
    write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    catalogue, *_ = workspace.look()
    active, idle = (catalogue.fingerprint(DAY, NINE + timedelta(minutes=m)) for m in (10, 30))
    assert active != idle


def test_what_stands_for_an_unknown_type_is_stored_as_a_name(workspace: Workspace) -> None:
    """In a damaged file anything may stand there; of two that have one name the counts are added."""
    path = write_session(workspace.sessions / "a.jsonl", *conversation(NINE, users=1))
    at = {"id": "h", "timestamp": "2025-03-05T09:30:00Z"}
    kinds = ["x" * 1000, "x" * 2000, "holo<gram>", "hologram\n", "!!"]
    said = {"type": "message", "message": {"role": "r\u00f6le" + "y" * 500, "content": "x"}}
    with path.open("a") as file:
        file.writelines(f"{json.dumps(record | at)}\n" for record in [*({"type": kind} for kind in kinds), said])
    workspace.look()
    assert workspace.catalogue().rows[str(path)]["unknown_records"] == [
        {"type": "hologram", "count": 2},
        {"type": f"message/rle{'y' * 49}", "count": 1},
        {"type": "no name", "count": 1},
        {"type": "x" * 60, "count": 2},
    ]


def test_the_catalogue_of_an_older_version_is_loaded_or_made_anew(workspace: Workspace) -> None:
    """It lacks columns, and of each day only the digest is known."""
    path = write_session(workspace.sessions / "a.jsonl", *conversation(NINE))
    catalogue, *_ = workspace.look()
    day = pl.Struct({"day": pl.Date(), "digest": pl.String()})
    rows = [row | {"days": [{"day": DAY, "digest": "old"}], "reader": "1"} for row in catalogue.rows.values()]
    schema = TABLES["files"].columns | {"days": pl.List(day)}
    older = pl.DataFrame(rows, schema=schema).drop("member", "parent_id", "excluded")
    assert older.schema["days"] == pl.List(day)
    older.write_parquet(catalogue.lake.path("files"))
    workspace.catalogue()
    catalogue, seen, _ = workspace.look()
    assert (seen.changed, catalogue.days()) == (1, [DAY])
    assert catalogue.messages_of(str(path), DAY) == 10
    assert catalogue.fingerprint(DAY, NINE) == workspace.look()[0].fingerprint(DAY, NINE)
