"""What the hook of tool calls reads: approved rules and live patterns with a cure, of each project."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.actions.files import remove_files
from memory_pipeline.actions.rules import PastCall, RuleError, back_test, describe, past_calls, set_mode
from memory_pipeline.agents.agents import BY_NAME
from memory_pipeline.agents.hooks import install
from memory_pipeline.agents.kit.tool_calls import signature
from memory_pipeline.friction.checks import Check, check_for
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.shown_to_agents import approved_rules, refresh_agents, write_hints
from memory_pipeline.settings import Settings
from memory_pipeline_tests.rows import DAY, decision, pattern, put, read_from, say, workspace

CWD = "/src/kiln"
ERROR = "Error: port 8080 is taken"
MEMORY = """# Memory

## Hard Rules

- (2025-03-01) Never run `git push --force`. <!-- p-20250301-001 -->
- (2025-03-01) Never edit `glaze.lock`. (project: kiln) <!-- p-20250301-002 -->
- (2025-03-01) ~~Never run `make clean`.~~ <!-- p-20250301-003 -->
- (2025-03-01) Glaze twice. <!-- p-20250301-004 -->
- Never run `rm -rf`.
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made, lake = workspace(tmp_path / "workspace")
    made.workspace.mkdir(exist_ok=True)
    made.memory_file.write_text(MEMORY)
    read_from(lake, "/kiln.jsonl", "kiln", CWD)
    return made


def lake_of(settings: Settings) -> Lake:
    return Lake.from_settings(settings)


def failed(lake: Lake, **other: Any) -> None:
    """A pattern of a failure that was cured, and the message with its error."""
    messages = say(lake, "s1", "user: Fire it.", "tool: Bash(command=make fire)", f"tool!: x\n{ERROR}\n")
    evidence = [{"message_id": messages[2]["message_id"], "start": 2, "end": 2 + len(ERROR)}]
    row = {
        "kind": "recurring_failure",
        "adds": f"`make fire` fails with “{ERROR}”: run `make cool` first.",
        "evidence": evidence,
        "projects": ["kiln"],
    }
    put(lake, "friction_clusters", pattern(1, "The port is taken", **(row | other)))


def known(settings: Settings, cwd: str = CWD) -> dict[str, Any]:
    write_hints(settings, lake_of(settings))
    folder = settings.actions_dir
    named = json.loads((folder / f"{zlib.crc32(cwd.encode()):08x}.json").read_text())["folders"][cwd]
    return dict(json.loads((folder / named).read_text()))


def test_rules_in_force_of_the_project_are_there(settings: Settings) -> None:
    read_from(lake_of(settings), "/shed.jsonl", "shed", "/src/shed", "s2")
    lines = [rule["line"] for rule in known(settings)["rules"]]
    assert lines == ["Never run `git push --force`.", "Never edit `glaze.lock`.", "Never run `rm -rf`."]
    assert "Never edit `glaze.lock`." not in [rule["line"] for rule in known(settings, "/src/shed")["rules"]]
    assert known(settings)["rules"][0]["evidence"] == "in MEMORY.md"
    put(lake_of(settings), "events", decision("p-20250301-001") | {"kind": "promoted", "text": "x"})
    assert known(settings)["rules"][0]["evidence"] == f"approved {DAY}"


def test_a_live_pattern_with_a_cure_is_found_by_its_error(settings: Settings) -> None:
    failed(lake_of(settings))
    (hints,) = [known(settings)["after"][signature(ERROR)]]
    assert [hint["words"] for hint in hints] == [["make", "fire"]]
    assert "run `make cool` first" in hints[0]["line"] and hints[0]["evidence"] == f"2 sessions, last {DAY}"


@pytest.mark.parametrize(
    "other",
    [
        {"adds": f"`make fire` fails with “{ERROR}”; check what it requires first."},
        {"kind": "repeated_correction"},
        {"ended_on": DAY},
        {"projects": ["shed"]},
    ],
    ids=["no cure", "another kind", "ended", "another project"],
)
def test_other_patterns_are_silent(settings: Settings, other: dict[str, Any]) -> None:
    failed(lake_of(settings), **other)
    assert known(settings)["after"] == {} == {**dict.fromkeys(known(settings)["before"])}


def test_a_pattern_whose_change_was_rejected_is_silent(settings: Settings) -> None:
    failed(lake_of(settings))
    put(lake_of(settings), "events", decision(f"f-{DAY:%Y%m%d}-001", "rejected"))
    assert known(settings)["after"] == {}


def test_a_replaced_command_is_known_before_it_runs(settings: Settings) -> None:
    adds = "`npm test` fails here with “no tests”; use `pnpm test`."
    failed(lake_of(settings), kind="tool_misuse", adds=adds)
    assert [hint["words"] for hint in known(settings)["before"]] == [["npm", "test"]]


def test_files_are_there_while_an_agent_has_the_hook(settings: Settings) -> None:
    assert refresh_agents(settings) == []
    assert not settings.actions_dir.exists()
    BY_NAME["pi"].home.mkdir(parents=True, exist_ok=True)
    install(settings, BY_NAME["pi"], actions=True)
    assert refresh_agents(settings) == []
    assert {path.name for path in settings.actions_dir.iterdir()} == {*_names(settings)}
    settings.memory_file.write_text("# Memory\n")
    assert refresh_agents(settings) == []
    assert [*settings.actions_dir.iterdir()] == []
    remove_files(settings)
    assert not settings.actions_dir.exists()


def _names(settings: Settings) -> list[str]:
    files = sorted(path.name for path in settings.actions_dir.iterdir())
    assert [name[:2] == "p-" for name in files].count(True) == 1 and len(files) == 3
    return files


def test_modes_are_stored_and_undone_by_the_byte(settings: Settings) -> None:
    first, second, _, third = approved_rules(settings, lake_of(settings))
    assert [first.mode, third.rule_id[:2]] == ["hint", "l-"]
    set_mode(settings, first, "deny")
    path = settings.workspace / "connections" / "rules.json"
    before = path.read_bytes()
    set_mode(settings, second, "observe")
    assert [rule.mode for rule in approved_rules(settings, lake_of(settings))] == ["deny", "observe", "hint", "hint"]
    assert known(settings)["rules"][0]["mode"] == "deny"
    set_mode(settings, second, "hint")
    assert path.read_bytes() == before
    set_mode(settings, first, "hint")
    assert not path.exists()


def test_a_mode_is_for_the_check_that_it_was_set_for(settings: Settings) -> None:
    set_mode(settings, approved_rules(settings, lake_of(settings))[0], "deny")
    settings.memory_file.write_text(MEMORY.replace("git push --force", "git push"))
    assert approved_rules(settings, lake_of(settings))[0].mode == "hint"


@pytest.mark.parametrize("text", ["{", "[]", '{"p-1": "deny"}', '{"p-1": ["always", ""]}'])
def test_an_unreadable_list_of_modes_is_one_sentence(settings: Settings, text: str) -> None:
    (settings.workspace / "connections").mkdir()
    (settings.workspace / "connections" / "rules.json").write_text(text)
    with pytest.raises(RuleError, match=r"rules\.json"):
        approved_rules(settings, lake_of(settings))


def test_the_calls_that_a_check_would_have_stopped(settings: Settings) -> None:
    lake = lake_of(settings)
    calls = [f"tool: Bash(command=git {word})" for word in ("status", "push --force", "push", "push origin --force")]
    say(lake, "s1", "user: Go.", *calls, "tool: pushed", "tool!: Bash(command=git push --force)")
    past = [*past_calls(lake), PastCall(DAY, "s2", "kiln", "edit", "edit(path=/src/kiln/glaze.lock, old=a)")]
    assert len(past) == 5
    push, glaze = check_for("Never run `git push --force`."), check_for("Never edit `glaze.lock`.")
    assert isinstance(push, Check) and isinstance(glaze, Check)
    found = back_test(push, "kiln", past)
    assert [describe(call) for call in found.stopped] == ["git push --force", "git push origin --force"]
    assert found.calls == 5 and not found.is_too_broad, "too few calls to say so"
    assert back_test(push, "kiln", past * 4).is_too_broad
    assert [describe(call) for call in back_test(glaze, None, past).stopped] == ["/src/kiln/glaze.lock"]
    patch = PastCall(DAY, "s2", "kiln", "apply_patch", "apply_patch(*** Begin Patch\n*** Update File: glaze.lock\n)")
    assert glaze.stops(patch.tool, patch.text) and not push.stops(patch.tool, patch.text)
    assert back_test(push, "shed", past[4:]).calls == 0
