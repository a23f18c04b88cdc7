"""A run makes the collections that are searched quick to open, and notices one that was damaged meanwhile."""

import uuid
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from memory_pipeline.embeddings.edge import EdgeIndex
from memory_pipeline.embeddings.index import MESSAGES, Point
from memory_pipeline.embeddings.messages import MessageEmbeddingsStage
from memory_pipeline.embeddings.opening import index_folder
from memory_pipeline.embeddings.stage import settle_collections, switch_when_complete
from memory_pipeline.recall.search import search
from memory_pipeline.stages import bring_up_to_date, is_current
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import DAY, FakeEncoder, say, use_encoder
from memory_pipeline_tests.rows import workspace as new_workspace


@pytest.fixture
def indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Workspace, MessageEmbeddingsStage]:
    monkeypatch.setattr("memory_pipeline.embeddings.edge._SETTLED_FROM_KB", 1)
    encoder = FakeEncoder("cart", name="all-MiniLM-L6-v2", dimension=384)
    use_encoder(monkeypatch, encoder)
    settings, lake = new_workspace(tmp_path)
    say(lake, "s1", *(f"user: The cart number {n} expires." for n in range(20)))
    made = Workspace(settings, lake)
    stage = MessageEmbeddingsStage(made, encoder)  # type: ignore[arg-type]
    bring_up_to_date(stage, lake, DAY)
    switch_when_complete(made)
    return made, stage


def segments(made: Workspace) -> set[str]:
    return {path.name for path in (index_folder(made.settings, 384, MESSAGES) / "segments").iterdir()}


def test_a_settled_collection_finds_the_same(indexed: tuple[Workspace, MessageEmbeddingsStage]) -> None:
    made, stage = indexed
    before, found = segments(made), search(made.settings, "cart number 7")
    settle_collections(made)
    assert segments(made).isdisjoint(before)
    assert search(made.settings, "cart number 7").hits[0] == found.hits[0]
    assert is_current(stage, made.lake, DAY)


def test_the_nearest_of_settled_points_are_the_nearest_of_all(tmp_path: Path) -> None:
    vectors = np.random.default_rng(1).standard_normal((4_000, 384)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = [f"{uuid.UUID(int=number)}" for number in range(len(vectors))]
    with closing(EdgeIndex(tmp_path / "index", 384)) as index:
        index.upsert([Point(i, v.tolist(), {"date": "2025-03-05"}) for i, v in zip(ids, vectors, strict=True)])
        index.settle()
        files = {path.name for path in (tmp_path / "index").rglob("*") if "quantized" in path.name}
        assert files, "settled points are kept in bytes too"
        for question in vectors[:5]:
            cosines = vectors @ question
            nearest = np.argsort(-cosines)[:100]
            found = index.search(question.tolist(), 100)
            assert [hit.point_id for hit in found] == [ids[i] for i in nearest]
            assert [hit.score for hit in found] == pytest.approx(cosines[nearest].tolist(), abs=1e-5)


def test_a_damaged_collection_is_made_anew_by_the_next_run(indexed: tuple[Workspace, MessageEmbeddingsStage]) -> None:
    made, stage = indexed
    folder = index_folder(made.settings, 384, MESSAGES)
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(b"broken")
    settle_collections(made)
    assert Path(f"{folder}.broken-1").is_dir()
    assert not is_current(stage, made.lake, DAY)


def test_a_collection_that_is_gone_is_not_made(indexed: tuple[Workspace, MessageEmbeddingsStage]) -> None:
    made, _ = indexed
    folder = index_folder(made.settings, 384, MESSAGES)
    folder.rename(folder.with_name("elsewhere"))
    settle_collections(made)
    assert not folder.exists()
