"""`memory connect` and `memory disconnect` as a person runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_pipeline_tests.cli.command import memory, memory_json

MEMORY = """## Hard Rules
- (2026-03-02) use uv <!-- p-20260302-001 -->
- (2026-03-02) return 404 (project: kiln) <!-- p-20260302-002 -->
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in (".codex", ".claude", ".memory-pipeline"):
        (tmp_path / "home" / folder).mkdir(parents=True)
    (tmp_path / "home/.memory-pipeline/MEMORY.md").write_text(MEMORY)
    return tmp_path / "home"


def test_what_would_change_is_shown_and_nothing_is_done_unasked(home: Path) -> None:
    (home / ".codex/AGENTS.md").write_text("mine")
    shown = memory(home, "connect", "codex")
    assert shown.returncode == 2 and "--yes" in shown.stderr
    assert f"{home}/.codex/AGENTS.md (changed)" in shown.stdout and "+- use uv" in shown.stdout
    assert (home / ".codex/AGENTS.md").read_text() == "mine"
    assert not (home / ".memory-pipeline/connections").exists()


def test_connecting_and_back(home: Path) -> None:
    done = memory(home, "connect", "claude", "--yes")
    assert done.returncode == 0, done.stderr
    assert "kiln" in done.stdout  # whose line is not among them
    assert "\n@~/.memory-pipeline/connections/MEMORY.md\n" in (home / ".claude/CLAUDE.md").read_text()
    assert "use uv" in (home / ".memory-pipeline/connections/MEMORY.md").read_text()
    assert memory_json(home, "connect")["agents"]["claude"] == "connected"
    assert "already" in memory(home, "connect", "claude").stdout
    assert "claude: connected" in memory(home, "status").stdout

    undone = memory(home, "disconnect", "claude", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert [path.name for path in (home / ".claude").iterdir()] == []
    assert "not connected" in memory(home, "disconnect", "claude").stdout


def test_a_project_has_a_file_of_its_own(home: Path) -> None:
    (home / "kiln/.git").mkdir(parents=True)
    done = memory(home, "connect", "codex", "--project", str(home / "kiln"), "--yes")
    assert done.returncode == 0, done.stderr
    text = (home / "kiln/AGENTS.md").read_text()
    assert "- return 404" in text and "use uv" not in text
    assert "do not commit" in done.stdout
    assert memory(home, "disconnect", "codex", "--project", str(home / "kiln"), "--yes").returncode == 0
    assert not (home / "kiln/AGENTS.md").exists()


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (("connect", "emacs"), 2, "'emacs': no such agent; expected one of claude, codex, pi, opencode, gemini."),
        (("disconnect", "emacs"), 2, "no such agent"),
        (("connect", "gemini", "--yes"), 1, "Gemini CLI is not installed"),
        (("connect", "codex", "--project", "nowhere", "--yes"), 1, "expected the folder of a project"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(args: tuple[str, ...], code: int, sentence: str, home: Path) -> None:
    done = memory(home, *args)
    assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_memory_there_is_nothing_to_show(home: Path) -> None:
    (home / ".memory-pipeline/MEMORY.md").unlink()
    done = memory(home, "connect", "codex", "--yes")
    assert done.returncode == 1
    assert "MEMORY.md is not there yet" in done.stderr and "memory review" in done.stderr
    assert [*(home / ".codex").iterdir()] == []


def test_a_file_that_cannot_be_written_is_named(home: Path) -> None:
    (home / ".codex/AGENTS.md").mkdir()
    done = memory(home, "connect", "codex", "--yes")
    assert done.returncode == 1
    assert f"{home}/.codex/AGENTS.md: is a directory" in done.stderr
