"""Without the vector server, the model or a sound index the rest of a day goes on by words, and it is told why."""

import shutil
import socket
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.embeddings import opening
from memory_pipeline.embeddings.health import (
    days_by_words,
    set_aside_files,
    vector_problems,
)
from memory_pipeline.embeddings.index import IndexUnavailableError, Point, is_sound
from memory_pipeline.embeddings.opening import generation, index_folder, open_index
from memory_pipeline.embeddings.stage import EmbeddingsStage, point_id, vectors_of
from memory_pipeline.friction.stage import FrictionStage
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.stage import ProposalsStage
from memory_pipeline.reflections.extractive import ExtractiveReflector
from memory_pipeline.reflections.stage import ReflectionsStage
from memory_pipeline.stages import INCOMPLETE, bring_up_to_date, is_current, is_incomplete
from memory_pipeline.text.encoder import EncoderUnavailableError, encoder_of
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import (
    DAY,
    FakeEncoder,
    changed,
    observation,
    observation_id,
    put,
    use_encoder,
    workspace,
)
from memory_pipeline_tests.text.hub import tiny_model

UV, FRIDAY = "Use uv for Python.", "Never deploy on a Friday."


@pytest.fixture
def closed_port() -> int:
    """Of loopback, where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Two observations of a day, with a model that is played."""
    monkeypatch.setattr(opening, "_down", {})
    use_encoder(monkeypatch, FakeEncoder("uv", "friday"))
    settings, lake = workspace(tmp_path)
    put(lake, "observations", observation(UV), observation(FRIDAY))
    return Workspace(settings, lake)


def with_server(opened: Workspace, port: int) -> Workspace:
    return Workspace(changed(opened.settings, qdrant_url=f"http://127.0.0.1:{port}"), opened.lake)


def embed(opened: Workspace) -> EmbeddingsStage:
    stage = EmbeddingsStage(opened, FakeEncoder("uv", "friday"))  # type: ignore[arg-type]
    bring_up_to_date(stage, opened.lake, DAY)
    return stage


def test_without_the_server_a_day_is_proposed_all_the_same(opened: Workspace, closed_port: int) -> None:
    down = with_server(opened, closed_port)
    stage = embed(down)
    assert is_incomplete(stage, down.lake, DAY)
    for later in (ReflectionsStage(down, ExtractiveReflector(), stage.encoder), ProposalsStage(down)):
        bring_up_to_date(later, down.lake, DAY)
    bring_up_to_date(FrictionStage(down), down.lake, DAY)
    assert set(down.lake.read("proposals")["text"]) == {UV, FRIDAY}
    assert days_by_words(down, [DAY]) == [DAY]


def test_what_was_proposed_stays_when_the_server_is_back(opened: Workspace, closed_port: int) -> None:
    """Here the embedded index stands in for it: the rest of the day is done again with vectors."""
    test_without_the_server_a_day_is_proposed_all_the_same(opened, closed_port)
    before = opened.lake.read("proposals")
    stage = embed(opened)
    assert not is_incomplete(stage, opened.lake, DAY)
    reflections = ReflectionsStage(opened, ExtractiveReflector(), stage.encoder)
    assert not is_current(reflections, opened.lake, DAY)
    for later in (reflections, ProposalsStage(opened)):
        bring_up_to_date(later, opened.lake, DAY)
    assert opened.lake.read("proposals").equals(before)
    assert vector_problems(opened) == []


def test_the_records_of_vectors_outlive_the_outage(opened: Workspace, closed_port: int) -> None:
    embed(opened)
    put(opened.lake, "observations", observation("Indent with tabs."))
    embed(with_server(opened, closed_port))
    assert set(opened.lake.read("embeddings")["source_id"]) == {observation_id(UV), observation_id(FRIDAY)}
    stage = EmbeddingsStage(opened, encoder := FakeEncoder("uv", "friday"))  # type: ignore[arg-type]
    bring_up_to_date(stage, opened.lake, DAY)
    assert encoder.encoded == ["Indent with tabs."]


def test_a_server_that_is_down_is_asked_once(
    opened: Workspace, closed_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stage of each day would wait for it anew."""
    tried: list[int] = []
    down, real = with_server(opened, closed_port), opening.open_collection

    def counted(*args: Any, create: bool) -> object:
        tried.append(1)
        return real(*args, create=create)

    monkeypatch.setattr(opening, "open_collection", counted)
    for _ in range(3):
        with pytest.raises(IndexUnavailableError), open_index(down.settings, FakeEncoder("uv").dimension):
            pass
    assert vectors_of(down.settings, FakeEncoder("uv"), ["o-1"]) == {}  # type: ignore[arg-type]
    assert len(tried) == 1


def test_a_server_that_is_down_is_told_with_its_address(opened: Workspace, closed_port: int) -> None:
    (problem,) = vector_problems(with_server(opened, closed_port))
    assert f"The Qdrant server at http://127.0.0.1:{closed_port} does not answer" in problem
    assert "check QDRANT_URL" in problem


def test_a_damaged_index_is_told_with_its_path_and_filled_again(opened: Workspace) -> None:
    """Also where all days are up to date."""
    settings = changed(opened.settings, embedding_model="all-MiniLM-L6-v2")
    opened = Workspace(settings, opened.lake)
    stage = embed(opened)
    assert vector_problems(opened) == [] and is_current(stage, opened.lake, DAY)
    for path in index_folder(settings, 3).rglob("*"):
        if path.is_file():
            path.write_bytes(b"broken")
    (problem,) = vector_problems(opened)
    assert problem.startswith("2 of 2 vectors are not in the index; `memory run --all`")
    assert set_aside_files(opened) == [settings.index_dir / f"{index_folder(settings, 3).name}.broken-1"]
    assert not is_current(stage, opened.lake, DAY)
    embed(opened)
    assert vector_problems(opened) == []


def test_vectors_that_the_index_lost_without_a_word_are_made_again(opened: Workspace) -> None:
    stage = embed(opened)
    with open_index(opened.settings, stage.encoder.dimension) as index:
        index.delete(list(opened.lake.read("embeddings")["point_id"][:1]))
    (problem,) = vector_problems(opened)
    assert problem.startswith("1 of 2 vectors are not in the index")
    whole = stage.fingerprint(DAY)
    assert opened.lake.fingerprint("embeddings", DAY) == INCOMPLETE
    embed(opened)
    assert opened.lake.fingerprint("embeddings", DAY) == whole  # no other day was put out of date
    assert vector_problems(opened) == []


def test_an_index_that_was_sound_is_opened_again_once_it_has_changed(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = embed(opened)
    with monkeypatch.context() as patched, open_index(opened.settings, stage.encoder.dimension):
        patched.setattr("memory_pipeline.embeddings.health.LOOK_SECONDS", 0.1)
        assert vector_problems(opened) == []  # in use, and not looked at
    assert not (opened.settings.index_dir / "sound.txt").exists()
    assert vector_problems(opened) == []
    with monkeypatch.context() as patched:
        patched.delattr("memory_pipeline.embeddings.health.open_index")
        assert vector_problems(opened) == []
    with open_index(opened.settings, stage.encoder.dimension) as index:
        index.delete(list(opened.lake.read("embeddings")["point_id"][:1]))
    for _ in range(2):
        (problem,) = vector_problems(opened)
        assert problem.startswith("1 of 2 vectors are not in the index")


def test_vectors_of_zeros_are_told_and_made_again(opened: Workspace) -> None:
    stage = embed(opened)
    first = point_id(observation_id(UV))
    with open_index(opened.settings, stage.encoder.dimension) as index:
        whole = index.vectors([first])[first]
        index.upsert([Point(first, [0.0] * stage.encoder.dimension, {"date": f"{DAY}"})])
        assert set(index.vectors([first])[first]) == {0.0}
    assert vectors_of(opened.settings, stage.encoder, [observation_id(UV)]) == {}
    assert vector_problems(opened) == [
        "1 of 2 vectors are not in the index, 1 of them because they were zero or not numbers; "
        "`memory run --all` rebuilds them."
    ]
    assert not is_current(stage, opened.lake, DAY)
    again = embed(opened)
    assert vectors_of(opened.settings, again.encoder, [observation_id(UV)]) == {observation_id(UV): whole}
    assert vector_problems(opened) == []


@each("vector", [[0.0, 0.0], [float("nan"), 1.0], [float("inf"), 0.0], [1.0], [1.0, 0.0, 0.0]])
def test_what_is_no_vector_is_not_sound(vector: list[float]) -> None:
    assert not is_sound(vector, 2)
    assert is_sound([0.0, -1.0], 2)


def test_an_index_that_others_use_is_not_broken(opened: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_pipeline.embeddings.health.LOOK_SECONDS", 0.1)
    stage = embed(opened)
    with open_index(opened.settings, stage.encoder.dimension):
        assert vector_problems(opened) == []


@pytest.mark.parametrize("name", ["/nowhere/a-model", "nobody/no-such-model"])
def test_a_model_that_is_not_there_is_told_with_what_to_do(opened: Workspace, name: str) -> None:
    (problem,) = vector_problems(Workspace(changed(opened.settings, embedding_model=name), opened.lake))
    assert f"EMBEDDING_MODEL={name!r} cannot be loaded from this machine" in problem
    assert "fetch the model first" in problem


@pytest.mark.parametrize("damage", ["cut", "no table", "empty"])
def test_so_is_one_that_is_damaged(opened: Workspace, damage: str, tmp_path: Path) -> None:
    folder = tiny_model(tmp_path / "model")
    here = Workspace(changed(opened.settings, embedding_model=str(folder)), opened.lake)
    assert vector_problems(here) == []
    weights = folder / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes({"cut": whole[:-1], "no table": b"\x08" + bytes(7) + b"not JSON" + whole, "empty": b""}[damage])
    encoder_of.cache_clear()
    with pytest.raises(EncoderUnavailableError, match="cannot be loaded from this machine"):
        encoder_of(str(folder)).encode(["kiln"])


def test_the_collection_can_be_named(opened: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, object] = {}
    monkeypatch.setattr(
        "memory_pipeline.embeddings.server.ServerIndex", lambda url, size, **more: asked.update(more) or _Nothing()
    )
    named = changed(opened.settings, qdrant_url="http://127.0.0.1:1", qdrant_collection="mine")
    with open_index(named, FakeEncoder("uv").dimension):
        pass
    assert asked["collection"] == "mine-all-MiniLM-L6-v2-2-v3"
    assert generation(named) != generation(changed(named, qdrant_collection="memory_observations"))


class _Nothing:
    set_aside = None

    def close(self) -> None: ...


# --- tables ---


def test_a_damaged_table_that_can_be_made_again_is_set_aside(opened: Workspace) -> None:
    path = opened.lake.path("observations", DAY)
    for content in (b"", b"PAR1 nonsense PAR1"):
        path.write_bytes(content)
        assert opened.lake.read("observations").is_empty()
        assert opened.lake.fingerprint("observations", DAY) is None
        put(opened.lake, "observations", observation(UV))
    assert [p.name for p in set_aside_files(opened)] == [f"{DAY}.parquet.broken-{n}" for n in (1, 2)]
    assert set_aside_files(opened)[0].read_bytes() == b""
    assert opened.lake.days("observations") == [DAY]


@pytest.mark.parametrize("first", ["read", "fingerprint"])
def test_a_folder_in_the_place_of_a_table_is_set_aside(opened: Workspace, first: str) -> None:
    path = opened.lake.path("observations", DAY)
    path.unlink()
    path.mkdir()
    (path / "mine").touch()
    if first == "read":
        assert opened.lake.read("observations", [DAY]).is_empty()
    assert opened.lake.fingerprint("observations", DAY) is None
    put(opened.lake, "observations", observation(UV))
    assert opened.lake.read("observations").height == 1
    assert [p.name for p in set_aside_files(opened)] == [f"{DAY}.parquet.broken-1"]
    assert (set_aside_files(opened)[0] / "mine").exists()


def test_a_damaged_table_keeps_no_friction_from_being_found(opened: Workspace) -> None:
    (opened.settings.lake_dir / "sessions").mkdir(exist_ok=True)
    opened.lake.path("sessions", DAY).write_bytes(b"nonsense")
    stage = FrictionStage(opened)
    stage.settings = opened.settings.model_copy(update={"friction_min_points": 1})
    bring_up_to_date(stage, opened.lake, DAY)
    assert opened.lake.days("friction_clusters") == [DAY]
    assert len(set_aside_files(opened)) == 1


def test_a_plan_that_saw_a_file_before_it_was_set_aside_goes_on(opened: Workspace) -> None:
    planning = Lake(opened.settings.lake_dir, for_planning=True)
    before = planning.digest("observations", [DAY])
    shutil.move(opened.lake.path("observations", DAY), opened.settings.lake_dir / "elsewhere")
    planning.digest("observations", [DAY])
    assert before != opened.lake.digest("observations", [DAY])
