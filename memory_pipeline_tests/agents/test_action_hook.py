"""The hook of tool calls itself: one line, at most three per session, and the call goes on whatever happens."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.agents.hooks import ACTION_SCRIPT

FOLDER = "/src/kiln"
FORBIDDEN = {
    "id": "p-20260302-001",
    "line": "Never run `git push --force`.",
    "evidence": "approved 2026-03-02",
    "mode": "hint",
    "check": {"kind": "command", "commands": [["git", "push", "--force"]]},
}
REPLACED = {
    "id": "f-20260302-001",
    "line": "`npm test` fails here with “no tests”; use `pnpm test`.",
    "evidence": "4 sessions, last 2026-03-01",
    "words": ["npm", "test"],
}
CURE = {
    "id": "f-20260302-002",
    "line": "`make fire` fails with “port # is taken”: run `make cool` first.",
    "evidence": "2 sessions, last 2026-03-01",
    "words": ["make", "fire"],
}
PUSH = {"command": "git push --force origin main"}
AGENTS = ["claude", "codex", "pi", "opencode", "gemini"]


class Hook:
    """What an agent calls, with a workspace that knows one project."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder
        self.actions = folder / "connections" / "actions"
        self.actions.mkdir(parents=True)
        named = {"folders": {FOLDER: "p-1.json"}}
        (self.actions / f"{zlib.crc32(FOLDER.encode()):08x}.json").write_text(json.dumps(named))
        self.know("hint")

    def know(self, mode: str, **more: Any) -> None:
        known = {
            "rules": [{**FORBIDDEN, "mode": mode}],
            "before": [REPLACED],
            "after": {"error: port # is taken": [CURE]},
            **more,
        }
        (self.actions / "p-1.json").write_text(json.dumps(known))

    def call(self, event: str, arguments: Any, agent: str = "claude", tool: str = "Bash", **more: Any) -> str:
        """What it prints. It must end well, and say nothing on stderr."""
        options = more.pop("options", {})
        payload = {"session_id": "s", "cwd": f"{FOLDER}/oven", "tool_name": tool, "tool_input": arguments, **more}
        command = [sys.executable, "-I", "-S", str(ACTION_SCRIPT), str(self.workspace), agent, event]
        done = subprocess.run(command, input=json.dumps(payload), capture_output=True, text=True, **options)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    @property
    def shown(self) -> list[dict[str, str]]:
        path = self.actions / "shown.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def problems(self) -> str:
        log = self.workspace / "connections" / "hooks.log"
        return log.read_text() if log.exists() else ""


@pytest.fixture
def hook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hook:
    """The hook with all the time that a busy machine needs."""
    kit = tmp_path / "kit"
    kit.mkdir()
    for path in ACTION_SCRIPT.parent.glob("*.py"):
        (kit / path.name).write_text(path.read_text().replace("SECONDS = 0.5", "SECONDS = 300.0"))
    monkeypatch.setattr(f"{__name__}.ACTION_SCRIPT", kit / ACTION_SCRIPT.name)
    return Hook(tmp_path / "workspace")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_rule_is_told_where_the_agent_reads_it(hook: Hook, agent: str) -> None:
    """Claude Code and Codex take text before a call, the others only with its result."""
    before = hook.call("before", PUSH, agent, hook_event_name="PreToolUse")
    after = hook.call("after", PUSH, agent, tool_response="done")
    said, silent = (before, after) if agent in ("claude", "codex") else (after, before)
    assert silent == ""
    answer = json.loads(said)
    text = answer["text"] if agent in ("pi", "opencode") else answer["hookSpecificOutput"]["additionalContext"]
    first, line, last = text.splitlines()
    assert first.startswith("<memory-pipeline note=") and "data" in first and last == "</memory-pipeline>"
    assert line == "Never run `git push --force`. (approved 2026-03-02)"
    assert [(entry["id"], entry["as"], entry["agent"]) for entry in hook.shown] == [(FORBIDDEN["id"], "hint", agent)]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("mode", ["deny", "ask"])
def test_a_call_is_stopped_in_the_form_that_the_agent_reads(hook: Hook, agent: str, mode: str) -> None:
    hook.know(mode)
    answer = json.loads(hook.call("before", PUSH, agent))
    reason = "Never run `git push --force`. (approved 2026-03-02)"
    told = f"{reason} Ask the user before you do this." if mode == "ask" else reason
    if agent in ("pi", "opencode"):
        assert answer == {"stop": told, "ask": reason if mode == "ask" else ""}
    elif agent == "gemini":
        assert answer == {"decision": "deny", "reason": told}
    else:
        asks = mode == "ask" and agent == "claude"
        assert answer["hookSpecificOutput"] == {
            "hookEventName": "PreToolUse",
            "permissionDecision": "ask" if asks else "deny",
            "permissionDecisionReason": reason if asks else told,
        }
    assert [entry["as"] for entry in hook.shown] == [mode]
    assert hook.call("before", {"command": "git push"}, agent) == ""


def test_the_strictest_rule_counts(hook: Hook) -> None:
    asking, denying = {**FORBIDDEN, "mode": "ask"}, {**FORBIDDEN, "id": "p-2", "line": "No pushes.", "mode": "deny"}
    hook.know("hint", rules=[asking, denying])
    answer = json.loads(hook.call("before", PUSH))["hookSpecificOutput"]
    assert (answer["permissionDecision"], answer["permissionDecisionReason"][:10]) == ("deny", "No pushes.")


@pytest.mark.parametrize("agent", ["codex", "opencode", "gemini"])
def test_after_the_user_was_asked_the_call_goes_on(hook: Hook, agent: str) -> None:
    hook.know("ask")
    assert "Ask the user" in hook.call("before", PUSH, agent)
    assert hook.call("before", PUSH, agent) == ""
    assert "Ask the user" in hook.call("before", PUSH, agent, session_id="another")


def test_a_rule_for_every_project_holds_in_a_new_repository(hook: Hook, tmp_path: Path) -> None:
    everywhere = {"rules": [{**FORBIDDEN, "mode": "deny"}], "before": [], "after": {}}
    (hook.actions / "everywhere.json").write_text(json.dumps(everywhere))
    new = tmp_path / "new"
    (new / ".git").mkdir(parents=True)
    named = {"folders": {f"{tmp_path}": "p-1.json"}}  # a session in the folder above belongs to another project
    (hook.actions / f"{zlib.crc32(f'{tmp_path}'.encode()):08x}.json").write_text(json.dumps(named))
    assert "deny" in hook.call("before", PUSH, cwd=f"{new}")
    assert "pnpm" in hook.call("before", {"command": "npm test"}, cwd=f"{tmp_path}/notes")


def test_a_command_that_is_always_replaced_is_told_before_it_runs(hook: Hook) -> None:
    assert "use `pnpm test`. (4 sessions, last 2026-03-01)" in hook.call("before", {"command": "cd a && npm test"})
    assert hook.call("before", {"command": "npm test"}) == "", "once in a session"
    assert "pnpm" in hook.call("before", {"command": "npm test"}, session_id="another")


@pytest.mark.parametrize(
    "result",
    [
        {"error": "Error: port 8080 is taken"},
        {"tool_response": {"stdout": "", "stderr": "x\nError: port 99 is taken\n"}},
        {"tool_response": "Exit code: 1\nOutput:\n  Error: port 1234 is taken", "is_error": True},
    ],
)
def test_a_failure_is_told_its_cure_once(hook: Hook, result: dict[str, Any]) -> None:
    assert "run `make cool` first. (2 sessions" in hook.call("after", {"command": "make fire"}, **result)
    assert hook.call("after", {"command": "make fire"}, **result) == ""


def test_the_same_words_elsewhere_are_no_failure(hook: Hook) -> None:
    error = "Error: port 8080 is taken"
    assert hook.call("after", {"command": "cat notes.txt"}, tool_response=error) == ""
    assert hook.call("after", {"command": "make fire"}, tool_response=error, is_error=False) == ""
    assert hook.call("after", {"file_path": "x"}, tool="Read", error=error) == ""


def test_a_sub_agent_is_told_what_its_parent_knows(hook: Hook) -> None:
    contexts: tuple[dict[str, str], ...] = ({}, {"agent_id": "a1b2"})
    for more in contexts:
        assert "pnpm" in hook.call("before", {"command": "npm test"}, **more)
        assert hook.call("before", {"command": "npm test"}, **more) == ""
    assert [entry["session"] for entry in hook.shown] == ["s", "s/a1b2"]


def test_a_session_is_shown_three_lines(hook: Hook) -> None:
    hints = [{**REPLACED, "id": f"f-{n}", "words": ["tool", str(n)]} for n in range(9)]
    hook.know("hint", before=hints)
    with ThreadPoolExecutor(4) as pool:  # an agent may run calls side by side
        said = list(pool.map(lambda n: hook.call("before", {"command": f"tool {n}"}), range(9)))
    assert sum(map(bool, said)) == 3 == len(hook.shown)


def test_a_line_has_two_hundred_characters_at_most(hook: Hook) -> None:
    hook.know("hint", before=[{**REPLACED, "line": "x" * 1_000}])
    text = json.loads(hook.call("before", {"command": "npm test"}))["hookSpecificOutput"]["additionalContext"]
    assert len(text.splitlines()[1]) == 200 and text.splitlines()[1].endswith("last 2026-03-01)")


@pytest.mark.parametrize(
    "payload",
    [
        {"cwd": "/elsewhere"},
        {"cwd": None},
        {"cwd": "relative"},
        {"tool_name": None},
        {"tool_input": None},
        {"tool_input": {"command": 7}},
        {"tool_input": {"command": "'" * 100_000}},
        {"tool_input": {"command": "\x00\ud800"}},
    ],
)
def test_nothing_is_said_of_what_is_not_known(hook: Hook, payload: dict[str, Any]) -> None:
    arguments = payload.pop("tool_input", PUSH)
    tool = payload.pop("tool_name", "Bash")
    assert hook.call("before", arguments, tool=tool, **payload) == ""
    assert hook.problems == ""


def test_a_damaged_file_lets_the_call_go_on(hook: Hook) -> None:
    (hook.actions / "p-1.json").write_text('{"rules": [')
    assert hook.call("before", PUSH) == ""
    assert "claude before: JSONDecodeError" in hook.problems


def test_a_full_disk_lets_the_call_go_on(hook: Hook) -> None:
    full = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))}
    assert hook.call("before", PUSH, options=full) == ""
    hook.know("deny")
    assert "deny" in hook.call("before", PUSH, options=full)


def test_a_hook_that_takes_too_long_ends(tmp_path: Path) -> None:
    """A named pipe in the place of the file never answers."""
    hook = Hook(tmp_path)
    (hook.actions / "p-1.json").unlink()
    os.mkfifo(hook.actions / "p-1.json")
    assert hook.call("before", PUSH) == ""
    assert "took longer than 0.5 s" in hook.problems


def test_a_session_of_the_pipeline_itself_gets_nothing(hook: Hook) -> None:
    assert hook.call("before", PUSH, options={"env": {"MEMORY_PIPELINE_INSIDE": "1"}}) == ""
