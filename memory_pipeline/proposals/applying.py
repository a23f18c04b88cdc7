"""The writing of approved proposals: lines of MEMORY.md, and friction fixes of other files of the workspace.

Lines are added and struck through: nothing that a user wrote is lost, and `backups/` has the previous file. Each
proposal is written once, so a line that a user removed does not return, and a change that they undid is not repeated.

Each reconciliation keeps a copy of MEMORY.md, from which the file is restored if it is gone. A file with any content is
left to the user, whatever lines are missing.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path

from memory_pipeline.days import day_of
from memory_pipeline.lake.rows import ProposalState
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.safe_write import copies_of, is_blank, keep_copy, update_file
from memory_pipeline.proposals.events import APPLIED, APPROVED, PROMOTED, OpenLog, ProposalLog, adds_to_memory
from memory_pipeline.proposals.fixes import file_of, to_make
from memory_pipeline.proposals.memory_file import Promotion, add_lines, lines_of, strike_lines, strike_words
from memory_pipeline.reflections.types import REFLECTED
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace

logger = logging.getLogger(__name__)


def promote(workspace: Workspace, log: OpenLog, now: datetime) -> list[str]:
    """Add approved proposals that were not promoted yet to MEMORY.md; returns their ids.

    Lines that they replace are struck through. If the file is gone, it is restored from its newest copy or, without
    one, from the tables.
    """
    settings, fixes = workspace.settings, log.fixes
    approved = [row for row in log.memory_lines if row["status"] == APPROVED]
    done = dict(log.events(PROMOTED).select("proposal_id", "already_there").iter_rows())
    rows = [r for r in approved if r["proposal_id"] not in done]
    if not rows:
        keep_copy(settings.memory_file, settings.backups)
        return []
    today = day_of(now, settings.zone)
    over = {fix["replaces"]: (p, today) for r in rows if (fix := fixes.get(p := r["proposal_id"])) and fix["replaces"]}
    present: list[str] = []

    def edit(current: bytes | None) -> bytes:
        new = rows
        if done and is_gone(current):
            copy = newest_copy(settings.memory_file)
            current = copy.read_bytes() if copy else None
            new = rows if copy else [r for r in approved if not done.get(r["proposal_id"])]
            logger.warning(f"{settings.memory_file} was missing; it was restored from {copy or 'the tables'}.")
        result = add_lines(current, [_promotion(r) for r in new], settings.sections)
        present[:] = result.present
        replaced = {old: (r["proposal_id"], today) for r in new for old in r["supersedes"] or []}
        return strike_words(strike_lines(result.data, replaced), over)

    update_file(settings.memory_file, edit, backups=settings.backups)
    keep_copy(settings.memory_file, settings.backups)  # before recording: without a copy the lines would be added again
    made = [
        {"proposal_id": p.proposal_id, "section": p.section, "text": p.text, "already_there": p.proposal_id in present}
        for p in map(_promotion, rows)
    ]
    log.add(PROMOTED, made, now)
    return [row["proposal_id"] for row in rows]


def _promotion(row: ProposalState) -> Promotion:
    """The line for MEMORY.md. A line without a section goes under a heading with its day."""
    section = row["decided_section"] or row["section"]
    section = f"{REFLECTED} ({row['day'].isoformat()})" if section == REFLECTED else section
    text = row["decided_text"] or row["text"]
    return Promotion(row["proposal_id"], section, text, row["day"], tuple(row["projects"] or ()))


def apply_fixes(workspace: Workspace, log: OpenLog, now: datetime) -> list[str]:
    """Make the approved changes other than new lines of MEMORY.md; returns their ids. A change waits while its file is
    missing."""
    settings = workspace.settings
    done, today, applied = set(log.events(APPLIED)["proposal_id"]), day_of(now, settings.zone), list[str]()
    rows = log.rows(log.fixes) if log.fixes else {}
    for proposal_id, row in rows.items():
        fix = log.fixes[proposal_id]
        if row["status"] != APPROVED or proposal_id in done or adds_to_memory(fix):
            continue
        path = file_of(settings, fix)
        if path is None or not path.is_file():
            continue
        text = row["decided_text"] or row["text"]
        section = row["decided_section"] or fix["section"] or settings.sections[1]
        line = Promotion(proposal_id, section, text, row["day"]) if fix["adds"] else None
        _apply(settings, path, line, {fix["replaces"]: (proposal_id, today)} if fix["replaces"] else {})
        log.add(APPLIED, [{"proposal_id": proposal_id, "surface": fix["place"]}], now)
        applied.append(proposal_id)
    return applied


def _apply(settings: Settings, path: Path, line: Promotion | None, over: Mapping[str, tuple[str, date]]) -> None:
    def edit(current: bytes | None) -> bytes:
        data = add_lines(current or b"\n", [line], ()).data if line else current or b""
        return strike_words(data, over)

    update_file(path, edit, backups=settings.backups)


def left_to_the_user(log: ProposalLog, since: datetime | None = None) -> dict[str, str]:
    """Approved fixes that the user has to make, optionally only those approved since a time: id to instruction."""
    fixes = log.fixes
    rows = log.rows(fixes) if fixes else {}
    return {
        p: to_make(fixes[p], row["decided_text"] or row["text"])
        for p, row in rows.items()
        if row["status"] == APPROVED and not fixes[p]["place"]
        if since is None or (row["decided_at"] and row["decided_at"] >= since)
    }


def newest_copy(memory_file: Path) -> Path | None:
    """The newest copy with content."""
    copies = copies_of(memory_file, memory_file.parent / "backups")
    return next((path for path in reversed(copies) if not is_blank(path.read_bytes())), None)


def is_gone(data: bytes | None) -> bool:
    """Whether MEMORY.md is missing, or only the zeros of a power cut are left. A blank file may have been emptied by
    the user."""
    return data is None or (bool(data) and not data.strip(b"\0"))


def is_reviewed_elsewhere(lake: Lake, memory_file: Path) -> bool:
    """Whether the workspace never had a MEMORY.md, but another workspace with the same lake in a bucket may have it."""
    return lake.storage.is_far and not memory_file.exists() and newest_copy(memory_file) is None


def memory_loss(lake: Lake, memory_file: Path) -> str | None:
    """A message if MEMORY.md is missing or blank although lines were promoted, with a way to restore them."""
    data = memory_file.read_bytes() if memory_file.exists() else None
    if (data is not None and not is_blank(data)) or is_reviewed_elsewhere(lake, memory_file):
        return None
    copy = newest_copy(memory_file)
    has_lines = copy is None or bool(lines_of(copy.read_bytes()))
    if not has_lines or ProposalLog(lake).events(PROMOTED).is_empty():
        return None
    state = "is missing" if data is None else "is empty"
    back = "" if is_gone(data) else "remove it, then "
    back += "the next line that you approve restores it"
    if copy:
        back = f"`cp {shlex.quote(str(copy))} {shlex.quote(str(memory_file))}` restores it"
    return f"{memory_file} {state}, although lines were approved: {back}. To start over, write `# Memory` into it."
