"""`memory admin index`: what is searched, and how it is made anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from memory_pipeline.cli import index as command
from memory_pipeline.embeddings.health import vector_problems
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES
from memory_pipeline.embeddings.messages import MessageEmbeddingsStage, rebuild
from memory_pipeline.embeddings.opening import index_folder, open_index
from memory_pipeline.recall.search import search
from memory_pipeline.stages import is_current
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import DAY, FakeEncoder, day_after, observation, put, say, use_encoder
from memory_pipeline_tests.rows import workspace as new_workspace

TTL = "Redis keys of the cart expire after 45 minutes."


@pytest.fixture
def encoder(monkeypatch: pytest.MonkeyPatch) -> FakeEncoder:
    made = FakeEncoder("cart", name="all-MiniLM-L6-v2", dimension=384)
    use_encoder(monkeypatch, made)
    monkeypatch.setattr("memory_pipeline.embeddings.opening._down", {})
    return made


@pytest.fixture
def opened(tmp_path: Path, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    settings, lake = new_workspace(tmp_path)
    say(lake, "s1", f"user: {TTL}", "assistant: Done.")
    say(lake, "s2", "user: The panel is red.", day=day_after(1))
    put(lake, "observations", observation(TTL))
    monkeypatch.setattr(command, "active_settings", lambda: settings)
    made = Workspace(settings, lake)
    rebuild(made, [day_after(1), DAY], lambda day: None)
    return made


def call(*args: str, expected: int = 0) -> str:
    done = CliRunner().invoke(command.app, list(args))
    assert done.exit_code == expected, done.output
    return done.stdout


def test_status_says_what_is_searched_and_what_is_left_over(opened: Workspace) -> None:
    (opened.settings.index_dir / "all-MiniLM-L6-v2").mkdir()
    told = json.loads(call("--json"))
    messages, observations = told["collections"]
    assert messages["searched"] == index_folder(opened.settings, 384, MESSAGES).name
    assert (messages["points"], observations["points"]) == (5, 1)  # three passages in two sessions
    assert [Path(row["folder"]).name for row in told["left_over"]] == ["all-MiniLM-L6-v2"]
    assert "Left over:" in call()


def test_a_rebuild_encodes_everything_anew_and_removes_what_is_left_over(
    opened: Workspace, encoder: FakeEncoder
) -> None:
    old = opened.settings.index_dir / "all-MiniLM-L6-v2"
    old.mkdir()
    encoder.encoded.clear()
    assert "2 days are indexed." in call("rebuild", "--yes")
    assert sorted(encoder.encoded) == sorted([TTL, TTL, "Done.", "The panel is red."])
    assert not old.exists()
    assert search(opened.settings, "redis keys").hits[0].text == TTL


def test_a_rebuild_that_was_killed_is_ended_by_the_next_run(opened: Workspace, encoder: FakeEncoder) -> None:
    stage = MessageEmbeddingsStage(opened, encoder)  # type: ignore[arg-type]

    def killed(day: object) -> None:
        raise KeyboardInterrupt

    for base in (COLLECTION, MESSAGES):
        command.remove_collections(opened.settings, base)
    with pytest.raises(KeyboardInterrupt):
        rebuild(opened, [day_after(1), DAY], killed)
    assert is_current(stage, opened.lake, day_after(1)) and not is_current(stage, opened.lake, DAY)
    assert search(opened.settings, "the panel").hits[0].text == "The panel is red."  # what is there is searched
    rebuild(opened, [DAY], lambda day: None)
    assert search(opened.settings, "redis keys").hits[0].text == TTL


def test_nothing_is_removed_unasked(opened: Workspace) -> None:
    assert CliRunner().invoke(command.app, ["rebuild"], input="n\n").exit_code == 2
    assert index_folder(opened.settings, 384, MESSAGES).exists()


def test_a_workspace_without_an_index_says_what_to_do(
    tmp_path: Path, encoder: FakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, _ = new_workspace(tmp_path)
    monkeypatch.setattr(command, "active_settings", lambda: settings)
    assert call().count("nothing is indexed yet; `memory run` indexes it") == 2


def test_passages_that_the_index_lost_are_told_and_made_again(opened: Workspace, encoder: FakeEncoder) -> None:
    with open_index(opened.settings, encoder.dimension, MESSAGES) as index:
        index.delete(list(index.ids(DAY))[:1])
    (problem,) = vector_problems(opened)
    assert problem == "1 of 5 passages are not in the index; `memory run --all` rebuilds them."
    stage = MessageEmbeddingsStage(opened, encoder)  # type: ignore[arg-type]
    assert not is_current(stage, opened.lake, DAY) and is_current(stage, opened.lake, day_after(1))
    rebuild(opened, [DAY], lambda day: None)
    assert vector_problems(opened) == []
