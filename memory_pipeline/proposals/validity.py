"""Validity of a proposal at the time of approval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.lake.rows import FixRow, ProposalState
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.events import ProposalLog, is_fix
from memory_pipeline.proposals.memory_file import MemoryLine, normalised, read_active_lines
from memory_pipeline.text.relation import EQUAL, is_same
from memory_pipeline.workspace.workspace import Workspace

SOURCE_GONE = "its source was withdrawn, made private or deleted"
Known = Sequence[tuple[MemoryLine, str]]
"""Lines of MEMORY.md, each with its normalised text."""


def invalid(workspace: Workspace, log: ProposalLog, approvals: Mapping[str, str]) -> dict[str, str]:
    """The reasons why approved proposals (id to text) must not be promoted, by id; valid ones are left out."""
    if not approvals:
        return {}
    rows = log.rows(approvals)
    gone, fixes = _without_source(workspace, rows), log.fixes
    known = [(line, normalised(line.text)) for line in read_active_lines(workspace.settings.memory_file)]
    found = {}
    for proposal_id, row in rows.items():
        text = approvals[proposal_id]
        if not one_line(text):
            found[proposal_id] = "none of its text is visible"
            continue
        if fix := fixes.get(proposal_id):
            reason = _invalid_fix_reason(workspace, fix, row, text, known)
        else:
            reason = SOURCE_GONE if proposal_id in gone else _known_reason(row, text, known)
        if reason:
            found[proposal_id] = reason
    return found


def _invalid_fix_reason(workspace: Workspace, fix: FixRow, row: ProposalState, text: str, known: Known) -> str | None:
    """The reason why a fix of MEMORY.md is invalid, or None; changes of other files are up to the user."""
    if fix["place"] != workspace.settings.memory_file.name:
        return None
    over = normalised(fix["replaces"] or "")
    if fix["adds"]:
        return _known_reason(row, text, known, over)
    is_there = any(over in said for _, said in known)
    return None if is_there else "MEMORY.md no longer has the line that it would strike out"


def _known_reason(row: ProposalState, text: str, known: Known, over: str = "") -> str | None:
    """The reason if MEMORY.md already has the text, in another line than those that it replaces (``over`` gives one by
    its words), or None."""
    replaced = set(row["supersedes"] or [])
    wanted = normalised(text)
    for line, said in known:
        if said == over:
            continue
        # an edited text is refused only if it is equal: the user has seen it
        same = said == wanted or (text == row["text"] and is_same(text, line.text, EQUAL))
        if same and line.proposal_id not in replaced:
            return f"MEMORY.md already says this, in line {line.line_number}"
    return None


def _without_source(workspace: Workspace, rows: Mapping[str, ProposalState]) -> set[str]:
    """Proposals whose source was withdrawn, made private or deleted. Days without tables show nothing."""
    rows = {p: row for p, row in rows.items() if not is_fix(p)}
    days = {d for row in rows.values() for d in lookback(row["day"], workspace.settings.lookback_days)}
    kept = [d for d in workspace.lake.days("messages") if d in days]
    messages = workspace.lake.read("messages", kept, ["message_id", "voided"])
    alive = set(messages.filter(~pl.col("voided").fill_null(False))["message_id"])
    said = {p: {span["message_id"] for span in row["evidence"] or []} for p, row in rows.items() if row["day"] in kept}
    return {p for p, ids in said.items() if ids and not ids & alive}
