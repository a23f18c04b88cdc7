"""The current lines of MEMORY.md for connected agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from memory_pipeline.actions.files import write_files
from memory_pipeline.actions.outcomes import by_line, outcomes
from memory_pipeline.actions.rules import ApprovedLine, Rule, rules_of
from memory_pipeline.agents.connecting import Line, refresh
from memory_pipeline.agents.hooks import has_hooks
from memory_pipeline.friction.rules import promotion_days
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.memory_file import MemoryLine, lines_of
from memory_pipeline.scope import only
from memory_pipeline.settings import Settings


def lines_for_agents(settings: Settings) -> list[Line]:
    """The lines of MEMORY.md that are not struck through. Raises FileNotFoundError."""
    return [Line(line.section, line.text, line.project) for line in _active_lines(settings)]


def refresh_agents(settings: Settings) -> list[str]:
    """Write the current lines for connected agents. Returns problems as sentences, as they must not end a review.

    If MEMORY.md is missing, the agents' files stay as they are.
    """
    try:
        if has_hooks(settings):
            write_hints(settings, Lake.from_settings(settings))
        return refresh(settings, lines_for_agents(settings))
    except FileNotFoundError:
        return []
    except Exception as error:
        return [f"The lines of connected agents were not updated: {error}"]


def write_hints(settings: Settings, lake: Lake) -> None:
    """Write what the hooks of tool calls read, and the outcomes of what they showed. Raises `RuleError` and OSError."""
    rules = approved_rules(settings, lake)
    write_files(settings, lake, rules, by_line(outcomes(settings, lake, rules)))


def approved_rules(settings: Settings, lake: Lake) -> list[Rule]:
    """The lines of MEMORY.md in force as rules about tool calls. Raises `RuleError` for unreadable modes."""
    try:
        lines = _active_lines(settings)
    except FileNotFoundError:
        return []
    days = promotion_days(lake)
    found = (ApprovedLine(x.proposal_id, x.text, x.project, days.get(x.proposal_id or "")) for x in lines)
    return rules_of(settings, found)


def _active_lines(settings: Settings) -> list[MemoryLine]:
    """The lines that are not struck through, each with its project. Raises FileNotFoundError."""
    lines = [line for line in lines_of(settings.memory_file.read_bytes()) if not line.is_struck]
    projects = _by_heading(settings, lines)
    return [
        replace(
            line,
            section=one_line(line.section),
            text=one_line(line.text),
            project=line.project or projects.get(line.proposal_id or ""),
        )
        for line in lines
    ]


def _by_heading(settings: Settings, lines: Sequence[MemoryLine]) -> dict[str, str]:
    """The project of lines under a heading with its name, by proposal, as version 0.1 could write them."""
    own = {name.casefold() for name in settings.sections}
    under = {
        line.proposal_id: line.section for line in lines if line.section.casefold() not in own and line.proposal_id
    }
    if not under:
        return {}
    proposals = Lake.from_settings(settings).read("proposals", columns=["proposal_id", "projects"])
    found = {name: only(projects) for name, projects in proposals.iter_rows() if name in under}
    return {name: project for name, project in found.items() if project and project == under[name]}
