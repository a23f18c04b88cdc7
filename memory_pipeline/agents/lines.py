"""The lines of MEMORY.md as shown to an agent."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Line(NamedTuple):
    """An active line of MEMORY.md; `project` is its project, None if it applies everywhere."""

    section: str
    text: str
    project: str | None


def rendered(lines: Iterable[Line], source: str, project: str | None) -> str:
    """Markdown of the lines of this project only, or of those that apply everywhere; ``source`` is the file that
    contains them."""
    scope = f"the project {project}" if project else "every project"
    parts = [
        f"## Remembered for {scope}",
        "",
        f"Lines from earlier sessions that the user approved. `memory` copies them from {source}: change them there.",
    ]
    sections: dict[str, list[str]] = {}
    for line in lines:
        if line.project == project:
            sections.setdefault("" if line.section == project else line.section, []).append(f"- {line.text}")
    for section, texts in sections.items():
        parts += ["", *([f"### {section}", ""] if section else []), *dict.fromkeys(texts)]
    if not sections:
        parts += ["", "None yet."]
    return "\n".join(parts)
