"""`memory agents hooks` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memory_pipeline_tests.cli.command import memory


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in (".codex", ".claude"):
        (tmp_path / "home" / folder).mkdir(parents=True)
    (tmp_path / "home/.claude/settings.json").write_text('{"model": "opus"}')
    return tmp_path / "home"


def test_what_would_change_is_shown_and_nothing_is_done_unasked(home: Path) -> None:
    shown = memory(home, "agents", "hooks", "install", "claude")
    assert shown.returncode == 2 and "--yes" in shown.stderr
    assert f"{home}/.claude/settings.json (changed)" in shown.stdout and "SessionStart" in shown.stdout
    assert (home / ".claude/settings.json").read_text() == '{"model": "opus"}'


def test_installing_and_back(home: Path) -> None:
    done = memory(home, "agents", "hooks", "install", "claude", "--yes")
    assert done.returncode == 0, done.stderr
    assert "mostly takes longer than the second" in done.stdout and "writes its own" in done.stdout
    settings = json.loads((home / ".claude/settings.json").read_text())
    assert settings["model"] == "opus" and settings["hooks"]["SessionStart"]
    assert "already" in memory(home, "agents", "hooks", "install", "claude").stdout
    assert "claude: hooks" in memory(home, "status").stdout
    (home / ".memory-pipeline/connections/hooks.log").write_text("2026-01-01T00:00:00Z claude start: took longer\n")
    found = json.loads(memory(home, "agents", "--json").stdout)
    assert found["hooks"] == {"claude": "hooks"}
    assert found["last_problems"] == ["2026-01-01T00:00:00Z claude start: took longer"]
    shown = memory(home, "agents").stdout
    assert "took longer" in shown and "not connected, hooks (" in shown

    undone = memory(home, "agents", "hooks", "remove", "claude", "--yes")
    assert undone.returncode == 0, undone.stderr
    assert (home / ".claude/settings.json").read_text() == '{"model": "opus"}'
    assert "no hooks of memory_pipeline" in memory(home, "agents", "hooks", "remove", "claude").stdout


def test_codex_asks_for_trust(home: Path) -> None:
    done = memory(home, "agents", "hooks", "install", "codex", "--yes")
    assert done.returncode == 0 and "trust" in done.stdout


@pytest.mark.parametrize(
    ("agent", "code", "sentence"),
    [("emacs", 2, "no such agent"), ("pi", 1, "pi is not installed"), ("gemini", 1, "Gemini CLI is not installed")],
)
def test_what_cannot_be_done_is_a_sentence(agent: str, code: int, sentence: str, home: Path) -> None:
    done = memory(home, "agents", "hooks", "install", agent, "--yes")
    assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr


def test_settings_that_are_no_json_are_named_with_their_line(home: Path) -> None:
    (home / ".claude/settings.json").write_text("{\n  model: 1}")
    done = memory(home, "agents", "hooks", "install", "claude", "--yes")
    assert done.returncode == 1
    assert f"{home}/.claude/settings.json, line 2, column 3: Expecting property name" in done.stderr
    assert (home / ".claude/settings.json").read_text() == "{\n  model: 1}"
