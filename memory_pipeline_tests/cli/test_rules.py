"""`memory agents rules` as a person uses it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.rows import say, workspace

RULE, BROAD = "p-20250301-001", "p-20250301-002"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    _, lake = workspace(home / ".memory-pipeline")
    say(lake, "s1", "user: Go.", *[f"tool: Bash(command=git log -{n})" for n in range(19)], "tool: Bash(command=rm x)")
    (home / ".memory-pipeline/MEMORY.md").write_text(
        f"## Hard Rules\n\n- (2025-03-01) Never run `rm`. <!-- {RULE} -->\n"
        f"- (2025-03-01) Never run `git`. <!-- {BROAD} -->\n- (2025-03-01) Glaze twice. <!-- p-20250301-003 -->\n"
    )
    return home


def test_a_rule_is_tested_on_the_past_before_it_stops_anything(home: Path) -> None:
    listed = memory(home, "agents", "rules").stdout
    assert "hint: `rm` is never run; would have stopped 1 of 20 past calls" in listed
    assert "not checked: it names no command, flag or file" in listed
    shown = memory(home, "agents", "rules", "show", RULE).stdout
    assert "2025-03-05  s1  rm x" in shown

    unasked = memory(home, "agents", "rules", "set", RULE, "deny")
    assert unasked.returncode == 2 and "--yes" in unasked.stderr
    done = memory(home, "agents", "rules", "set", RULE, "deny", "--yes")
    assert done.returncode == 0 and "From hint to deny: such a call is stopped." in done.stdout
    rules = json.loads(memory(home, "agents", "rules", "--json").stdout)
    assert [rule["mode"] for rule in rules] == ["deny", "hint", None]
    assert rules[0]["stopped"] == [{"day": "2025-03-05", "session_id": "s1", "call": "rm x"}]

    broad = memory(home, "agents", "rules", "set", BROAD, "deny", "--yes")
    assert broad.returncode == 1 and "would have stopped 19 of 20 past calls" in broad.stderr
    assert memory(home, "agents", "rules", "set", BROAD, "observe", "--yes").returncode == 0


def test_a_line_that_changes_is_a_hint_again_with_a_new_test(home: Path) -> None:
    assert memory(home, "agents", "rules", "set", RULE, "deny", "--yes").returncode == 0
    path = home / ".memory-pipeline/MEMORY.md"
    path.write_text(path.read_text().replace("Never run `rm`.", "Never run `git log -1`."))
    listed = memory(home, "agents", "rules").stdout
    assert "hint: `git log -1` is never run; would have stopped 1 of 20 past calls" in listed
    assert "git log -1\n" in memory(home, "agents", "rules", "show", RULE).stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("p-1", "deny"), "no such rule"),
        ((RULE, "always"), "no such mode; expected one of hint, observe, ask, deny"),
        (("p-20250301-003", "deny"), "Code cannot check “Glaze twice.”"),
    ],
)
def test_what_cannot_be_set_says_why(home: Path, arguments: tuple[str, str], sentence: str) -> None:
    done = memory(home, "agents", "rules", "set", *arguments, "--yes")
    assert done.returncode == 2 and sentence in done.stderr
