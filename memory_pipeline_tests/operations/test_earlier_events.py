"""What happened to proposals under an earlier version is kept, whatever interrupts the move into `events`.

`decided.tar.gz` is a workspace that commit 46ebf5e wrote over two weeks: every kind of decision, and every event beside
them. Its `expected.json` is what that version made of it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.lake.queries import ask
from memory_pipeline.lake.storage import FolderStorage
from memory_pipeline.lake.store import DamagedTableError, Lake
from memory_pipeline.operations.earlier_events import MOMENTS
from memory_pipeline.operations.forgetting.forget import forget
from memory_pipeline.operations.forgetting.request import request_for
from memory_pipeline.operations.migrations import migrate
from memory_pipeline.proposals.evaluation import judge_integrity
from memory_pipeline.proposals.events import DECISIONS, KEYS, ProposalLog
from memory_pipeline.proposals.todoist.review import account_of, shown_tasks
from memory_pipeline.settings import Settings
from memory_pipeline.settings.marks import FORMAT, keep_format, stored_format
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.operations.test_migrations import unpacked
from memory_pipeline_tests.rows import at, bytes_of

ARCHIVE = Path(__file__).with_name("decided.tar.gz")
KEPT = ("section", "text", "reason", "surface", "decision", "content_hash", "external_id", "lines", "already_there")


@pytest.fixture
def old(tmp_path: Path) -> Settings:
    return unpacked(ARCHIVE, tmp_path / "old")


def rows_of(settings: Settings, table: str) -> list[dict[str, Any]]:
    """As they are stored, read without the code that migrates."""
    files = sorted((settings.lake_dir / table).glob("*.parquet"))
    return [row for file in files for row in pl.read_parquet(file).to_dicts()]


def expected(settings: Settings) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((settings.workspace / "expected.json").read_bytes())
    return found


def test_every_row_is_an_event_with_all_that_it_said(old: Settings) -> None:
    before = {table: rows_of(old, table) for table in MOMENTS}
    assert all(before.values()), "each of the nine tables has rows"
    assert {row["decision"] for row in before["decisions"]} == set(DECISIONS)
    own = {path.name: path.read_bytes() for path in old.workspace.glob("*.md")}
    logs = bytes_of(old.workspace / "memory")
    assert len(migrate(old)) == FORMAT - 2
    events = Lake(old.lake_dir).read("events").to_dicts()
    assert len(events) == sum(map(len, before.values()))
    assert {row["kind"] for row in events} == {*KEYS, "would_apply"}
    for table, (kind, moment) in MOMENTS.items():
        there = {_key(row, "happened_at"): row for row in events if row["kind"] == kind}
        for row in before[table]:
            event = there[_key(row | {"surface": row.get("surface", row.get("place"))}, moment)]
            assert event["day"] == row["day"]
            assert {name: event[name] for name in KEPT if name in row} == {n: row[n] for n in KEPT if n in row}
            assert event["again"] == row.get("reoffered")
    assert {path.name: path.read_bytes() for path in old.workspace.glob("*.md")} == own
    assert bytes_of(old.workspace / "memory") == logs


def _key(row: dict[str, Any], moment: str | None) -> tuple[Any, ...]:
    return row["proposal_id"], row["day"], row.get(moment or ""), row.get("surface")


def test_what_became_of_each_proposal_is_what_that_version_said(old: Settings) -> None:
    migrate(old)
    lake = Lake(old.lake_dir)
    log = ProposalLog(lake)
    columns = list(expected(old)["proposals"][0])
    frame = log.frame.with_columns(pl.col("decided_at").cast(pl.String)).select(columns)
    assert frame.to_dicts() == expected(old)["proposals"]
    assert [row["proposal_id"] for row in log.pending()] == expected(old)["pending"]
    assert shown_tasks(lake, account_of(old)) == {"p-20250305-004": "task-4", "p-20250305-005": "task-5"}
    assert judge_integrity(lake, old.memory_file).passed
    reasons = dict(log.events("reoffered").select("proposal_id", "reason").iter_rows())
    assert reasons == {
        "p-20250305-008": "the fix that replaced it was withdrawn",
        "p-20250306-012": "it is known to have been shown on 2 days",
    }


def test_the_next_run_changes_no_line_of_a_person(old: Settings) -> None:
    from memory_pipeline.proposals.review import reconcile

    migrate(old)
    reconcile(Workspace(old, Lake(old.lake_dir)), at("19:00", day=max(Lake(old.lake_dir).days("events"))))
    assert "My own words." in old.memory_file.read_text("utf-8")
    assert "This I wrote myself.  " in old.memory_file.read_text("utf-8")
    assert "A note to myself." in old.review_file.read_text("utf-8")
    review = old.review_file.read_text("utf-8")
    waiting = {*expected(old)["pending"]} - {"p-20250306-012"}  # which was shown on all of its days
    assert all(f"- [ ] `{p}`" in review for p in waiting)


class Killed(BaseException):
    """The process ends here."""


def test_a_kill_at_any_write_loses_nothing(old: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(old.workspace, tmp_path / "fresh")
    migrate(old)
    wanted = Lake(old.lake_dir).read("events")
    calls: list[str] = []
    write, remove = FolderStorage.write, FolderStorage.remove

    def counted(change: Any, limit: int) -> Any:
        def step(storage: FolderStorage, *args: Any) -> Any:
            calls.append(f"{args[0]}")
            if len(calls) > limit:
                raise Killed
            return change(storage, *args)

        return step

    for number in (0, 1, 7, 30, 60, 75, 90, 120):
        folder = tmp_path / f"{number}"
        shutil.copytree(tmp_path / "fresh", folder)
        settings = old.model_copy(update={"workspace": folder})
        with monkeypatch.context() as patch:
            calls.clear()
            patch.setattr(FolderStorage, "write", counted(write, number))
            patch.setattr(FolderStorage, "remove", counted(remove, number))
            with pytest.raises(Killed):
                migrate(settings)
        if stored_format(folder) < 5:  # an earlier version may open it, and must find all of it
            assert {table: rows_of(settings, table) for table in MOMENTS}["decisions"]
        migrate(settings)
        assert Lake(settings.lake_dir).read("events").equals(wanted), number
        assert not any((settings.lake_dir / table).exists() for table in MOMENTS)


def test_what_is_gone_or_damaged_comes_from_its_version(old: Settings) -> None:
    decisions = sorted((old.lake_dir / "decisions").glob("*.parquet"))
    kept = old.backups / "lake" / "decisions"
    kept.mkdir(parents=True)
    for path in decisions[:2]:
        shutil.copy(path, kept / f"{path.name}.20250401T000000.000000Z")
    count = len(rows_of(old, "decisions"))
    decisions[0].unlink()
    decisions[1].write_bytes(b"PAR1 damaged PAR1")
    migrate(old)
    assert ProposalLog(Lake(old.lake_dir)).events("decided").height == count


def test_what_cannot_be_read_stops_it_and_stays(old: Settings) -> None:
    (path, *_) = sorted((old.lake_dir / "decisions").glob("*.parquet"))
    path.write_bytes(b"PAR1 damaged PAR1")
    with pytest.raises(DamagedTableError, match=rf"{path.name} cannot be read"):
        migrate(old)
    assert path.exists() and stored_format(old.workspace) == 2


def test_its_copies_go_with_what_is_forgotten(old: Settings) -> None:
    migrate(old)
    copies = [old.backups / "lake" / table for table in MOMENTS]
    assert all(any(folder.iterdir()) for folder in copies)
    forget(old, request_for(old, "p-20250305-001"), at("20:00"))
    assert not any(any(folder.iterdir()) for folder in copies)


def test_a_command_that_only_reads_migrates_and_an_older_program_refuses(tmp_path: Path) -> None:
    folder = tmp_path / ".memory-pipeline"
    settings = unpacked(ARCHIVE, folder)
    told = memory(tmp_path, "sql", "select decision, count(*) from decisions group by all order by all")
    assert told.returncode == 0 and "withdrawn" in told.stdout, told.stderr
    assert stored_format(folder) == FORMAT
    lake = Lake(settings.lake_dir)
    assert ask(lake, "select count(*) from promotions").rows == [(5,)]
    keep_format(folder, FORMAT + 1)
    told = memory(tmp_path, "status")
    assert told.returncode == 2 and "was written by a newer version" in told.stderr
