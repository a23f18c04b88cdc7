"""The screen Memory: the lines of the current MEMORY.md, each with its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from memory_pipeline.days import day_of
from memory_pipeline.lake.rows import ProposalState
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.events import APPROVED
from memory_pipeline.proposals.memory_file import MemoryLine, lines_of
from memory_pipeline.web.review_session import RETIRED, ReviewSession, Step

SURFACES = {"command": "the command line", "page": "this page", "auto": "trust in its section"}


@dataclass(frozen=True)
class Remembered:
    """A line with its history, a few words per event."""

    line: MemoryLine
    trace: Sequence[str]
    text: str
    """The text, without the marks of an ended line."""


@dataclass(frozen=True)
class Section:
    name: str
    lines: Sequence[Remembered]
    """The active lines."""
    ended: Sequence[Remembered]
    """The lines that are struck through."""


def memory_sections(session: ReviewSession) -> list[Section]:
    """The sections in the order of the file; lines before the first heading are under an empty name."""
    lines = _lines(session)
    ids = [line.proposal_id for line in lines if line.proposal_id]
    rows = session.cache.log().rows(ids)
    newer = _replaced_by(session, ids)
    gone = [step.line for step in session.under_way() if step.line]
    found = []
    for name, group in groupby(lines, key=lambda line: line.section):
        entries = [Remembered(line, _trace(session, line, rows, newer), line.text.replace("~~", "")) for line in group]
        ended = [each for each in entries if each.line.is_struck or each.line in gone]
        found.append(Section(name, [each for each in entries if each not in ended], ended))
    return found


def retirement(session: ReviewSession, form: Mapping[str, str]) -> Step | None:
    """The action that the form of a line requests; None if the line no longer exists."""
    wanted = (form.get("id") or None, form.get("section", ""), form.get("text", "").replace("\r\n", "\n"))
    for line in _lines(session):
        if not line.is_struck and (line.proposal_id, line.section, line.text) == wanted:
            return Step(RETIRED, line.text, line=line)
    return None


def _lines(session: ReviewSession) -> list[MemoryLine]:
    path = session.settings.memory_file
    return lines_of(path.read_bytes() if path.is_file() else None)


def _replaced_by(session: ReviewSession, ids: Sequence[str]) -> dict[str, str]:
    """The approved proposal that replaced each, by the replaced one."""
    log, wanted = session.cache.log(), set(ids)
    approved = log.frame.filter(status=APPROVED).drop_nulls("supersedes").select("proposal_id", "supersedes")
    return {old: new for new, olds in approved.iter_rows() for old in olds if old in wanted}


def _trace(
    session: ReviewSession, line: MemoryLine, rows: Mapping[str, ProposalState], newer: Mapping[str, str]
) -> list[str]:
    row = rows.get(line.proposal_id or "")
    if row is None:
        return ["written by hand" if line.proposal_id is None else "its proposal is not in this workspace"]
    zone = session.settings.zone
    said = f"said {row['support']} times, last on" if row["support"] > 1 else "said on"
    entries = [f"{said} {day_of(row['last_seen'], zone)}"] if row["last_seen"] else []
    entries.append(f"offered for {row['day']}")
    if row["decided_at"]:
        surface = SURFACES.get(row["surface"] or "", row["surface"] or "")
        edited = ", with your edits" if one_line(row["decided_text"] or "") != one_line(row["text"]) else ""
        entries.append(f"{row['status']} {row['decided_at'].astimezone(zone):%Y-%m-%d %H:%M} on {surface}{edited}")
    if by := newer.get(row["proposal_id"]):
        entries.append(f"superseded by {by}")
    return entries
