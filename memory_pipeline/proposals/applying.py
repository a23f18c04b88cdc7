"""Approved friction fixes that change a file of the workspace in another way than by adding a line to MEMORY.md.

Lines are added and struck through as in MEMORY.md: nothing that a user wrote is lost, and `backups/` has the previous
file. Each applied fix is recorded and not applied again, so a user can undo it.
"""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

from memory_pipeline.days import day_of
from memory_pipeline.lake.rows import FixRow, ProposalState, typed_rows
from memory_pipeline.markdown.safe_write import update_file
from memory_pipeline.proposals.events import APPLIED, APPROVED, OpenLog, ProposalLog
from memory_pipeline.proposals.fixes import adds_to_memory, file_of, to_make
from memory_pipeline.proposals.memory_file import Promotion, add_lines, strike_words
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace


def apply_fixes(workspace: Workspace, log: OpenLog, now: datetime) -> list[str]:
    """Make the approved changes that are pending; returns their ids. A change waits while its file is missing."""
    settings, fixes = workspace.settings, log.fixes
    if not fixes:
        return []
    done, applied = set(log.events(APPLIED)["proposal_id"]), list[str]()
    for row in typed_rows(log.frame, ProposalState):
        proposal_id = row["proposal_id"]
        fix = fixes.get(proposal_id)
        if fix is None or row["status"] != APPROVED or proposal_id in done or adds_to_memory(fix):
            continue
        path = file_of(settings, fix)
        if path is None or not path.is_file():
            continue
        text = row["decided_text"] or row["text"]
        section = row["decided_section"] or fix["section"] or settings.sections[1]
        _apply(settings, path, fix, Promotion(proposal_id, section, text, row["day"]), day_of(now, settings.zone))
        log.add(APPLIED, [{"proposal_id": proposal_id, "surface": fix["place"]}], now)
        applied.append(proposal_id)
    return applied


def struck_by_fixes(log: ProposalLog, approved: list[ProposalState], today: date) -> dict[str, tuple[str, date]]:
    """The lines of MEMORY.md that these proposals replace: text to the id of the fix and its day."""
    fixes = log.fixes
    rows = [(fixes[p], row) for row in approved if (p := row["proposal_id"]) in fixes]
    return {fix["replaces"]: (fix["proposal_id"], today) for fix, _ in rows if fix["replaces"]}


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


def _apply(settings: Settings, path: Path, fix: FixRow, line: Promotion, today: date) -> None:
    over = {fix["replaces"]: (line.proposal_id, today)} if fix["replaces"] else {}

    def edit(current: bytes | None) -> bytes:
        data = current or b""
        if fix["adds"]:
            data = add_lines(data or b"\n", [line], ()).data
        return strike_words(data, over)

    update_file(path, edit, backups=settings.backups)
