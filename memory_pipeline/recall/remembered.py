"""The lines of MEMORY.md as shown to a session: with their day and their nearness to its project."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from memory_pipeline.markdown.blocks import one_line, split_lines
from memory_pipeline.markdown.safe_write import decode
from memory_pipeline.proposals.memory_file import MemoryLine, lines_of, normalised
from memory_pipeline.scope import only

if TYPE_CHECKING:
    from memory_pipeline.lake.rows import ProposalState
    from memory_pipeline.settings import Settings

OWN, GENERAL, OTHER = 0, 1, 2
"""Nearness: the project of the session, several or no projects, or a single other project."""
SPEAKERS = ("user", "assistant", "model")
"""Speakers whose words may be shown without review. Pasted text and output of tools may come from anybody."""
_DAY = re.compile(r"\((\d{4}-\d{2}-\d{2})\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_REJECTED = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+\[-\]|.*\(superseded by [pf]-")
_STRUCK = re.compile(r"~~.*?~~")
_TAG = re.compile(r"<(?=/?memory\b)", re.I)


@dataclass(frozen=True)
class Remembered:
    """An active line. `id` is that of its proposal, or `MEMORY.md:12` for a handwritten one."""

    id: str
    section: str
    text: str
    day: date | None
    nearness: int


def remembered(
    data: bytes | None, projects_of: Mapping[str, Collection[str]], project: str | None, sections: Collection[str]
) -> list[Remembered]:
    """The lines of MEMORY.md in the order of the file, without those that are struck through or marked as rejected.

    ``projects_of`` maps proposals to projects; the line's own note, or a heading that is not one of ``sections``, takes
    precedence, as a user may have changed it.
    """
    lines, raw = lines_of(data), split_lines(decode(data or b""))
    known = {name for names in projects_of.values() for name in names}
    ends = [*(line.line_number for line in lines[1:]), len(raw) + 1]
    found = []
    for line, end in zip(lines, ends if lines else [], strict=True):
        item = _COMMENT.sub(" ", "".join(raw[line.line_number - 1 : end - 1]).split("\n\n")[0])
        text = safe(_STRUCK.sub("", line.text))
        if line.is_struck or _REJECTED.match(item) or not re.search(r"\w", text):
            continue
        day = _DAY.search(item[:40])
        own = _named(line, known - set(sections)) or only(list(projects_of.get(line.proposal_id or "", ())))
        found.append(
            Remembered(
                line.proposal_id or f"MEMORY.md:{line.line_number}",
                line.section,
                text,
                _date(day[1]) if day else None,
                nearness([own] if own else [], project),
            )
        )
    return found


def memory_bytes(settings: Settings) -> bytes | None:
    """The bytes of MEMORY.md; None if there is no such file."""
    path = settings.memory_file
    return path.read_bytes() if path.is_file() else None


class Settled(NamedTuple):
    """Settled matters: the words of MEMORY.md and of decided lines, and the ids of the rows from which these were
    made."""

    words: set[str]
    ids: set[str]


def settled(data: bytes | None, proposals: Iterable[ProposalState]) -> Settled:
    """The settled words and ids, from the bytes of MEMORY.md and all proposals. An expired proposal does not count:
    nobody decided on it."""
    from memory_pipeline.proposals.events import (  # imports polars, which a search does not need
        EXPIRED,
        PENDING,
        WITHDRAWN,
    )

    over = [row for row in proposals if row["status"] not in (PENDING, EXPIRED, WITHDRAWN)]
    words = {normalised(line.text) for line in lines_of(data)} | {normalised(row["text"]) for row in over}
    return Settled(words, {source for row in over for source in row["sources"]})


def nearness(projects: Iterable[str] | None, project: str | None) -> int:
    """The nearness of something said in these projects to a session in ``project``; None is no project, to which all
    are equally near."""
    names = set(projects or ())
    if not names:
        return GENERAL
    if project is None or project in names:
        return OWN
    return OTHER if len(names) == 1 else GENERAL


def safe(text: str) -> str:
    """The text on one line, with tags escaped that could end the surrounding block."""
    return _TAG.sub("‹", one_line(text))


def _named(line: MemoryLine, projects: Collection[str]) -> str | None:
    return line.project or (line.section if line.section in projects else None)


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None
