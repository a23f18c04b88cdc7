"""Real agents ask the memory over MCP: the scripted model calls the tool, and its next request holds what was found.

pi knows no MCP.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.recall import tools
from memory_pipeline.recall.usage import uses
from memory_pipeline.settings import Settings
from memory_pipeline_tests.real_agents.conftest import needs
from memory_pipeline_tests.real_agents.drivers import Codex, Harness, OpenCode
from memory_pipeline_tests.real_agents.model_server import Call, ModelServer, Say
from memory_pipeline_tests.rows import say, workspace

pytestmark = pytest.mark.slow

RULE = "The kiln must never be fired above cone six, since the shelves warp."
NOTE = "Never glaze on a Friday."
COMMAND = [sys.executable, "-c", "from memory_pipeline.cli.main import main; main()", "mcp"]
SECONDS = 600
"""Limits that no busy machine reaches."""


def add_to_opencode(harness: Harness, environment: dict[str, str]) -> None:
    path = harness.home / ".config/opencode/opencode.json"
    entry = {"type": "local", "command": COMMAND, "environment": environment, "timeout": SECONDS * 1000}
    path.write_text(json.dumps(json.loads(path.read_text()) | {"mcp": {"memory": entry}}))


def add_to_codex(harness: Harness, environment: dict[str, str]) -> None:
    pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in environment.items())
    with (harness.home / ".codex/config.toml").open("a") as config:
        config.write(f"""
            [mcp_servers.memory]
            command = {json.dumps(COMMAND[0])}
            args = {json.dumps(COMMAND[1:])}
            env = {{ {pairs} }}
            required = true
            startup_timeout_sec = {SECONDS}
            tool_timeout_sec = {SECONDS}
        """)


ADD = {OpenCode: add_to_opencode, Codex: add_to_codex}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    made, lake = workspace(tmp_path / "ws")
    say(lake, "s1", f"user: {RULE}")
    return made


@pytest.fixture(params=ADD, ids=lambda harness: harness.name)
def harness(request: pytest.FixtureRequest, environment: None, settings: Settings, tmp_path: Path) -> Iterator[Harness]:
    kind: type[Harness] = request.param
    needs(kind)
    home, project = tmp_path / "home", tmp_path / "kiln"
    home.mkdir()
    project.mkdir()
    with ModelServer() as model:
        made = kind(home, project, model)
        made.configure()
        own = {"MEMORY_WORKSPACE": str(settings.workspace), "MEMORY_TIMEZONE": "UTC", "HOME": str(home)}
        ADD[kind](made, own | {"MEMORY_MCP_SECONDS": str(SECONDS)})
        yield made


def caller(offered: list[dict[str, Any]], name: str) -> Callable[[dict[str, Any]], Call]:
    """How the model calls the memory's tool, as the agent has told it of its tools."""
    for tool in offered:
        own = tool.get("name") or tool.get("function", {}).get("name", "")
        if any(inner["name"] == name for inner in tool.get("tools", [])):
            return lambda arguments: Call(name, arguments, namespace=own)
        if own.endswith(name):
            return lambda arguments: Call(own, arguments)
    raise AssertionError(f"{name} is not among {offered}")


def test_what_the_model_asks_the_memory_is_in_its_next_request(harness: Harness, settings: Settings) -> None:
    model = harness.model
    model.script(Say("Understood."))
    output = harness.prompt("What can you do?", again=False)
    assert model.requests, output
    recall, remember = (caller(model.requests[0]["tools"], name) for name in ("recall", "remember"))

    model.script(recall({"query": "Above which cone is the kiln never fired?"}), remember({"text": NOTE}), Say("Done."))
    output = harness.prompt("How high may the kiln go, and remember Friday.", again=False)
    assert not model.turns, output
    found, noted = (json.dumps(request, ensure_ascii=False) for request in model.requests[-2:])
    assert RULE in found
    assert tools.OPENING in found
    assert "is offered to the user" in noted
    (row,) = Lake(settings.lake_dir).read("remembered").to_dicts()
    assert (row["text"], row["trust"]) == (NOTE, "assistant")
    assert harness.name in row["client"]
    assert "mcp" in [use["kind"] for _, use in uses(settings)]
