"""The ready commands of the agents, with a program in each one's place that writes down how it was called."""

from __future__ import annotations

import json
import os
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.llm.agents import AGENTS, BY_NAME, Agent
from memory_pipeline.llm.backends.command import CommandBackend
from memory_pipeline.llm.client import backend_of
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.errors import ModelMisconfiguredError, TransientError
from memory_pipeline.llm.prompts import MARKER, VARIABLE
from memory_pipeline.llm.request import Request
from memory_pipeline.redaction import Redactor
from memory_pipeline.settings.model_names import model_name
from memory_pipeline_tests.cases import each

RECORD = """#!{python}
import json, os, sys
called = {{"argv": sys.argv[1:], "stdin": sys.stdin.read(), "env": dict(os.environ), "files": os.listdir()}}
json.dump(called, open({path!r}, "w"))
print("Answered.")
"""
SYSTEM = 'Keep "what" they said; $HOME and `ls` too.'
ARGV = {
    "claude": [
        *("-p", "--tools", "", "--strict-mcp-config", "--disable-slash-commands", "--setting-sources", ""),
        *("--no-session-persistence", "--system-prompt", SYSTEM),
    ],
    "llm": ["prompt", "--no-log", "--no-stream", "--system", SYSTEM],
    "pi": [
        *("-p", "--no-session", "--no-tools", "--no-extensions", "--no-skills", "--no-prompt-templates"),
        *("--no-context-files", "--offline", "--system-prompt", SYSTEM),
    ],
}


def called(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the agent's program is given when it is asked."""
    record, program = tmp_path / "called.json", tmp_path / "bin" / agent.name
    program.parent.mkdir()
    program.write_text(RECORD.format(python=sys.executable, path=str(record)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    backend = backend_of(ModelConfig(agent.command))
    assert isinstance(backend, CommandBackend)
    assert backend.send(Request(agent.command, SYSTEM, "What was said?")).text == "Answered."
    found: dict[str, Any] = json.loads(record.read_text())
    return found


@each("agent", AGENTS, ids=lambda agent: agent.name)
def test_it_is_asked_on_stdin_in_an_empty_folder(agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = called(agent, tmp_path, monkeypatch)
    assert found["stdin"].startswith(f"{MARKER}\n") and found["stdin"].endswith("What was said?")
    assert (SYSTEM in found["stdin"]) != (SYSTEM in found["argv"])
    assert found["files"] == [] and found["env"][VARIABLE] == "1"
    assert "What was said?" not in str(found["argv"])  # other users of a machine see arguments


@each("name", ARGV)
def test_its_tools_are_off_and_it_keeps_no_session(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert called(BY_NAME[name], tmp_path, monkeypatch)["argv"] == ARGV[name]


def test_gemini_is_handed_a_policy_that_denies_every_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = called(BY_NAME["gemini"], tmp_path, monkeypatch)
    argv = found["argv"]
    policy = tomllib.loads(Path(argv[argv.index("--admin-policy") + 1]).read_text())
    assert policy == {"rule": [{"toolName": "*", "decision": "deny", "priority": 999}]}
    assert argv[2:6] == ["--extensions", "none", "--allowed-mcp-server-names", "none"]
    assert found["env"]["GEMINI_CLI_TRUST_WORKSPACE"] == "true"


def test_opencode_has_variables_that_deny_every_tool_and_keep_its_sessions_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = called(BY_NAME["opencode"], tmp_path, monkeypatch)
    assert json.loads(found["env"]["OPENCODE_PERMISSION"]) == {"*": "deny"}
    assert found["env"]["OPENCODE_DB"] == ":memory:"
    assert found["argv"] == ["run", "--pure", "--title", "memory"]


@each("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_ready_command_is_a_setting_that_nothing_changes(agent: Agent) -> None:
    """It is stored with every row, redacted."""
    assert model_name(agent.command) == agent.command
    assert Redactor(b"").redact(agent.command) == agent.command


def test_a_variable_before_the_program_is_set_for_it_alone(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ['A_B'], os.environ['C'], sys.argv[1:])"
    command = f"A_B='x y' C= {sys.executable} -c {shlex.quote(code)} D=e"
    assert CommandBackend(ModelConfig(command)).send(Request("", "", "?")).text == "x y  ['D=e']"
    assert "A_B" not in os.environ


def test_a_command_of_nothing_but_variables_names_no_program() -> None:
    with pytest.raises(ModelMisconfiguredError, match="names no program"):
        CommandBackend(ModelConfig("A=b C=d")).send(Request("", "", "?"))


def test_a_failure_names_the_program_and_not_its_variables() -> None:
    with pytest.raises(TransientError, match=rf"^`{sys.executable}`: ended with code 3"):
        CommandBackend(ModelConfig(f"A=b {sys.executable} -c 'raise SystemExit(3)'")).send(Request("", "", "?"))
