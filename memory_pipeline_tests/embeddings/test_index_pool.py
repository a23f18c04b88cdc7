"""Indexes that stay open between days: opened once, given up to whoever waits, never kept after a failure."""

import subprocess
import sys
from pathlib import Path

import pytest

from memory_pipeline.embeddings import edge
from memory_pipeline.embeddings.index import Point
from memory_pipeline.embeddings.opening import index_folder, indexes_kept_open, open_index
from memory_pipeline.settings import Settings

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
