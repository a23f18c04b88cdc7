"""Workspaces over one lake in a bucket have one zone, first day and salt, whoever is first."""

from __future__ import annotations

from datetime import date
from itertools import count
from pathlib import Path

import pytest

from memory_pipeline.lake import shared_marks
from memory_pipeline.lake.object_storage import ObjectStorage
from memory_pipeline.lake.shared_marks import OtherMarksError
from memory_pipeline.settings import Settings, keep_first_day, keep_timezone, load_settings, workspace_salt
from memory_pipeline_tests.lake.object_server import BUCKET, ObjectServer

NUMBERS = count()
# TZ would do nothing where the library was asked before: it keeps what it found first
ZONE = "tzlocal.get_localzone_name"


@pytest.fixture
def server(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> ObjectServer:
    for name in ("MEMORY_TIMEZONE", "MEMORY_START_DATE"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(ZONE, lambda: "Europe/Rome")
    return server


@pytest.fixture
def url(server: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> str:
    place = f"s3://{BUCKET}/marks-{next(NUMBERS)}"
    monkeypatch.setenv("MEMORY_LAKE", place)
    return place


def opened(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("MEMORY_WORKSPACE", f"{workspace}")
    return load_settings()


def test_a_new_workspace_takes_over_what_the_lake_has_and_asks_no_more(
    url: str, server: ObjectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened(tmp_path / "first", monkeypatch)
    keep_timezone(first)
    salt = workspace_salt(first)
    keep_first_day(first, [date(2025, 3, 5)])
    monkeypatch.setattr(ZONE, lambda: "Asia/Tokyo")
    second = opened(tmp_path / "second", monkeypatch)
    assert (second.timezone, second.start_date, workspace_salt(second)) == ("Europe/Rome", date(2025, 3, 5), salt)
    server.counts.clear()
    assert opened(tmp_path / "second", monkeypatch) == second and workspace_salt(second) == salt
    assert not server.counts


def test_of_two_that_make_a_salt_at_once_both_have_the_same(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (opened(tmp_path / name, monkeypatch) for name in ("first", "second"))
    read, others = shared_marks._read, list[bytes]()

    def meanwhile(storage: ObjectStorage, name: str) -> bytes | None:
        found = read(storage, name)
        if not others:  # this one has seen that there is none
            others.append(b"")
            others[0] = workspace_salt(second)
        return found

    monkeypatch.setattr(shared_marks, "_read", meanwhile)
    assert workspace_salt(first) == others[0] == workspace_salt(second)


def test_what_a_workspace_has_from_before_becomes_the_lakes_and_another_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, salt in (("first", b"one salt of sixteen"), ("second", b"two salt of sixteen")):
        (tmp_path / name / "lake").mkdir(parents=True)
        (tmp_path / name / "lake" / "salt").write_bytes(salt)
        (tmp_path / name / "lake" / "timezone").write_text("Asia/Tokyo\n")
    keep_timezone(opened(tmp_path / "first", monkeypatch))
    assert workspace_salt(opened(tmp_path / "third", monkeypatch)) == b"one salt of sixteen"
    with pytest.raises(
        OtherMarksError, match=f"^The lake {url} has another salt than the workspace .*second: expected"
    ):
        keep_timezone(opened(tmp_path / "second", monkeypatch))


def test_a_server_that_ran_before_anything_was_pushed_has_the_first_day_of_the_push(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert keep_first_day(opened(tmp_path / "server", monkeypatch), []).start_date > date(2025, 3, 5)
    keep_first_day(opened(tmp_path / "laptop", monkeypatch), [date(2025, 3, 5)])
    assert opened(tmp_path / "server", monkeypatch).start_date == date(2025, 3, 5)
