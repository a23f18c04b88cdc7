"""Lines that come from outside the sessions: those that a user, or an agent for them, asks to remember, with `memory
remember` or the tool of the MCP server, and those of other tools' memories (`memory import`).

Such a line is a row of `remembered`, which `ProposalLog` reads as a proposal, not a line of MEMORY.md: a user decides
on it as on any other. No stage reads or writes that table, so a concurrent run neither waits for it nor loses it.

An imported line is offered only once. One that was ever offered counts as known whatever its outcome: rejected,
expired, or removed from MEMORY.md since. This differs from a line that a user asks for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import polars as pl

from memory_pipeline.agents.agents import tilde_path
from memory_pipeline.days import day_of
from memory_pipeline.errors import MisuseError
from memory_pipeline.lake.rows import RememberedRow
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.markdown.safe_write import make_folder
from memory_pipeline.proposals.duplicates import Known, KnownLines
from memory_pipeline.proposals.events import (
    APPROVED,
    DECIDED,
    FIRST_REMEMBERED,
    PENDING,
    PROMOTED,
    REJECTED,
    ProposalLog,
    content_hash,
    proposal_id,
)
from memory_pipeline.proposals.memory_file import read_active_lines, read_lines
from memory_pipeline.proposals.offering import USER, line_score
from memory_pipeline.redaction import redactor_of
from memory_pipeline.redaction.forgotten import MARK
from memory_pipeline.redaction.spoken import names_password
from memory_pipeline.reflections.types import FITS_NONE, RULES, section_name, section_of
from memory_pipeline.scope import are_apart
from memory_pipeline.settings import Settings
from memory_pipeline.text.kinds import NORMATIVE, kind_of_user
from memory_pipeline.text.lines import orders
from memory_pipeline.text.priorities import HIGH, MEDIUM
from memory_pipeline.text.relation import EQUAL, is_same
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

AGENT = "assistant"
"""The speaker of a line that an agent asks for."""
TEAM = "team"
"""The speaker of a line that several people approved, each in their own workspace."""
IMPORTED = "imported"
"""The speaker of a line from another tool's memory."""
MAX_TEXT = 1_000
"""Maximum characters of a line. Every session is shown the lines of MEMORY.md; longer text belongs in a file of the
project."""
MAX_CLIENT = 40
ASKED_FOR = 1.0
"""Score bonus of a line that a user asks for, as large as that of high priority. A request of an agent gets none."""
REMEMBERED_LOCK = "remembered.lock"
"""Name of the lock file in backups/, held while a line is added or removed."""
WAIT_SECONDS = 2.0
"""Seconds to wait for another process that writes such a line, which takes some milliseconds."""


class NotRememberedError(MisuseError):
    """The line cannot be a proposal; the message says why."""


@dataclass(frozen=True)
class Remembered:
    """The stored line, or the known one with the same meaning: `proposal_id` is None for a line that a user wrote into
    MEMORY.md, and `known` is the state of a line that was there before."""

    proposal_id: str | None
    text: str
    section: str = ""
    known: str = ""


def remember(
    workspace: Workspace,
    text: str,
    now: datetime,
    *,
    section: str | None = None,
    project: str | None = None,
    cwd: str | None = None,
    trust: str = USER,
    client: str | None = None,
) -> Remembered:
    """Store the redacted line, unless one with the same meaning is pending or approved; for an agent, also if one was
    rejected. Without ``section`` its words determine it. Raises `NotRememberedError`, and filelock.Timeout after two
    seconds.
    """
    settings = workspace.settings
    line = _line(settings, text)
    kind = kind_of_user(line)
    named = section_named(settings, section) if section else section_name(settings.sections, section_of(kind))
    client = clip(one_line(client or ""), MAX_CLIENT)
    row = new_row(settings, line, now, section=named, trust=trust, project=project, cwd=cwd, client=client)
    with remembered_lock(settings):
        if known := _known(workspace, line, project, is_agent=trust != USER):
            return known
        add_rows(workspace.lake, row["day"], [row])
    return Remembered(row["proposal_id"], line, named)


def remembered_lock(settings: Settings) -> FileLock:
    """The lock that is held while a line is added or removed."""
    make_folder(settings.backups)
    return FileLock(settings.backups / REMEMBERED_LOCK, timeout=WAIT_SECONDS)


def new_row(
    settings: Settings,
    line: str,
    now: datetime,
    *,
    section: str,
    trust: str,
    client: str,
    project: str | None,
    cwd: str | None,
) -> RememberedRow:
    """A row without an id, which `add_rows` assigns."""
    kind = kind_of_user(line)
    priority = HIGH if kind in NORMATIVE and trust in (USER, IMPORTED) else MEDIUM
    return {
        "day": day_of(now, settings.zone),
        "proposal_id": "",
        "section": section,
        "text": line,
        "priority": priority,
        "trust": trust,
        "client": client or None,
        "said_at": now,
        "content_hash": content_hash(line),
        "worth": line_score(line, kind, trust, priority) + ASKED_FOR * (trust == USER),
        "cwd": cwd,
        "project": project,
        "owner": settings.owner,
        "source_file": None,
        "source_line": None,
    }


def add_rows(lake: Lake, day: date, rows: Sequence[RememberedRow]) -> None:
    """Store the rows of a day, and set the id of each to the next free one. The caller holds `remembered_lock`."""

    def with_them(stored: pl.DataFrame) -> pl.DataFrame:
        numbers = (int(one.rpartition("-")[2]) for one in stored["proposal_id"])
        for number, row in enumerate(rows, max(numbers, default=FIRST_REMEMBERED - 1) + 1):
            row["proposal_id"] = proposal_id(day, number)
        return pl.concat([stored, pl.DataFrame(rows, schema=TABLES["remembered"].columns)])

    lake.update("remembered", with_them, day)


def section_named(settings: Settings, name: str) -> str:
    """The section of MEMORY.md with this name, ignoring case. Raises `NotRememberedError` for any other name."""
    found = next((s for s in settings.sections if s.casefold().split() == name.casefold().split()), None)
    if found is None:
        raise NotRememberedError(f"There is no section {name!r}; there are {', '.join(settings.sections)}.")
    return found


def describe_requester(row: RememberedRow) -> str:
    """Who asked for the line, or where it was imported from, as shown to a user."""
    if row["trust"] == USER:
        return "you, with `memory remember`"
    if row["trust"] == IMPORTED:
        place = f"{tilde_path(Path(row['source_file'] or ''))}:{row['source_line']}"
        return one_line(f"from {row['client']}, {place}")
    if row["trust"] == TEAM:
        return f"{row['client']}, who have each approved it"
    client = f" ({row['client']})" if row["client"] else ""
    return f"an agent{client}, in words that may not be yours"


def _line(settings: Settings, text: str) -> str:
    # redacting megabytes would take long, only to be refused
    line = one_line(redactor_of(settings).redact(text[: 4 * MAX_TEXT]))
    if not any(character.isalnum() for character in line):
        raise NotRememberedError("There is no text to remember: give a sentence.")
    if len(text) > 4 * MAX_TEXT or len(line) > MAX_TEXT:
        raise NotRememberedError(
            f"It has {len(text):,} characters; a line may have at most {MAX_TEXT:,}, because every session reads it. "
            "Shorten it, or put it into a file of the project and remember where that is."
        )
    if MARK in line:
        raise NotRememberedError(
            "It contains text that `memory forget` deleted, which is not stored again. Rephrase it."
        )
    if names_password(line):
        raise NotRememberedError(
            "It seems to contain a secret, and secrets are not remembered. Say where the secret is stored."
        )
    return line


def _known(workspace: Workspace, line: str, project: str | None, *, is_agent: bool) -> Remembered | None:
    """The known line with the same meaning that makes this one unnecessary; never one that it may be meant to end."""
    log, lines = ProposalLog(workspace.lake), read_active_lines(workspace.settings.memory_file)
    there = {x.proposal_id for x in lines}
    promoted = set(log.events(PROMOTED)["proposal_id"])
    known = list[Remembered]()
    for row in log.memory_lines:
        own, status = row["proposal_id"], row["status"]
        is_removed = own in promoted and own not in there
        counts = status == PENDING or (status == APPROVED and not is_removed) or (is_agent and status == REJECTED)
        if counts and not are_apart([project] if project else [], row["projects"]):
            known.append(Remembered(own, row["decided_text"] or row["text"], known=status))
    known += [Remembered(None, x.text, known="in MEMORY.md") for x in lines]
    return next((k for k in known if says_same(line, k.text)), None)


def says_same(line: str, text: str) -> bool:
    """Whether the two differ in a word at most. This is stricter than for lines found in sessions, as somebody asked
    for the line."""
    return is_same(line, text, EQUAL, cautious=True)


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
        rows = {i: _imported_row(workspace.settings, one.line, now) for i, one in enumerate(found) if not one.known}
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
    for lost_id, text, decision in lost.select("proposal_id", "text", "decision").iter_rows():
        known.add(_KnownAs(lost_id, text, (), decision))
    for line in read_lines(workspace.settings.memory_file):
        projects = ours.get(line.proposal_id or "", (line.project,) if line.project else ())
        struck = _STRUCK.search(line.text) if line.is_struck else None
        own = line.proposal_id if line.proposal_id in ours else None
        known.add(_KnownAs(own, struck["text"] if struck else line.text, projects, STRUCK if struck else IN_FILE))
    return known


def _imported_row(settings: Settings, line: ImportLine, now: datetime) -> RememberedRow:
    place = {"project": line.project, "cwd": line.cwd}
    row = new_row(settings, line.text, now, section=line.section(settings), trust=IMPORTED, client=line.origin, **place)
    return {**row, "source_file": str(line.path), "source_line": line.number}
