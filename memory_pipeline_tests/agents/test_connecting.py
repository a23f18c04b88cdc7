"""Connecting an agent and undoing it: the user's file keeps every byte, and lines go where they hold."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.agents import connecting
from memory_pipeline.agents.agents import AGENTS, BY_NAME, Agent, CannotConnectError
from memory_pipeline.agents.connecting import (
    IMPORT,
    LINES,
    Connection,
    Line,
    connect,
    connections,
    describe,
    disconnect,
    imported_file,
    refresh,
)
from memory_pipeline.settings import Settings, load_settings

RULES = [
    Line("Hard Rules", "Use uv.", None),
    Line("Hard Rules", "Return 404.", "kiln"),
    Line("User", "Be brief.", None),
]
MORE = [*RULES, Line("Patterns", "Test first.", None)]


@pytest.fixture
def settings() -> Settings:
    for agent in AGENTS:
        agent.home.mkdir(parents=True, exist_ok=True)
    return load_settings()


def at_home(name: str) -> Connection:
    return Connection.new(BY_NAME[name], None)


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_an_agent_reads_what_holds_everywhere_and_no_line_of_a_project(agent: Agent, settings: Settings) -> None:
    connection = Connection.new(agent, None)
    connect(settings, connection, RULES)
    text = Path(connection.path).read_text()
    if agent.imports:
        assert f"\n@{imported_file(settings)}\n" in text
        text = imported_file(settings).read_text()
    assert "- Use uv." in text and "- Be brief." in text and "Return 404" not in text
    disconnect(settings, connection)
    assert not Path(connection.path).exists()
    assert not imported_file(settings).exists()
    assert connections(settings) == []


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_a_project_gets_its_own_lines_alone_and_only_when_asked(
    agent: Agent, settings: Settings, tmp_path: Path
) -> None:
    connection = Connection.new(agent, (tmp_path, "kiln"))
    assert Path(connection.path).parent == tmp_path
    connect(settings, connection, RULES)
    text = Path(connection.path).read_text()
    assert "the project kiln" in text and "- Return 404." in text and "uv" not in text


@given(
    data=st.none() | st.binary(max_size=40) | st.sampled_from([b"a\r\nb", b"\xef\xbb\xbf# x", b"x\n\n", b"\r", b"\n"]),
    name=st.sampled_from(sorted(BY_NAME)),
    linked=st.booleans(),
    mode=st.sampled_from([0o644, 0o600, 0o640, 0o755]),
    refreshed=st.booleans(),
)
def test_connecting_and_disconnecting_gives_back_the_same_file(
    data: bytes | None, name: str, linked: bool, mode: int, refreshed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("home")
    own = Settings(workspace=folder / "workspace", timezone="UTC")
    path = folder / "RULES.md"
    target = folder / "dotfiles.md" if linked and data is not None else path
    if data is not None:
        target.write_bytes(data)
        target.chmod(mode)
    if target != path:
        path.symlink_to(target)
    connection = Connection(name, str(path), IMPORT if BY_NAME[name].imports else LINES)
    connect(own, connection, RULES)
    assert path.read_bytes() != data
    if refreshed:
        assert refresh(own, MORE) == []
    disconnect(own, connection)
    assert (path.read_bytes() if path.exists() else None) == data
    assert path.is_symlink() == (target != path)
    if data is not None:
        assert stat.S_IMODE(target.stat().st_mode) == mode


@given(before=st.binary(max_size=30), new=st.binary(max_size=30), after=st.binary(max_size=30))
def test_what_the_user_writes_around_the_block_meanwhile_stays(
    before: bytes, new: bytes, after: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("home")
    own, path = Settings(workspace=folder / "workspace", timezone="UTC"), folder / "AGENTS.md"
    path.write_bytes(before + b"\n")
    connection = Connection("codex", str(path), LINES)
    connect(own, connection, RULES)
    path.write_bytes(new + b"\n" + path.read_bytes() + after)
    assert refresh(own, MORE) == []
    disconnect(own, connection)
    assert path.read_bytes() == new + b"\n" + before + b"\n" + after


def test_connecting_twice_changes_nothing(settings: Settings) -> None:
    connection = at_home("codex")
    connect(settings, connection, RULES)
    once = Path(connection.path).read_bytes()
    connect(settings, connection, RULES)
    assert Path(connection.path).read_bytes() == once
    assert connections(settings) == [connection]


def test_agents_that_read_one_file_share_a_block(settings: Settings, tmp_path: Path) -> None:
    for name in ("codex", "pi", "opencode"):
        connect(settings, Connection.new(BY_NAME[name], (tmp_path, "kiln")), RULES)
    path = tmp_path / "AGENTS.md"
    assert path.read_text().count("- Return 404.") == 1
    for name in ("pi", "codex"):
        disconnect(settings, Connection.new(BY_NAME[name], (tmp_path, "kiln")))
        assert "- Return 404." in path.read_text()
    disconnect(settings, Connection.new(BY_NAME["opencode"], (tmp_path, "kiln")))
    assert not path.exists()


def test_lines_follow_the_memory(settings: Settings) -> None:
    for agent in AGENTS:
        connect(settings, Connection.new(agent, None), RULES)
    path = Path(at_home("codex").path)
    path.write_text("mine before\n" + path.read_text() + "mine after\n")
    assert refresh(settings, MORE) == []
    for agent in AGENTS:
        path = imported_file(settings) if agent.imports else Path(at_home(agent.name).path)
        assert "- Test first." in path.read_text()
    text = Path(at_home("codex").path).read_text()
    assert text.startswith("mine before\n") and text.endswith("mine after\n")


def test_a_block_that_is_gone_edited_or_damaged_is_left_so_and_named(settings: Settings) -> None:
    names = ("codex", "pi", "opencode", "gemini")
    for name in names:
        connect(settings, at_home(name), RULES)
    codex, pi, opencode, gemini = (Path(at_home(name).path) for name in names)
    codex.write_text("mine\n")
    pi.write_text(pi.read_text().replace("Use uv.", "Use pip."))
    opencode.unlink()
    problems = refresh(settings, MORE)
    assert len(problems) == 3
    for path, problem in zip((codex, pi, opencode), problems, strict=True):
        assert str(path) in problem
    assert codex.read_text() == "mine\n" and "Use pip." in pi.read_text() and not opencode.exists()
    assert "- Test first." in gemini.read_text()
    assert describe(settings)["codex"].startswith("connected, but")


def test_another_workspace_that_took_a_block_over_keeps_it(settings: Settings, tmp_path: Path) -> None:
    connect(settings, at_home("codex"), RULES)
    other = Settings(workspace=tmp_path / "other", timezone="UTC")
    connect(other, at_home("codex"), MORE)
    assert [*map(str, refresh(settings, RULES))] != []
    assert "- Test first." in Path(at_home("codex").path).read_text()


@pytest.mark.parametrize(
    "edit",
    [lambda text: text + text, lambda text: text.replace("<!-- /memory:", ""), lambda text: text.replace("uv", "pip")],
)
def test_damaged_marks_are_named_and_nothing_is_written(edit: object, settings: Settings) -> None:
    assert callable(edit)
    connection = at_home("codex")
    connect(settings, connection, RULES)
    path = Path(connection.path)
    path.write_text("first\n" + edit(path.read_text()))
    before = path.read_bytes()
    for do in (lambda: connect(settings, connection, MORE), lambda: disconnect(settings, connection)):
        with pytest.raises(CannotConnectError, match=rf"{path}, line \d+: "):
            do()
    assert path.read_bytes() == before


def test_the_file_is_the_one_that_the_agent_reads(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = Path.home()
    assert BY_NAME["opencode"].instructions() == home / ".config/opencode/AGENTS.md"
    (home / ".claude/CLAUDE.md").write_text("mine")  # which OpenCode reads as long as it has no AGENTS.md
    assert BY_NAME["opencode"].instructions() == home / ".claude/CLAUDE.md"
    (home / ".codex/AGENTS.override.md").write_text("  \n")  # Codex goes by a file with words
    assert BY_NAME["codex"].instructions() == home / ".codex/AGENTS.md"
    (home / ".codex/AGENTS.override.md").write_text("mine")
    assert BY_NAME["codex"].instructions() == home / ".codex/AGENTS.override.md"
    (home / ".pi/agent/CLAUDE.md").write_text("mine")
    assert BY_NAME["pi"].instructions() == home / ".pi/agent/CLAUDE.md"
    (home / ".gemini/settings.json").write_text(json.dumps({"context": {"fileName": ["MINE.md", "GEMINI.md"]}}))
    assert BY_NAME["gemini"].instructions() == home / ".gemini/MINE.md"
    for agent in AGENTS:
        monkeypatch.setenv(agent.variable, str(tmp_path))
        assert agent.home == tmp_path / agent.below


def test_nothing_is_lost_when_the_list_cannot_be_read(settings: Settings) -> None:
    connect(settings, at_home("codex"), RULES)
    path = settings.workspace / "connections" / "connected.json"
    path.write_text("{")
    before = Path(at_home("codex").path).read_bytes()
    (problem,) = refresh(settings, MORE)
    assert str(path) in problem
    with pytest.raises(CannotConnectError, match="cannot be read"):
        connect(settings, at_home("codex"), MORE)
    assert Path(at_home("codex").path).read_bytes() == before


def test_what_cannot_be_written_keeps_no_other_from_it(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("codex", "gemini"):
        connect(settings, at_home(name), RULES)
    codex = Path(at_home("codex").path)
    real = os.access  # the tests may run as root, who may write everything
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != codex and real(path, mode))
    (problem,) = refresh(settings, MORE)
    assert str(codex) in problem and "permission denied" in problem
    assert "- Test first." not in codex.read_text()
    assert "- Test first." in Path(at_home("gemini").path).read_text()


def test_a_path_with_a_space_can_be_imported(tmp_path: Path) -> None:
    own = Settings(workspace=tmp_path / "my memory", timezone="UTC")
    body = connecting._body(own, Connection("claude", "x", IMPORT), [])
    assert body.endswith("my\\ memory/connections/MEMORY.md")
