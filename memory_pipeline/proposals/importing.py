"""Proposals from other tools' memories: known lines are left out, and each line is offered only once.

An imported line is a row of `remembered` with its file and line. A line that was ever offered counts as known whatever
its outcome: rejected, expired, or removed from MEMORY.md since. This differs from a line that a user asks for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.lake.rows import RememberedRow
from memory_pipeline.proposals.duplicates import Known, KnownLines
from memory_pipeline.proposals.events import DECIDED, ProposalLog
from memory_pipeline.proposals.memory_file import read_lines
from memory_pipeline.proposals.remembering import IMPORTED, add_rows, new_row, remembered_lock
from memory_pipeline.reflections.types import FITS_NONE, RULES, section_name, section_of
from memory_pipeline.settings import Settings
from memory_pipeline.text.kinds import kind_of_user
from memory_pipeline.text.lines import orders
from memory_pipeline.text.relation import EQUAL
from memory_pipeline.workspace.workspace import Workspace

IN_FILE, STRUCK, TWICE = "in MEMORY.md", "struck through in MEMORY.md", "above"
"""The states of a known line that is no proposal: written by the user, struck through, or repeated in the import."""
_STRUCK = re.compile(r"~~(?:\(\d{4}-\d{2}-\d{2}\)\s*)?(?P<text>.+?)~~")


@dataclass(frozen=True)
class ImportLine:
    """A redacted line of another tool's memory."""

    text: str
    origin: str
    """The name of the memory that contains it, as shown to a user: "Claude Code's memory"."""
    path: Path
    number: int
    """The number of the line in the file, from 1, or of the row in the database."""
    position: int
    """The index of the default section, if the words of the line determine none."""
    heading: str = ""
    """The nearest heading above it; if it is the name of a section of MEMORY.md, the line belongs there."""
    project: str | None = None
    cwd: str | None = None

    def section(self, settings: Settings) -> str:
        """The section of MEMORY.md for which it is offered."""
        named = " ".join(self.heading.casefold().split())
        if own := next((s for s in settings.sections if s.casefold() == named), None):
            return own
        kind = kind_of_user(self.text)
        if kind not in FITS_NONE:
            return section_name(settings.sections, section_of(kind))
        return section_name(settings.sections, RULES if orders(self.text) else self.position)


@dataclass(frozen=True)
class Judged:
    """A line and its state if it is known; `known` is empty for a new line. `proposal_id` is that of the proposal with
    the same meaning or, once the line is offered, its own."""

    line: ImportLine
    known: str = ""
    proposal_id: str | None = None


def judged(workspace: Workspace, lines: Sequence[ImportLine]) -> list[Judged]:
    """Each line, new or known, in order; stores nothing."""
    known = _known_lines(workspace)
    found = []
    for line in lines:
        projects = (line.project,) if line.project else ()
        same = known.same(line.text, projects=projects, like=EQUAL, cautious=True)
        if isinstance(same, _KnownAs):
            found.append(Judged(line, same.how, same.proposal_id))
        else:
            known.add(_KnownAs(None, line.text, projects, TWICE))
            found.append(Judged(line))
    return found


def offer(workspace: Workspace, lines: Sequence[ImportLine], now: datetime) -> list[Judged]:
    """The same as `judged`, and store new lines as proposals. Raises filelock.Timeout after two seconds."""
    with remembered_lock(workspace.settings):
        found = judged(workspace, lines)
        rows = {i: _row(workspace.settings, one.line, now) for i, one in enumerate(found) if not one.known}
        if rows:
            add_rows(workspace.lake, day_of(now, workspace.settings.zone), list(rows.values()))
    return [Judged(one.line, "", rows[i]["proposal_id"]) if i in rows else one for i, one in enumerate(found)]


@dataclass(frozen=True)
class _KnownAs(Known):
    how: str = ""
    """The state of the proposal, or the place of the line."""


def _known_lines(workspace: Workspace) -> KnownLines:
    """Every line that was ever offered or decided on, or is in MEMORY.md."""
    log, known = ProposalLog(workspace.lake), KnownLines()
    rows = log.memory_lines
    for row in rows:
        for text in dict.fromkeys((row["text"], row["decided_text"] or row["text"])):
            known.add(_KnownAs(row["proposal_id"], text, tuple(row["projects"] or ()), row["status"]))
    ours = {row["proposal_id"]: tuple(row["projects"] or ()) for row in rows}
    lost = log.events(DECIDED, ~pl.col("proposal_id").is_in([*ours, *log.fixes]))
    for proposal_id, text, decision in lost.select("proposal_id", "text", "decision").iter_rows():
        known.add(_KnownAs(proposal_id, text, (), decision))
    for line in read_lines(workspace.settings.memory_file):
        projects = ours.get(line.proposal_id or "", (line.project,) if line.project else ())
        struck = _STRUCK.search(line.text) if line.is_struck else None
        own = line.proposal_id if line.proposal_id in ours else None
        known.add(_KnownAs(own, struck["text"] if struck else line.text, projects, STRUCK if struck else IN_FILE))
    return known


def _row(settings: Settings, line: ImportLine, now: datetime) -> RememberedRow:
    return new_row(
        settings,
        line.text,
        now,
        section=line.section(settings),
        trust=IMPORTED,
        client=line.origin,
        project=line.project,
        cwd=line.cwd,
        source_file=str(line.path),
        source_line=line.number,
    )
