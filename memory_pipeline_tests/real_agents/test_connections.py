"""Real agents are shown what was approved: by the file that they read, and by the hook that they call.

Each is asked once with the rule in place and once after it was taken out again; the scripted server sees what the model
would see. Codex runs a hook that nobody has trusted only when it is told to.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memory_pipeline.agents import hooks
from memory_pipeline.agents.agents import BY_NAME
from memory_pipeline.agents.connecting import Connection, Line, connect, disconnect, refresh
from memory_pipeline.settings import Settings, load_settings
from memory_pipeline_tests.agents.stand_ins import RULE, SUMMARY, brief, hanging
from memory_pipeline_tests.real_agents.conftest import needs, read_sessions
from memory_pipeline_tests.real_agents.drivers import HARNESSES, Codex, Harness
from memory_pipeline_tests.real_agents.model_server import ModelServer, Say

pytestmark = pytest.mark.slow

OTHERS_RULE = "Never glaze on a Friday."
LINES = [Line("Hard Rules", RULE, None), Line("Hard Rules", OTHERS_RULE, "another")]
TRUST = "--dangerously-bypass-hook-trust"


@dataclass
class Connected:
    """A harness in a home of its own, and the workspace whose memory it is to be shown."""

    harness: Harness
    settings: Settings
    folder: Path

    @property
    def name(self) -> str:
        return self.harness.name

    def is_shown(self, text: str) -> bool:
        """Whether a new session's request to the model holds it."""
        model = self.harness.model
        model.script(Say("Understood."))
        before = len(model.requests)
        output = self.harness.prompt("How hot is the kiln to be?", again=False)
        assert len(model.requests) == before + 1, output
        return text in json.dumps(model.requests[-1])


class TrustingCodex(Codex):
    """Codex as it is when its user has looked at the hooks."""

    def run(self, *arguments: str, stdin: str = "") -> str:
        return super().run(arguments[0], TRUST, *arguments[1:], stdin=stdin)


@pytest.fixture(params=HARNESSES, ids=lambda harness: harness.name)
def connected(
    request: pytest.FixtureRequest, environment: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Connected]:
    kind: type[Harness] = request.param
    needs(kind)
    home, project = tmp_path / "home", tmp_path / "kiln"
    home.mkdir()
    project.mkdir()
    monkeypatch.setenv("HOME", str(home))
    with ModelServer() as model:
        harness = (TrustingCodex if kind is Codex else kind)(home, project, model)
        harness.configure()
        yield Connected(harness, load_settings(), tmp_path)


def call(monkeypatch: pytest.MonkeyPatch, connected: Connected, memory: Path) -> None:
    """Have the hooks call this in place of `memory`."""
    command = hooks.command(connected.settings)
    monkeypatch.setattr(hooks, "command", lambda _: [*command[:-1], str(memory)])


def test_a_connected_agent_is_shown_the_rule_until_it_is_disconnected(connected: Connected) -> None:
    connection = Connection.new(BY_NAME[connected.name], None)
    connect(connected.settings, connection, LINES)
    assert connected.is_shown(RULE)
    assert OTHERS_RULE not in json.dumps(connected.harness.model.requests)
    new = Line("Patterns", "Weigh the clay twice.", None)
    assert refresh(connected.settings, [*LINES, new]) == []
    assert connected.is_shown(new.text)
    disconnect(connected.settings, connection)
    assert not connected.is_shown(RULE)


@pytest.mark.nightly
def test_a_project_is_shown_its_own_rule(connected: Connected) -> None:
    connection = Connection.new(BY_NAME[connected.name], (connected.harness.cwd, "another"))
    connect(connected.settings, connection, LINES)
    assert connected.is_shown(OTHERS_RULE)
    disconnect(connected.settings, connection)
    assert not connected.is_shown(OTHERS_RULE)


def test_a_hook_shows_the_rule_until_it_is_removed(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = BY_NAME[connected.name]
    call(monkeypatch, connected, brief(connected.folder))
    hooks.install(connected.settings, agent)
    assert connected.is_shown(RULE)
    assert f"['context', '--project', '{connected.harness.cwd}']" in (connected.folder / "asked").read_text()
    hooks.remove(connected.settings, agent)
    assert not connected.is_shown(RULE)


@pytest.mark.nightly
def test_what_a_hook_gave_is_nobodys_words(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the pipeline would find its own lines again, said by the user."""
    call(monkeypatch, connected, brief(connected.folder))
    hooks.install(connected.settings, BY_NAME[connected.name])
    assert connected.is_shown(RULE)
    monkeypatch.setenv("MEMORY_DEFAULT_SESSION_DIRS", "true")
    monkeypatch.setenv("MEMORY_IDLE_MINUTES", "0")
    (session,) = read_sessions()
    assert {message.role for message in session.messages if RULE in message.text} <= {"injected"}
    assert any(message.role == "user" for message in session.messages)


@pytest.mark.nightly
def test_a_brief_that_hangs_does_not_keep_the_session(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hangs for an hour: that the session is answered says that nobody waited for it."""
    call(monkeypatch, connected, hanging(connected.folder))
    hooks.install(connected.settings, BY_NAME[connected.name])
    assert not connected.is_shown(RULE)
    log = (connected.settings.workspace / "connections" / "hooks.log").read_text()
    assert f"{connected.name} start: took longer" in log


@pytest.mark.nightly
def test_a_compaction_is_given_the_summary(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    """pi takes it in place of its own, Codex behind its own, OpenCode's model while it makes one."""
    harness, model = connected.harness, connected.harness.model
    call(monkeypatch, connected, brief(connected.folder))
    hooks.install(connected.settings, BY_NAME[connected.name])
    assert connected.is_shown(RULE)
    model.script(Say("It is warm enough by now, but the glaze has to wait until tomorrow morning."))
    harness.prompt("Is it warm enough in the kiln by now, or do we have to wait for some more hours?")
    if connected.name != "pi":
        model.script(Say("What the model says was said."))
    harness.compact()
    model.script(Say("We went on."))
    output = harness.prompt("How did we go on?")
    assert not model.turns, output
    assert SUMMARY in json.dumps(model.requests[2:]) and SUMMARY not in json.dumps(model.requests[:2])
    assert RULE in json.dumps(model.requests[-1])
    asked = [ast.literal_eval(line) for line in (connected.folder / "asked").read_text().splitlines()]
    (compaction,) = [arguments for arguments in asked if "--compaction" in arguments]
    assert compaction[-1]


@pytest.mark.nightly
def test_what_has_moved_does_not_keep_the_session(connected: Connected, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = connected.folder / "gone"
    command = hooks.command(connected.settings)
    monkeypatch.setattr(hooks, "command", lambda _: [str(gone), *command[1:]])
    hooks.install(connected.settings, BY_NAME[connected.name])
    assert not connected.is_shown(RULE)
