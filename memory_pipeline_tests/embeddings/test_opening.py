"""Indexes that stay open between days, and points that are taken out of every collection.

An index is opened once for many days, given up to whoever waits, and never kept after a failure.
"""

from __future__ import annotations

import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.embeddings import edge, opening
from memory_pipeline.embeddings.edge import EdgeIndex
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES, Point, VectorIndex
from memory_pipeline.embeddings.opening import (
    collection_name,
    find_points,
    index_folder,
    indexes_kept_open,
    open_index,
    remove_points,
)
from memory_pipeline.embeddings.server import ServerIndex
from memory_pipeline.settings import Settings
from memory_pipeline_tests.embeddings.test_index_contract import in_memory
from memory_pipeline_tests.rows import workspace

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
NAMES = [str(uuid.UUID(int=number)) for number in range(3)]
TEXTS = ("by its id", "a quillwort text", "stays")
POINT = Point("00000000-0000-0000-0000-000000000001", [1.0, 0.0, 0.0, 0.0], {"date": "2026-03-02"})
ASK = """
import sys
from pathlib import Path
from memory_pipeline.embeddings.edge import EdgeIndex
index = EdgeIndex(Path(sys.argv[1]), 4, lock_timeout=500)
print(len(index.ids()))
index.close()
"""


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders that were opened, in order."""
    found: list[Path] = []
    load = edge.EdgeIndex._load

    def counted(self: edge.EdgeIndex, folder: Path | None = None) -> object:
        found.append(self.folder)
        return load(self, folder)

    monkeypatch.setattr(edge.EdgeIndex, "_load", counted)
    return found


def settings_in(folder: Path) -> Settings:
    return Settings(workspace=folder)


def test_an_index_is_opened_once_for_many_days(tmp_path: Path, opened: list[Path]) -> None:
    settings = settings_in(tmp_path)
    with indexes_kept_open():
        for _ in range(5):
            with open_index(settings, 4) as index:
                index.upsert([POINT])
    assert len(opened) == 1
    with open_index(settings, 4) as index:  # closed at the end, or this would wait for it
        assert index.ids() == {POINT.point_id}
    assert len(opened) == 2


def test_whoever_waits_gets_it_before_the_end(tmp_path: Path, opened: list[Path]) -> None:
    settings = settings_in(tmp_path)
    with indexes_kept_open():
        with open_index(settings, 4) as index:
            index.upsert([POINT])
        folder = index_folder(settings, 4)
        asked = subprocess.run([sys.executable, "-c", ASK, f"{folder}"], capture_output=True, text=True, check=True)
        assert asked.stdout == "1\n"
        with open_index(settings, 4) as index:
            assert index.ids() == {POINT.point_id}
    assert len(opened) == 2, "given up once, opened again once"


def test_one_that_is_in_use_is_given_up_afterwards(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with indexes_kept_open():
        with open_index(settings, 4) as index:
            command = [sys.executable, "-c", ASK, f"{index_folder(settings, 4)}"]
            waiting = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            with pytest.raises(subprocess.TimeoutExpired):
                waiting.wait(timeout=3)
            index.upsert([POINT])
        assert waiting.communicate(timeout=500)[0] == "1\n"


def test_after_a_failure_it_is_opened_anew(tmp_path: Path, opened: list[Path]) -> None:
    settings = settings_in(tmp_path)
    with indexes_kept_open():
        with pytest.raises(ZeroDivisionError), open_index(settings, 4):
            raise ZeroDivisionError
        with open_index(settings, 4):
            pass
    assert len(opened) == 2


def filled(index: VectorIndex) -> None:
    index.upsert([Point(n, [1, 0], {"date": "2025-01-01", "text": text}) for n, text in zip(NAMES, TEXTS, strict=True)])
    index.close()


@pytest.fixture(params=["edge", "server"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    made, _ = workspace(tmp_path / "workspace")
    names = [collection_name(made, base, made.embedding_model, 2) for base in (COLLECTION, MESSAGES)]
    in_memory(monkeypatch)

    def opened(_: Settings, name: str, dimension: int, __: float) -> Any:
        return ServerIndex("http://in-memory", dimension, collection=name)

    for name in names:
        if request.param == "edge":
            filled(EdgeIndex(made.index_dir / name, 2))
        else:
            filled(opened(made, name, 2, 0))
    if request.param == "server":
        monkeypatch.setattr(opening, "open_collection", opened)
        monkeypatch.setattr(opening, "_collections", lambda _: [(name, 2) for name in names])
    return made


def test_they_go_by_id_and_by_what_they_say(settings: Settings) -> None:
    def says_it(payload: Any) -> bool:
        return "quillwort" in payload["text"]

    assert sorted(find_points(settings, NAMES[:1], says_it).values()) == ["a quillwort text", "by its id"]
    remove_points(settings, NAMES[:1], says_it)
    assert find_points(settings, NAMES, lambda _: True) == {NAMES[2]: "stays"}
    assert not any(b"quillwort" in path.read_bytes() for path in settings.index_dir.rglob("*") if path.is_file())


def test_what_nothing_searches_goes_too(settings: Settings) -> None:
    old = settings.index_dir / "of-another-model-2-v1"
    old.mkdir(parents=True)
    remove_points(settings, [], lambda _: False)
    assert not old.exists()
    assert set(find_points(settings, NAMES, lambda _: False)) == set(NAMES)
