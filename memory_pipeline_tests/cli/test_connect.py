"""`memory agents connect` and `memory agents disconnect` as a person runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.rows import read_from

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
    shown = memory(home, "agents", "connect", "codex")
    assert shown.returncode == 2 and "--yes" in shown.stderr
    assert f"{home}/.codex/AGENTS.md (changed)" in shown.stdout and "+- use uv" in shown.stdout
    assert (home / ".codex/AGENTS.md").read_text() == "mine"
    assert not (home / ".memory-pipeline/connections").exists()


def test_connecting_and_back(home: Path) -> None:
    done = memory(home, "agents", "connect", "claude", "--yes")
    assert done.returncode == 0, done.stderr
    assert "1 of 2 approved lines go into" in done.stdout
    assert "\n@~/.memory-pipeline/connections/MEMORY.md\n" in (home / ".claude/CLAUDE.md").read_text()
    assert "use uv" in (home / ".memory-pipeline/connections/MEMORY.md").read_text()
    assert memory_json(home, "agents")["agents"]["claude"] == "connected"
    assert "already" in memory(home, "agents", "connect", "claude").stdout
    assert "claude: connected" in memory(home, "status").stdout

    undone = memory(home, "agents", "disconnect", "claude", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert [path.name for path in (home / ".claude").iterdir()] == []
    assert "not connected" in memory(home, "agents", "disconnect", "claude").stdout


def test_how_many_lines_go_where_is_said_before_it_asks(home: Path) -> None:
    asked = memory(home, "agents", "connect", "codex")
    assert asked.returncode == 2
    assert asked.stdout.splitlines()[:2] == [
        f"1 of 2 approved lines go into {home}/.codex/AGENTS.md.",
        "1 apply elsewhere: `memory agents connect codex` is for lines of every project, `--project DIR` for those of "
        "one; `memory agents hooks install codex` gives each session its own.",
    ]
    (home / ".memory-pipeline/MEMORY.md").write_text("- return 404 (project: kiln)\n- white sails (project: sloop)\n")
    none = memory(home, "agents", "connect", "claude").stdout
    assert none.startswith(f"0 of 2 approved lines go into {home}/.memory-pipeline/connections/MEMORY.md, which ")


def test_a_project_is_asked_for_by_its_name_too(home: Path) -> None:
    (home / "kiln/src").mkdir(parents=True)
    (home / "kiln/.git").mkdir()
    lake = Lake(home / ".memory-pipeline/lake")
    read_from(lake, "/s/1.jsonl", "kiln", str(home / "kiln"), "s1")
    read_from(lake, "/s/2.jsonl", "kiln", str(home / "kiln"), "s2")
    read_from(lake, "/s/3.jsonl", "sloop", "/nowhere/sloop", "s3")
    done = memory(home, "agents", "connect", "codex", "--project", "kiln", "--yes")
    assert done.returncode == 0, done.stderr
    assert "- return 404" in (home / "kiln/AGENTS.md").read_text()
    gone = memory(home, "agents", "connect", "codex", "--project", "sloop", "--yes")
    assert gone.returncode == 1
    assert "none of its folders is on this machine" in gone.stderr


def test_a_project_has_a_file_of_its_own(home: Path) -> None:
    (home / "kiln/.git").mkdir(parents=True)
    done = memory(home, "agents", "connect", "codex", "--project", str(home / "kiln"), "--yes")
    assert done.returncode == 0, done.stderr
    text = (home / "kiln/AGENTS.md").read_text()
    assert "- return 404" in text and "use uv" not in text
    assert "do not commit" in done.stdout
    assert memory(home, "agents", "disconnect", "codex", "--project", str(home / "kiln"), "--yes").returncode == 0
    assert not (home / "kiln/AGENTS.md").exists()


@pytest.mark.parametrize(
    ("args", "code", "sentence"),
    [
        (
            ("agents", "connect", "emacs"),
            2,
            "'emacs': no such agent; expected one of claude, codex, pi, opencode, gemini.",
        ),
        (("agents", "disconnect", "emacs"), 2, "no such agent"),
        (("agents", "connect", "gemini", "--yes"), 1, "Gemini CLI is not installed"),
        (
            ("agents", "connect", "codex", "--project", "nowhere", "--yes"),
            2,
            "There is no folder 'nowhere'. No session of",
        ),
    ],
)
def test_what_cannot_be_done_is_a_sentence(args: tuple[str, ...], code: int, sentence: str, home: Path) -> None:
    done = memory(home, *args)
    assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_memory_there_is_nothing_to_show(home: Path) -> None:
    (home / ".memory-pipeline/MEMORY.md").unlink()
    done = memory(home, "agents", "connect", "codex", "--yes")
    assert done.returncode == 1
    assert "MEMORY.md does not exist yet" in done.stderr and "memory review" in done.stderr
    assert [*(home / ".codex").iterdir()] == []


def test_a_file_that_cannot_be_written_is_named(home: Path) -> None:
    (home / ".codex/AGENTS.md").mkdir()
    done = memory(home, "agents", "connect", "codex", "--yes")
    assert done.returncode == 1
    assert f"{home}/.codex/AGENTS.md: is a directory" in done.stderr
