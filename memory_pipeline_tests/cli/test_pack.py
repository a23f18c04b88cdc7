from __future__ import annotations

from pathlib import Path

from memory_pipeline.recall.usage import uses
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.rows import observation, put, workspace


def test_it_says_when_it_is_rebuilt(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path / "ws")
    put(lake, "observations", observation("Keep bricks dry."))
    env = {"MEMORY_WORKSPACE": str(settings.workspace)}
    kiln = tmp_path / "kiln"
    kiln.mkdir()
    first, second, third = (
        memory(tmp_path, "context", "--pack", "--project", str(kiln), *options, env=env)
        for options in ([], [], ["--rebuild"])
    )
    assert "Keep bricks dry." in first.stdout
    assert first.stdout == second.stdout == third.stdout
    assert [found.stderr for found in (first, second, third)] == [
        "Rebuilt: there was none.\n",
        "",
        "Rebuilt: requested.\n",
    ]
    assert [use["kind"] for _, use in uses(settings)] == ["pack", "pack"]
    assert memory_json(tmp_path, "context", "--pack", "--project", str(kiln), env=env)["rebuilt"] is None


def test_wrong_calls(tmp_path: Path) -> None:
    empty = memory(tmp_path, "context", "--pack")
    assert (empty.stdout, empty.returncode) == ("", 0)
    assert "Nothing is remembered yet" in empty.stderr
    unknown = memory(tmp_path, "context", "--pack", "--session", "nowhere")
    assert unknown.returncode == 1
    assert "'nowhere' is neither a file" in unknown.stderr
