"""The disk of the power cuts: what was flushed is there, and what was not may be lost."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_pipeline.llm.cache import AnswerCache
from memory_pipeline.llm.request import Answer
from memory_pipeline.markdown.safe_write import sync_folder, write_atomically
from memory_pipeline_tests.killing.power import cut, recorded

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="it asks Linux which file is flushed")
CHANCES = 30


def left(folder: Path, work: Callable[[Path], None]) -> list[dict[str, bytes]]:
    """The files after the work and a power cut, once for each of many chances."""
    found = []
    for seed in range(CHANCES):
        root = folder / f"{seed}" / "root"
        root.mkdir(parents=True)
        (root / "old").write_bytes(b"old")

        with pytest.MonkeyPatch.context() as patch:
            for name in ("fsync", "unlink", "replace", "rename"):
                patch.setattr(os, name, getattr(os, name))  # which puts them back
            recorded(root, root.parent / "notes")
            work(root)
        cut(root, root.parent / "notes", random.Random(seed))
        found.append({f"{p.relative_to(root)}": p.read_bytes() for p in sorted(root.rglob("*")) if p.is_file()})
    return found


def test_what_is_written_atomically_is_there_for_good(tmp_path: Path) -> None:
    def work(root: Path) -> None:
        write_atomically(root / "old", b"new", expected=b"old", backups=root / "a" / "backups")

    for files in left(tmp_path, work):
        assert files.pop("old") == b"new"
        assert [*files.values()] == [b"old"], "the backup, in folders that were made for it"


def test_an_answer_is_there_for_good(tmp_path: Path) -> None:
    """Else it would be paid once more."""
    answer = Answer("Yes.", 1, 1, 0.0, 0.0)
    for number, files in enumerate(left(tmp_path, lambda root: AnswerCache(root / "answers").put("ab12", answer))):
        assert "answers/ab/ab12.json" in files
        assert AnswerCache(tmp_path / f"{number}" / "root" / "answers").get("ab12")


def test_what_is_not_flushed_may_be_lost_in_every_way(tmp_path: Path) -> None:
    found = [files.get("old") for files in left(tmp_path, lambda root: (root / "old").write_bytes(b"new"))]
    assert set(found) == {b"old", b"new"}
    renamed = left(tmp_path / "renamed", lambda root: _put(root, b"new", flush=False))
    assert {files["old"] for files in renamed} == {b"old", b"new", b"", bytes(3)}


def test_a_name_is_only_there_for_good_when_its_folder_was_flushed(tmp_path: Path) -> None:
    renamed = left(tmp_path, lambda root: _put(root, b"new", flush=True))
    assert {files["old"] for files in renamed} == {b"old", b"new"}, "whole, but perhaps the one of before"

    def and_its_folder(root: Path) -> None:
        _put(root, b"new", flush=True)
        sync_folder(root)

    assert {files["old"] for files in left(tmp_path / "folder", and_its_folder)} == {b"new"}


def test_a_file_that_was_removed_may_come_back(tmp_path: Path) -> None:
    found = left(tmp_path, lambda root: (root / "old").unlink())
    assert {files.get("old") for files in found} == {b"old", None}


def _put(root: Path, data: bytes, *, flush: bool) -> None:
    temporary = root / "temporary"
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        if flush:
            os.fsync(file.fileno())
    temporary.replace(root / "old")
