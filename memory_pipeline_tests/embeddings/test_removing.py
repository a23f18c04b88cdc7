"""Points are taken out of both collections, wherever they lie."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.embeddings import opening
from memory_pipeline.embeddings.edge import EdgeIndex
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES, Point, VectorIndex
from memory_pipeline.embeddings.opening import collection_name, find_points, remove_points
from memory_pipeline.embeddings.server import ServerIndex
from memory_pipeline.settings import Settings
from memory_pipeline_tests.embeddings.test_index_contract import in_memory
from memory_pipeline_tests.rows import workspace

pytestmark = pytest.mark.filterwarnings("ignore:Payload indexes have no effect:UserWarning")
NAMES = [str(uuid.UUID(int=number)) for number in range(3)]
TEXTS = ("by its id", "a quillwort text", "stays")


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
