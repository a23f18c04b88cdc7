"""The ready commands, run for real: pi, Codex and OpenCode answer, have no tool, and leave no session that is read.

The scripted model tries to run a command first, as words in a transcript might have it do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from memory_pipeline.cli.main import app
from memory_pipeline.llm.agents import BY_NAME
from memory_pipeline.llm.backends.command import CommandBackend
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.request import Request
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.sessions.reading import parse
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.real_agents.drivers import HARNESSES, PROGRAMS, Harness
from memory_pipeline_tests.real_agents.model_server import SCRIPTED, ModelServer, Say, Turn

pytestmark = pytest.mark.slow
NO_TOOL = {"request_user_input"}
"""Of Codex: asks the user, of whom there is none."""
SYSTEM = "You keep the memory of a person."


class Recording(ModelServer):
    """Knows of every request, also of those for other models."""

    def __init__(self, *turns: Turn) -> None:
        super().__init__(*turns)
        self.models: list[str] = []

    def answer(self, request: dict[str, Any]) -> Turn:
        self.models.append(str(request.get("model")))
        return super().answer(request)


@pytest.fixture
def model() -> Iterator[Recording]:
    with Recording() as model:
        yield model


@pytest.fixture(params=HARNESSES, ids=lambda harness: harness.name)
def harness(
    request: pytest.FixtureRequest, tmp_path: Path, model: Recording, monkeypatch: pytest.MonkeyPatch
) -> Harness:
    kind: type[Harness] = request.param
    if not (PROGRAMS / kind.name).exists():
        reason = f"{kind.name} is not installed; `make harnesses` does it"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    for folder in ("home", "project"):
        (tmp_path / folder).mkdir()
    harness = kind(tmp_path / "home", tmp_path / "project", model)
    harness.configure()
    for variable, value in harness.environment().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("MEMORY_DEFAULT_SESSION_DIRS", "true")
    return harness


def command(harness: Harness) -> str:
    """The ready command; where it reads no settings of the user, with those that lead to the scripted model."""
    ready = BY_NAME[harness.name].command
    if harness.name == "codex":
        provider = f'{{name="S",base_url="{harness.model.url}",wire_api="responses"}}'
        mine = f"-c model={SCRIPTED} -c model_provider=scripted -c 'model_providers.scripted={provider}'"
        return ready.replace("codex exec", f"codex exec {mine}", 1)
    if harness.name == "pi":
        settings = harness.home / ".pi/agent/settings.json"
        mine = {"defaultProvider": "scripted", "defaultModel": SCRIPTED}
        settings.write_text(json.dumps(json.loads(settings.read_text()) | mine))
    return ready


def tools_of(request: dict[str, Any]) -> set[str]:
    return {
        tool.get("name") or tool.get("function", {}).get("name") or tool["type"] for tool in request.get("tools", [])
    }


def test_it_answers_without_tools_and_leaves_no_session(harness: Harness, model: Recording) -> None:
    left = harness.home / "left-behind"
    model.script(harness.shell(f"touch {left}"), Say("They deploy on Mondays."))
    asked = Request("", SYSTEM, "[#1 09:00 user]\nWe deploy on Mondays.")
    reply = CommandBackend(ModelConfig(command(harness), timeout=300)).send(asked)

    assert reply.text == "They deploy on Mondays."
    assert not left.exists()
    offered = tools_of(model.requests[0])
    assert offered <= NO_TOOL
    assert model.models == [SCRIPTED, SCRIPTED]  # no title, no summary: nothing that nobody asked for
    first = json.dumps(model.requests[0])
    assert SYSTEM in first and "We deploy on Mondays." in first
    sessions = [parse(source) for source in find_sources(roots(load_settings()))]
    assert [session.session_id for session in sessions] == []
    assert not any("We deploy" in path.read_text(errors="replace") for path in kept_by(harness))


@pytest.mark.nightly
def test_memory_setup_tries_it_and_sets_it(harness: Harness, model: Recording, tmp_path: Path) -> None:
    if harness.name == "codex":
        pytest.skip("it reads no settings that would lead it to the scripted model")
    command(harness)
    words = "add GET /parcels/{id}/events to the api: all tracking events of one parcel"
    model.script(Say(f"<observations><facts>\n* 🔴 rule [#1] {words}\n</facts></observations>"))
    done = CliRunner().invoke(app, ["setup", "--yes", "--model", harness.name])
    assert done.exit_code == 0, done.output
    assert f"{harness.name}: 1 of one session\n  🔴 {words}" in done.output and model.models == [SCRIPTED]
    assert load_settings().observer.model == BY_NAME[harness.name].command


@pytest.mark.nightly
def test_without_its_flags_it_would_have_tools_and_write_a_session(harness: Harness, model: Recording) -> None:
    """So the test above can fail."""
    command(harness)
    model.script(Say("Done."))
    harness.prompt("We deploy on Mondays.", again=False)
    assert tools_of(model.requests[0]) - NO_TOOL
    assert [session.session_id for session in map(parse, find_sources(roots(load_settings())))]
    assert any("We deploy" in path.read_text(errors="replace") for path in kept_by(harness))


def kept_by(harness: Harness) -> list[Path]:
    """Files that the agent has written in its home."""
    return [path for path in harness.home.rglob("*") if path.is_file()]
