"""Tables that cannot be made again keep their last versions and are put back from them."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from memory_pipeline.lake.storage import VERSIONS_KEPT
from memory_pipeline.lake.store import DamagedTableError, Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline_tests.lake.folders import versions_folder
from memory_pipeline_tests.rows import DAY, at, day_after, decision, observation, put

FINAL = sorted(name for name, table in TABLES.items() if not table.is_derived)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    put(lake, "events", decision("p-20250305-001"))
    put(lake, "events", decision("p-20250305-002"))
    return lake


def ids(lake: Lake) -> list[str]:
    return Lake(lake.root).read("events")["proposal_id"].sort().to_list()


def test_what_a_user_decided_is_among_them() -> None:
    assert {"proposals", "events", "ledger"} <= set(FINAL)


@pytest.mark.parametrize("damage", ["gone", "empty", "cut", "zeros", "inside"])
def test_a_lost_file_is_put_back_with_a_sentence(lake: Lake, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    path = lake.path("events", DAY)
    whole = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        inside = whole[:20] + b"\xff" * (len(whole) - 60) + whole[-40:]
        broken = {"empty": b"", "cut": whole[:-50], "zeros": bytes(len(whole)), "inside": inside}
        path.write_bytes(broken[damage])
    with caplog.at_level(logging.WARNING):
        assert ids(lake) == ["p-20250305-001", "p-20250305-002"]
    assert path.read_bytes() == whole
    (sentence,) = caplog.messages
    assert sentence.startswith(f"{path} was ") and f"{versions_folder(lake, 'events')}" in sentence
    kept = list(path.parent.glob("*.broken-*"))
    assert len(kept) == (damage != "gone")
    assert all(k.name in sentence for k in kept)
    caplog.clear()
    assert ids(lake) and not caplog.messages


def test_an_older_version_serves_where_the_newest_is_damaged_too(lake: Lake) -> None:
    path = lake.path("events", DAY)
    newest = sorted(versions_folder(lake, "events").iterdir())[-1]
    newest.write_bytes(b"")
    path.write_bytes(b"")
    assert ids(lake) == ["p-20250305-001"]


def test_without_a_version_nothing_is_made_up(lake: Lake) -> None:
    path = lake.path("events", DAY)
    for version in versions_folder(lake, "events").iterdir():
        version.unlink()
    path.write_bytes(b"")
    with pytest.raises(DamagedTableError, match=r"Nor can any version of it in backups/lake"):
        ids(lake)
    assert path.read_bytes() == b""


def test_few_versions_are_kept_of_each_day(lake: Lake) -> None:
    for minute in range(10, 20):
        put(lake, "events", decision(f"p-20250305-0{minute}") | {"happened_at": at(f"09:{minute}")})
    put(lake, "events", decision("p-20250306-001", day=day_after(1)))
    names = sorted(path.name[:10] for path in versions_folder(lake, "events").iterdir())
    assert names == ["2025-03-05"] * VERSIONS_KEPT + ["2025-03-06"]


def test_what_can_be_made_again_keeps_none(lake: Lake) -> None:
    put(lake, "observations", observation("Never use npm."))
    assert not versions_folder(lake, "observations").exists()
