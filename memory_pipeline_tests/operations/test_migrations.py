"""A workspace of any earlier version opens, as that version wrote it: one is in each archive of `earlier/`.

They were made with the code of their day, of one bundled example: all tables and files, and of the index its names.
"""

from __future__ import annotations

import shutil
import stat
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_pipeline.cli.workspace import EXAMPLES
from memory_pipeline.defs.runs import dagster_yaml, instance_of, prepare_home
from memory_pipeline.lake.storage import storage_of
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.operations import earlier_events, migrations
from memory_pipeline.operations.earlier_events import MOMENTS
from memory_pipeline.operations.migrations import MIGRATIONS, migrate
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.settings import SettingError, Settings, load_settings
from memory_pipeline.settings.marks import FORMAT, keep_format, stored_format
from memory_pipeline_tests.cases import each, nightly
from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.rows import bytes_of, workspace

EARLIER = sorted((Path(__file__).parent / "earlier").glob("*.tar.gz"))
OWN = ("REVIEW.md", "memory/2026-03-05.md")
"""What a person may have written into."""


def unpacked(archive: Path, folder: Path) -> Settings:
    with tarfile.open(archive) as packed:
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11 has it from 3.11.4 on
        packed.extractall(folder)
    return workspace(folder)[0]


def test_the_number_of_the_format_is_that_of_the_migrations() -> None:
    assert len(MIGRATIONS) == FORMAT
    assert [m.__name__[:5] for m in MIGRATIONS] == [f"m{number:03}_" for number in range(1, FORMAT + 1)]
    assert all(m.__doc__ for m in MIGRATIONS)
    assert len(EARLIER) == 3


@each("archive", EARLIER, ids=lambda path: path.name)
def test_what_an_earlier_version_wrote_is_read_and_its_words_stay(archive: Path, tmp_path: Path) -> None:
    settings = unpacked(archive, tmp_path / "workspace")
    own = {name: (settings.workspace / name).read_bytes() for name in OWN}
    rows = {table: Lake(settings.lake_dir).read(table).height for table in TABLES}
    rows["events"] = sum(earlier_events.read(storage_of(settings), table).height for table in MOMENTS)
    assert rows["messages"] > 20 and rows["proposals"] and stored_format(settings.workspace) == 0
    prepare_home(settings)
    assert stored_format(settings.workspace) == FORMAT
    assert {name: (settings.workspace / name).read_bytes() for name in OWN} == own
    lake = Lake(settings.lake_dir)
    assert {table: lake.read(table).height for table in TABLES} == rows
    assert len(ProposalLog(lake).pending()) == rows["proposals"]
    assert (settings.dagster_home / "dagster.yaml").read_bytes() == dagster_yaml().read_bytes()
    assert not (settings.index_dir / "all-MiniLM-L6-v2").exists()
    assert not stat.S_IMODE(settings.workspace.stat().st_mode) & 0o077


@pytest.mark.slow
@pytest.mark.parametrize("archive", [EARLIER[-1], *nightly(*EARLIER[:-1])], ids=lambda path: path.name)
def test_a_run_goes_on_with_it_and_offers_nothing_twice(archive: Path, tmp_path: Path) -> None:
    settings = unpacked(archive, tmp_path / ".memory-pipeline")
    before = Lake(settings.lake_dir).read("proposals")
    (tmp_path / "sessions").mkdir()
    (session,) = EXAMPLES.glob("pi/2026-03-05*.jsonl")
    shutil.copy(session, tmp_path / "sessions")
    env = {"MEMORY_TIMEZONE": "UTC"}
    done = memory(tmp_path, "run", "--all", "--sessions", str(tmp_path / "sessions"), env=env)
    assert done.returncode == 0 and " 0 failed" in done.stdout, done.stderr
    after = Lake(settings.lake_dir).read("proposals")
    assert set(before["proposal_id"]) <= set(after["proposal_id"])
    assert after["text"].is_duplicated().sum() == 0
    shown = settings.review_file.read_text("utf-8")
    assert all(proposal_id in shown for proposal_id in after["proposal_id"])


CONCURRENCY_OF_0_2_0 = """\
concurrency:
  runs:
    # One machine, one embedding model in memory. There are no pools on purpose: a killed run of the command
    # line would keep its slot, and the next one would wait for ever. The vector index has a lock of its own,
    # which ends with its process. Of runs over days one goes at a time, of a day's and of a range's; what has no
    # days, as taking in a decision, does not wait for them.
    max_concurrent_runs: 4
    tag_concurrency_limits:
      - key: dagster/partition
        limit: 1
      - key: dagster/asset_partition_range_start
        limit: 1
"""


STORAGE_OF_0_2_0 = """\
# Dagster's own SQLite files, written with connections that are kept: with the default class, storing the events of
# 100 days takes longer than the days.
event_log_storage:
  module: memory_pipeline.automation.event_storage
  class: KeptEventLog
"""


@pytest.mark.parametrize("storage", ["", STORAGE_OF_0_2_0])
def test_the_last_dagster_yaml_of_before_is_replaced(tmp_path: Path, storage: str) -> None:
    settings, today = unpacked(EARLIER[0], tmp_path / "workspace"), dagster_yaml().read_text("utf-8")
    own = settings.dagster_home / "dagster.yaml"
    start = today[: today.index("# Steps print nothing")]
    own.write_text(start + storage + CONCURRENCY_OF_0_2_0 + today[today.index("run_monitoring:") :], "utf-8")
    prepare_home(settings)
    assert own.read_text("utf-8") == today


def test_a_dagster_yaml_of_0_2_0_that_a_user_changed_loses_the_own_event_storage(tmp_path: Path) -> None:
    settings = unpacked(EARLIER[0], tmp_path / "workspace")
    own = settings.dagster_home / "dagster.yaml"
    own.write_text(f"# mine\n{STORAGE_OF_0_2_0}nux:\n  enabled: false\n", "utf-8")
    prepare_home(settings)
    assert "KeptEventLog" not in own.read_text("utf-8")
    assert own.read_text("utf-8").startswith("# mine\n") and own.read_text("utf-8").endswith("nux:\n  enabled: false\n")
    with instance_of(settings) as instance:
        assert instance.get_runs_count() >= 0


def test_a_workspace_of_format_4_loses_the_own_event_storage(tmp_path: Path) -> None:
    settings = unpacked(EARLIER[0], tmp_path / "workspace")
    own = settings.dagster_home / "dagster.yaml"
    own.write_text(f"# mine\n{STORAGE_OF_0_2_0.replace('automation', 'defs')}", "utf-8")
    keep_format(settings.workspace, 4)
    prepare_home(settings)
    assert own.read_text("utf-8").startswith("# mine\n") and "KeptEventLog" not in own.read_text("utf-8")


def test_a_dagster_yaml_that_a_user_changed_stays(tmp_path: Path) -> None:
    settings = unpacked(EARLIER[0], tmp_path / "workspace")
    own = settings.dagster_home / "dagster.yaml"
    own.write_bytes(own.read_bytes() + b"# mine\n")
    before = own.read_bytes()
    prepare_home(settings)
    assert own.read_bytes() == before


def test_an_index_of_a_schema_stays(tmp_path: Path) -> None:
    settings = unpacked(EARLIER[0], tmp_path / "workspace")
    kept = settings.index_dir / "memory_messages-all-MiniLM-L6-v2-384-v2"
    kept.mkdir()
    mark = settings.index_dir / "memory_messages-all-MiniLM-L6-v2-any-v2.generation"
    mark.write_text("x", "utf-8")
    prepare_home(settings)
    assert kept.is_dir() and mark.exists()


def test_a_new_workspace_has_todays_format(tmp_path: Path) -> None:
    settings, _ = workspace(tmp_path / "new")
    prepare_home(settings)
    assert stored_format(settings.workspace) == FORMAT
    assert migrate(settings) == []


def test_each_is_done_once_in_order_and_again_where_it_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, _ = workspace(tmp_path / "workspace")
    done: list[str] = []

    def step(name: str, *, dies: bool = False) -> Callable[[Settings], None]:
        def migration(_: Settings) -> None:
            done.append(name)
            if dies:
                raise KeyboardInterrupt

        migration.__name__ = name
        return migration

    monkeypatch.setattr(migrations, "FORMAT", 3)
    monkeypatch.setattr(migrations, "MIGRATIONS", (step("m001"), step("m002", dies=True), step("m003")))
    with pytest.raises(KeyboardInterrupt):
        migrate(settings)
    assert stored_format(settings.workspace) == 1
    monkeypatch.setattr(migrations, "MIGRATIONS", (step("m001"), step("m002"), step("m003")))
    assert migrate(settings) == ["m002", "m003"]
    assert migrate(settings) == []
    assert done == ["m001", "m002", "m002", "m003"]


def test_a_mark_that_is_lost_or_damaged_has_its_copy(tmp_path: Path) -> None:
    settings, _ = workspace(tmp_path / "workspace")
    keep_format(settings.workspace, 2)
    for content in (b"", b"\0\0\0", b"two\n"):
        (settings.lake_dir / "format").write_bytes(content)
        assert stored_format(settings.workspace) == 2
    (settings.lake_dir / "format").unlink()
    assert stored_format(settings.workspace) == 2


def test_a_newer_workspace_is_one_sentence_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ".memory-pipeline"
    unpacked(EARLIER[-1], folder)
    keep_format(folder, FORMAT + 1)
    before = bytes_of(folder)
    for call in (("run",), ("backfill", "--yes"), ("review", "--list"), ("doctor", "--fix"), ("status",)):
        told = memory(tmp_path, *call)
        assert told.returncode == 2
        assert f"its format is {FORMAT + 1}, and this version knows {FORMAT}. Update memory-pipeline" in told.stderr
        assert len(told.stderr.strip().splitlines()) == 1
    assert bytes_of(folder) == before
    monkeypatch.setenv("MEMORY_WORKSPACE", str(folder))
    with pytest.raises(SettingError, match="newer version"):
        load_settings()
