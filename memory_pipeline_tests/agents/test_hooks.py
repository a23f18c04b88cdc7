"""Hooks in the files of agents: put in, taken out again, and told when they have gone silent."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.agents import hooks
from memory_pipeline.agents.agents import AGENTS, BY_NAME, Agent, CannotConnectError
from memory_pipeline.agents.hooks import hooked, hooks_file, install, remove, state
from memory_pipeline.settings import Settings, load_settings

HOOKED = [agent for agent in AGENTS if agent.hooks]
NAMING = [agent for agent in HOOKED if hooks_file(agent).suffix == ".json"]
MINE = """{
    "model": "opus",
    "hooks": {
        "PreCompact": [],
        "SessionStart": [{"hooks": [{"type": "command", "command": "echo hi"}]}]
    }
}"""
CONFIGS = st.sampled_from([None, "{}", "{ }\n", '{"a":1}', MINE, MINE.replace("\n", "\r\n"), '\ufeff{"hooks": {}}\n'])


def parsed(text: str) -> dict[str, Any]:
    found = json.loads(text.removeprefix("\ufeff"))
    assert isinstance(found, dict)
    return found


@pytest.fixture
def settings() -> Settings:
    for agent in AGENTS:
        agent.home.mkdir(parents=True, exist_ok=True)
    return load_settings()


@pytest.mark.parametrize("agent", HOOKED, ids=lambda agent: agent.name)
def test_what_was_not_there_is_gone_again(agent: Agent, settings: Settings) -> None:
    install(settings, agent)
    text = hooks_file(agent).read_text()
    for path in (sys.executable, hooks.SCRIPT, settings.workspace):
        assert str(path) in text
    assert state(settings, agent) == "hooks"
    install(settings, agent)
    assert hooks_file(agent).read_text() == text
    remove(settings, agent)
    assert [*agent.home.iterdir()] == []
    assert hooked(settings) == {} and state(settings, agent) == ""


def test_a_script_of_version_0_1_is_ours_and_is_replaced(settings: Settings) -> None:
    agent = BY_NAME["pi"]
    install(settings, agent)
    path = hooks_file(agent)
    now = path.read_text()
    path.write_text(now.replace(hooks.FIRST_LINE, hooks.FIRST_LINE_0_1))
    install(settings, agent)
    assert path.read_text() == now


@given(text=CONFIGS, name=st.sampled_from([agent.name for agent in NAMING]), twice=st.booleans(), lost=st.booleans())
def test_settings_come_back_by_the_byte(
    text: str | None, name: str, twice: bool, lost: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    agent, folder = BY_NAME[name], tmp_path_factory.mktemp("home")
    own, path = Settings(workspace=folder / "workspace", timezone="UTC"), folder / "settings.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hooks, "hooks_file", lambda _: path)
        if text is not None:
            path.write_bytes(text.encode())
        for _ in range(1 + twice):
            install(own, agent)
        before_events = {event for event, groups in parsed(text or "{}").get("hooks", {}).items() if groups}
        there = parsed(path.read_bytes().decode())["hooks"]
        assert set(there) >= {"SessionStart", *before_events}
        if lost:  # without what was kept it is the same settings, if not the same bytes
            (own.workspace / "connections/hooks.json").unlink()
            remove(own, agent)
            left = parsed(path.read_bytes().decode())
            wanted = parsed(text or "{}")
            assert {k: v for k, v in left.items() if k != "hooks"} == {k: v for k, v in wanted.items() if k != "hooks"}
            assert {k: v for k, v in left.get("hooks", {}).items() if v} == {
                k: v for k, v in wanted.get("hooks", {}).items() if v
            }
        else:
            remove(own, agent)
            assert (path.read_bytes() if path.exists() else None) == (None if text is None else text.encode())


@pytest.mark.parametrize("agent", NAMING, ids=lambda agent: agent.name)
def test_what_the_user_changes_meanwhile_stays(agent: Agent, settings: Settings) -> None:
    path = hooks_file(agent)
    path.write_text(MINE)
    install(settings, agent)
    path.write_text(path.read_text().replace("opus", "sonnet"))
    assert state(settings, agent) == "hooks (the file was changed since)"
    remove(settings, agent)
    wanted = parsed(MINE.replace("opus", "sonnet"))
    del wanted["hooks"]["PreCompact"]  # an empty list
    assert path.read_text() == json.dumps(wanted, indent=4) + "\n"


def test_settings_that_the_agent_wrote_anew_lose_only_ours(settings: Settings) -> None:
    """As Claude Code does when it is asked to allow something for good."""
    agent = BY_NAME["claude"]
    path = hooks_file(agent)
    install(settings, agent)
    value = json.loads(path.read_text()) | {"permissions": {"allow": ["Bash"]}}
    value["hooks"]["SessionStart"][0]["hooks"].append({"type": "command", "command": "echo mine"})
    path.write_text(json.dumps(value))
    remove(settings, agent)
    left = json.loads(path.read_text())
    assert left["permissions"] == {"allow": ["Bash"]}
    assert [h["command"] for group in left["hooks"]["SessionStart"] for h in group["hooks"]] == ["echo mine"]
    assert "PreCompact" not in left["hooks"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{\n "hooks": }', "line 2, column 11: Expecting value"),
        ("{// mine\n}", "line 1, column 2: .* Only JSON without comments can be edited"),
        ("[]", "expected an object in braces"),
        ('{"hooks": []}', "hooks: expected an object in braces"),
        ('{"hooks": {"SessionStart": {}}}', r"hooks.SessionStart: expected a list in brackets"),
    ],
)
def test_settings_that_cannot_be_edited_are_left_and_named(text: str, sentence: str, settings: Settings) -> None:
    path = hooks_file(BY_NAME["claude"])
    path.write_text(text)
    with pytest.raises(CannotConnectError, match=sentence) as error:
        install(settings, BY_NAME["claude"])
    assert str(path) in str(error.value)
    assert path.read_text() == text and hooked(settings) == {}


@pytest.mark.parametrize("name", ["pi", "opencode"])
def test_a_script_that_is_not_as_we_wrote_it_is_left(name: str, settings: Settings) -> None:
    agent = BY_NAME[name]
    install(settings, agent)
    path = hooks_file(agent)
    path.write_text(path.read_text() + "// mine\n")
    for do in (install, remove):
        with pytest.raises(CannotConnectError, match="not written by memory_pipeline"):
            do(settings, agent)
    assert path.read_text().endswith("// mine\n")


def test_hooks_that_call_what_has_moved_are_told(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = settings.workspace.parent / "venv/bin/python"
    called = hooks.command(settings)
    monkeypatch.setattr(hooks, "command", lambda _: [str(gone), *called[1:]])
    for agent in HOOKED:
        install(settings, agent)
        assert state(settings, agent).startswith(f"hooks do nothing: {gone} has moved")
    hooks_file(BY_NAME["pi"]).unlink()
    assert state(settings, BY_NAME["pi"]).startswith("hooks are no longer in")


@pytest.mark.parametrize("agent", HOOKED, ids=lambda agent: agent.name)
def test_hooks_of_tool_calls_are_added_and_taken_out(agent: Agent, settings: Settings) -> None:
    install(settings, agent)
    without = hooks_file(agent).read_bytes()
    install(settings, agent, actions=True)
    text = hooks_file(agent).read_text()
    assert str(hooks.ACTION_SCRIPT) in text and hooked(settings)[agent.name].actions
    assert state(settings, agent) == "hooks, also of tool calls"
    install(settings, agent)
    assert hooks_file(agent).read_bytes() == without
    install(settings, agent, actions=True)
    remove(settings, agent)
    assert [*agent.home.iterdir()] == [] and hooked(settings) == {}
