"""What MEMORY.md says now, for the agents that are connected to it."""

from __future__ import annotations

from memory_pipeline.agents.connecting import refresh
from memory_pipeline.agents.lines import Line
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.memory_file import MemoryLine, lines_of
from memory_pipeline.reflections.types import REFLECTED
from memory_pipeline.scope import only
from memory_pipeline.settings import Settings


def lines_for_agents(settings: Settings) -> list[Line]:
    """The lines of MEMORY.md without those that are struck through. Raises FileNotFoundError."""
    lines = (line for line in lines_of(settings.memory_file.read_bytes()) if not line.is_struck)
    return [Line(one_line(line.section), one_line(line.text), _project_of(settings, line)) for line in lines]


def refresh_agents(settings: Settings) -> list[str]:
    """Show connected agents the lines as they are now; what is wrong there, as sentences, ends no review of anything.

    Without a MEMORY.md, or without it any more, what agents have stays.
    """
    try:
        return refresh(settings, lines_for_agents(settings))
    except FileNotFoundError:
        return []
    except Exception as error:
        return [f"What connected agents are shown was not brought up to date: {error}"]


def _project_of(settings: Settings, line: MemoryLine) -> str | None:
    """The only one: as its note says, or the heading within a section under which we put lines of one project."""
    own = {name.casefold() for name in settings.sections}
    is_grouped = (
        settings.projects_in_memory == "sections"
        and line.proposal_id is not None
        and line.section.casefold() not in own
        and not line.section.startswith(f"{REFLECTED} (")
    )
    return only([line.project or (line.section if is_grouped else "")])
