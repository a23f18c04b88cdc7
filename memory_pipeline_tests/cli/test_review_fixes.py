"""Friction fixes at the command line: listed, decided by options and by keys, and what there is left to do is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.cli.terminal import Terminal
from memory_pipeline_tests.rows import fixable, proposal, put, rule_pattern, say, workspace

LINE, RULE = "Never use npm in this repository, always pnpm.", "Always glaze after the first firing."
PROPOSED, MEMORY, AGENTS = "p-20250305-001", "f-20250305-001", "f-20250305-002"
DIFF = "--- AGENTS.md\n+## Tests\n+    pytest -x"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A proposal, a fix for MEMORY.md and one for the AGENTS.md of a repository."""
    _, lake = workspace(tmp_path / ".memory-pipeline")
    say(lake, "s1", "user: No, glaze after the first firing!")
    put(lake, "proposals", proposal(1, LINE))
    slow = fixable(2, "The tests run too long", change=DIFF, section="Tests", severity=1.0)
    put(lake, "friction_clusters", rule_pattern(1, RULE, low_risk=True), slow)
    return tmp_path


def status(home: Path) -> dict[str, str]:
    return dict(ProposalLog(Lake(home / ".memory-pipeline" / "lake")).status)


def test_the_list_shows_what_happened_and_the_exact_change(home: Path) -> None:
    text = memory(home, "review", "--list").stdout
    assert text.index(PROPOSED) < text.index(MEMORY) < text.index(AGENTS)
    assert "**The tests run too long** — 3 times in 2 sessions since 2025-03-05, about 12 minutes." in text
    assert "\n  --- AGENTS.md\n  +## Tests\n  +    pytest -x\n" in text
    assert f"\n  + {RULE}\n" in text
    assert "“No, glaze after the first firing!”" in text
    listed = {p["proposal_id"]: p for p in memory_json(home, "review")["pending"]}
    assert listed[AGENTS]["change"] == DIFF.split("\n")
    assert listed[AGENTS]["section"] == "AGENTS.md"
    assert "change" not in listed[PROPOSED]


def test_options_decide_and_say_where_a_change_goes(home: Path) -> None:
    memory(home, "review", "--list")
    result = memory(home, "review", "--approve", MEMORY, "--approve", AGENTS, "--reject", PROPOSED)
    assert f"{MEMORY} is in " in result.stdout
    told = f"{AGENTS}: make this change in AGENTS.md, Tests, or have your agent make it:\n"
    assert told + "  --- AGENTS.md\n  +## Tests\n  +    pytest -x\n" in result.stdout
    assert status(home) == {PROPOSED: "rejected", MEMORY: "approved", AGENTS: "approved"}
    assert RULE in (home / ".memory-pipeline" / "MEMORY.md").read_text("utf-8")
    why = memory(home, "why", AGENTS).stdout
    assert "left to you" in why
    assert "    +    pytest -x" in why


def test_an_unknown_fix_is_a_sentence(home: Path) -> None:
    result = memory(home, "review", "--approve", "f-20250305-099")
    assert result.returncode == 1
    assert result.stderr == "There is no proposal f-20250305-099; `memory review` lists the pending ones.\n"


def test_status_counts_fixes_and_says_what_is_left(home: Path) -> None:
    memory(home, "review", "--approve", AGENTS)
    data = memory_json(home, "status")
    assert data["friction_fixes"] == {"approved": 1, "pending": 1}
    assert data["proposals"] == {"pending": 1}
    assert list(data["fixes_to_make"]) == [AGENTS]
    text = memory(home, "status").stdout
    assert f"{AGENTS}: make this change in AGENTS.md, Tests, or have your agent make it; `memory why ID`" in text


def test_keys_show_and_decide_them(home: Path) -> None:
    with Terminal(home, "review") as terminal:
        terminal.sees("1 of 3")
        terminal.press("l")
        terminal.sees(f"2 of 3 · {MEMORY}")
        terminal.sees("Target: MEMORY.md, Hard Rules.")
        terminal.sees(f"+ {RULE}")
        terminal.sees("“No, glaze after the first firing!”")
        terminal.sees("/sessions/s1.jsonl:1")
        terminal.sees(f"and 2 more: `memory why {MEMORY}`")
        terminal.press("e and twice\n")
        terminal.sees("approved as: ")
        terminal.sees(f"3 of 3 · {AGENTS}")
        terminal.sees("+    pytest -x")
        terminal.press("e")
        terminal.sees("Only an added line can be edited.")
        terminal.press("a")
        terminal.sees("There are no more proposals.")
        terminal.press("q")
        terminal.sees("make this change in AGENTS.md, Tests")
        assert terminal.ends() == 0
    assert status(home) == {PROPOSED: "pending", MEMORY: "approved", AGENTS: "approved"}
    assert f"{RULE} and twice" in (home / ".memory-pipeline" / "MEMORY.md").read_text("utf-8")
