"""Validity of a proposal at the time of approval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.lake.rows import FixRow, ProposalState, typed_rows
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.observations.flags import ENDED
from memory_pipeline.proposals.events import APPROVED, ProposalLog, is_fix
from memory_pipeline.proposals.memory_file import MemoryLine, normalised, read_active_lines
from memory_pipeline.scope import may_end
from memory_pipeline.text.relation import EQUAL, is_same, replaces
from memory_pipeline.workspace.workspace import Workspace

Known = Sequence[tuple[MemoryLine, str]]
"""Lines of MEMORY.md, each with its normalised text."""


def invalid(workspace: Workspace, log: ProposalLog, approvals: Mapping[str, str]) -> dict[str, str]:
    """The reasons why approved proposals (id to text) must not be promoted, by id; valid ones are left out."""
    if not approvals:
        return {}
    rows = log.rows(approvals)
    gone = _without_evidence(workspace, rows)
    lines = read_active_lines(workspace.settings.memory_file)
    newer, known, fixes = _replacing_proposals(log, lines), [(line, normalised(line.text)) for line in lines], log.fixes
    found = {}
    for proposal_id, row in rows.items():
        text = approvals[proposal_id]
        if not one_line(text):
            found[proposal_id] = "none of its text is visible"
            continue
        if fix := fixes.get(proposal_id):
            reason = _invalid_fix_reason(workspace, fix, row, text, known)
        else:
            reason = gone.get(proposal_id) or _known_reason(row, text, known) or _contradiction_reason(row, text, newer)
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


def _contradiction_reason(row: ProposalState, text: str, newer: list[ProposalState]) -> str | None:
    for other in newer:
        later = other["last_seen"] and row["last_seen"] and other["last_seen"] > row["last_seen"]
        named = row["proposal_id"] in (other["supersedes"] or [])
        reaches = may_end(other["projects"], row["projects"])
        if named or (later and reaches and replaces(other["text"], text)):
            return f"MEMORY.md has a later statement ({other['proposal_id']}): {other['text']}"
    return None


def _replacing_proposals(log: ProposalLog, lines: list[MemoryLine]) -> list[ProposalState]:
    """The approved proposals in MEMORY.md that replace another line, with their current words there."""
    texts = {line.proposal_id: line.text for line in lines if line.proposal_id}
    rows = log.frame.filter(pl.col("proposal_id").is_in(list(texts)))
    return [
        row | {"text": texts[row["proposal_id"]]}
        for row in typed_rows(rows, ProposalState)
        if row["status"] == APPROVED
    ]


def _without_evidence(workspace: Workspace, rows: Mapping[str, ProposalState]) -> dict[str, str]:
    """Proposals whose evidence is gone: withdrawn, made private, or ended by a later statement.

    Days without tables show nothing, and neither do observations with other ids: another observer may have seen the
    same words.
    """
    rows = {p: row for p, row in rows.items() if not is_fix(p)}
    days = {d for row in rows.values() for d in lookback(row["day"], workspace.settings.lookback_days)}
    kept = [d for d in workspace.lake.days("messages") if d in days]
    messages = workspace.lake.read("messages", kept, ["message_id", "voided"])
    alive = set(messages.filter(~pl.col("voided").fill_null(False))["message_id"])
    flags = dict(workspace.lake.read("observations", days, ["observation_id", "flags"]).iter_rows())
    found = {}
    for proposal_id, row in rows.items():
        said = {span["message_id"] for span in row["evidence"] or []}
        seen = [flags[s] or [] for s in row["sources"] if s in flags]
        if row["day"] in kept and said and not said & alive:
            found[proposal_id] = "its source was withdrawn, made private or deleted"
        elif seen and all(ENDED in f for f in seen):
            found[proposal_id] = "a later statement ended it"
    return found
