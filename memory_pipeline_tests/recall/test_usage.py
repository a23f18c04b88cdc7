from __future__ import annotations

import json
import os
import stat
import threading
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from memory_pipeline.days import today
from memory_pipeline.recall import usage
from memory_pipeline.recall.usage import KEPT_DAYS, UNUSED_DAYS, last_days, log_use, unused_lines, uses
from memory_pipeline.settings import Settings
from memory_pipeline_tests.rows import DAY, at, day_after, put, workspace

SECRET = "AKIAIOSFODNN7EXAMPLE"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made, lake = workspace(tmp_path / "ws")
    lake.root.mkdir(parents=True)
    return made


def file_of(settings: Settings, day: date) -> Path:
    return settings.workspace / "usage" / f"{day}.jsonl"


def logged(settings: Settings) -> list[usage.Use]:
    return [use for _, use in uses(settings)]


def write(settings: Settings, day: date, **entry: object) -> None:
    made = {"at": f"{day}T09:00:00Z", "kind": "recall", "query": "", "project": None, "shown": [], "cited": []} | entry
    path = file_of(settings, day)
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(made) + "\n")


def test_an_entry_lies_in_the_file_of_its_local_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
            return datetime(2025, 3, 5, 23, 30, tzinfo=UTC)

    settings, lake = workspace(tmp_path / "ws", timezone="Asia/Tokyo")
    lake.root.mkdir(parents=True)
    monkeypatch.setattr(usage, "datetime", Clock)
    log_use(settings, "recall", query="which port?", project="kiln", shown=["p-1", "o-2", "p-1"], cited=["o-2"])
    path = file_of(settings, date(2025, 3, 6))
    assert json.loads(path.read_text()) == {
        "at": "2025-03-05T23:30:00Z",
        "kind": "recall",
        "query": "which port?",
        "project": "kiln",
        "shown": ["p-1", "o-2"],
        "cited": ["o-2"],
    }
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_query_is_redacted_and_bounded(settings: Settings) -> None:
    log_use(settings, "search", query=f"what was {SECRET} for? " + "x " * 100_000)
    log_use(settings, "search", query=f"broken \ud800 {SECRET}\n\nsecond line")
    text = file_of(settings, today(settings.zone)).read_text()
    assert SECRET not in text
    assert "[redacted:" in text
    assert [len(use["query"]) <= usage.MAX_QUERY for use in logged(settings)] == [True, True]


def test_many_processes_write_whole_lines(settings: Settings) -> None:
    ids = [f"o-{n:012d}" for n in range(300)]
    threads = [
        threading.Thread(target=lambda: [log_use(settings, "brief", shown=ids) for _ in range(20)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [use["shown"] for use in logged(settings)] == [ids] * 160


@pytest.mark.parametrize("place", ["file", "folder", "pipe", "none"])
def test_nothing_is_raised_and_nothing_is_waited_for(settings: Settings, place: str, tmp_path: Path) -> None:
    if place == "none":
        settings, _ = workspace(tmp_path / "nowhere")
        log_use(settings, "recall", query=SECRET)
        assert not settings.workspace.exists()
        return
    path = file_of(settings, today(settings.zone))
    if place == "file":
        path.parent.write_text("in the way")
    else:
        path.parent.mkdir()
        path.mkdir() if place == "folder" else os.mkfifo(path)
    log_use(settings, "recall", query="anything", shown=["p-1"])
    assert logged(settings) == []


def test_a_query_that_cannot_be_redacted_is_not_written(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_salt(_: Settings) -> object:
        raise OSError("disk full")

    monkeypatch.setattr("memory_pipeline.redaction.redactor_of", no_salt)
    log_use(settings, "recall", query=SECRET, shown=["p-1"])
    assert SECRET not in "".join(path.read_text() for path in settings.workspace.rglob("*.jsonl"))
    assert [use["shown"] for use in logged(settings)] == [["p-1"]]


def test_a_citation_counts_more_than_having_been_shown(settings: Settings) -> None:
    write(settings, day_after(0), shown=["a", "b"], cited=["a"])
    write(settings, day_after(1), shown=["a", "b", "c"])
    assert last_days(settings, "cited") == {"a": day_after(0)}
    assert last_days(settings, "shown", "cited") == {"a": day_after(1), "b": day_after(1), "c": day_after(1)}


def test_damaged_lines_are_passed_over(settings: Settings) -> None:
    write(settings, DAY, shown=["a"])
    with file_of(settings, DAY).open("ab") as file:
        file.write(b'{"at": "2025\n\xff\xfe\n[1]\n{}\n"text"\n')
    write(settings, DAY, cited=["b"])
    (settings.workspace / "usage" / "9999-99-99.jsonl").write_text("x")
    assert last_days(settings, "shown", "cited") == {"a": DAY, "b": DAY}


def test_old_files_go_when_a_new_day_begins(settings: Settings) -> None:
    now = today(settings.zone)
    old, kept = now - timedelta(days=KEPT_DAYS + 1), now - timedelta(days=KEPT_DAYS)
    for day in (old, kept):
        write(settings, day, shown=["a"])
    log_use(settings, "brief")
    assert not file_of(settings, old).exists()
    assert file_of(settings, kept).exists()


def test_lines_that_nobody_was_shown_for_long(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path / "ws")
    ids = [f"p-20250305-00{n}" for n in range(1, 6)]
    lines = [f"- (2025-03-05) Line {i}. <!-- {i} -->" for i in ids[:4]]
    struck = f"- ~~(2025-03-05) Line {ids[4]}.~~ (superseded by {ids[0]}, 2025-03-06) <!-- {ids[4]} -->"
    settings.workspace.mkdir(parents=True, exist_ok=True)
    settings.memory_file.write_text("\n".join(["# Memory", "", "## Patterns", *lines, struck, "- by hand"]))
    promoted = [day_after(0), day_after(0), day_after(0), day_after(UNUSED_DAYS), day_after(0)]
    for i, day in zip(ids, promoted, strict=True):
        common = {"section": "Patterns", "text": "", "kind": "promoted", "already_there": False}
        put(lake, "events", {"day": day, "proposal_id": i, **common})
    now = day_after(UNUSED_DAYS + 5)
    assert unused_lines(settings, lake, now) == []  # the log is empty: nobody knows
    write(settings, day_after(1), shown=[ids[0], ids[1]])
    write(settings, day_after(20), shown=[ids[1]], cited=[ids[1]])
    assert [line.proposal_id for line in unused_lines(settings, lake, now)] == [ids[0], ids[2]]
    assert unused_lines(settings, lake, day_after(20)) == []
    settings.actions_dir.mkdir(parents=True)  # shown at a tool call
    shown = {"at": f"{at(day=day_after(20)):%Y-%m-%dT%H:%M:%SZ}", "session": "s1", "id": ids[0], "as": "hint"}
    (settings.actions_dir / "shown.jsonl").write_text(json.dumps(shown))
    assert [line.proposal_id for line in unused_lines(settings, lake, now)] == [ids[2]]
