"""Which lines of MEMORY.md agents are shown, and when they are shown new ones."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from memory_pipeline.agents.agents import BY_NAME
from memory_pipeline.agents.connecting import Connection, Line, connect
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.shown_to_agents import lines_for_agents, refresh_agents
from memory_pipeline.settings import Settings, load_settings
from memory_pipeline_tests.proposals.test_review import UV, Story
from memory_pipeline_tests.rows import proposal, put

MEMORY = """# Memory

## User
- (2026-03-02) i prefer small commits <!-- p-20260302-007 -->
- my own <!-- memory:connect-lines x --> line

## Hard Rules
- (2026-03-02) return 404 (project: parcel-tracker) <!-- p-20260302-001 -->
- ~~(2026-01-01) return 403~~ (superseded by p-20260302-001, 2026-03-02) <!-- p-20260101-001 -->
- (2026-03-03) name the ticket (general, from cli, kiln) <!-- p-20260303-001 -->

### kiln
- (2026-03-04) glaze last <!-- p-20260304-001 -->
"""


@pytest.fixture
def settings() -> Settings:
    settings = load_settings()
    settings.workspace.mkdir(parents=True)
    settings.memory_file.write_text(MEMORY)
    return settings


def test_lines_that_hold_are_shown_with_their_project(settings: Settings) -> None:
    assert lines_for_agents(settings) == [
        Line("User", "i prefer small commits", None),
        Line("User", "my own line", None),
        Line("Hard Rules", "return 404", "parcel-tracker"),
        Line("Hard Rules", "name the ticket", None),
        Line("kiln", "glaze last", None),
    ]


def test_a_heading_is_the_project_of_a_line_that_version_0_1_put_under_it(settings: Settings) -> None:
    lake = Lake.from_settings(settings)
    put(lake, "proposals", proposal(1, "glaze last", day=date(2026, 3, 4), projects=["kiln"]))
    assert lines_for_agents(settings)[-1] == Line("kiln", "glaze last", "kiln")


def test_what_a_user_approves_is_shown_to_connected_agents(tmp_path: Path) -> None:
    story = Story(tmp_path)
    settings = story.workspace.settings
    (Path.home() / ".codex").mkdir()
    codex = Connection.new(BY_NAME["codex"], None)
    story.run()
    connect(settings, codex, [])
    assert "Use uv" not in Path(codex.path).read_text()
    story.mark(UV, "x")
    assert story.run().not_refreshed == []
    assert "Use uv for Python." in Path(codex.path).read_text()


def test_trouble_with_an_agent_ends_no_review(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    story = Story(tmp_path)
    story.run()

    def breaks(*_: object) -> list[str]:
        raise RuntimeError("broken for a moment")

    monkeypatch.setattr("memory_pipeline.proposals.shown_to_agents.refresh", breaks)
    story.mark(UV, "x")
    reconciled = story.run()
    assert reconciled.promoted == [UV]
    assert "broken for a moment" in reconciled.not_refreshed[0]


def test_without_a_memory_agents_keep_what_they_have(settings: Settings) -> None:
    (Path.home() / ".codex").mkdir()
    codex = Connection.new(BY_NAME["codex"], None)
    connect(settings, codex, lines_for_agents(settings))
    settings.memory_file.unlink()
    assert refresh_agents(settings) == []
    assert "i prefer small commits" in Path(codex.path).read_text()
