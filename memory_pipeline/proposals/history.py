"""The history of a proposal in order, from the day for which it was offered to the current state of its line in
MEMORY.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any, TypedDict

import polars as pl

from memory_pipeline.lake.rows import (
    EventRow,
    ProposalState,
    RememberedRow,
    SupportRow,
    typed_rows,
)
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.events import (
    APPLIED,
    APPROVED,
    DECIDED,
    DISPLACED,
    PENDING,
    PROMOTED,
    REOFFERED,
    SHOWN,
    ProposalLog,
)
from memory_pipeline.proposals.fixes import to_make
from memory_pipeline.proposals.memory_file import MemoryLine, lines_of, normalised
from memory_pipeline.proposals.remembering import IMPORTED, describe_requester
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace

IN_MEMORY = "in MEMORY.md"
_ORDER = ("said again", "shown", "displaced")
"""Events that come first among those with the same time; the decision and its effects follow."""


class Event(TypedDict):
    """An event of a proposal, for display."""

    moment: Any
    """The time in the user's zone, a day if only that is known, or None for the present."""
    event: str
    detail: str


def history(workspace: Workspace, proposal_id: str) -> list[Event]:
    """The events of the proposal; empty if it does not exist."""
    log, zone = ProposalLog(workspace.lake), workspace.settings.zone
    row = log.rows([proposal_id]).get(proposal_id)
    if row is None:
        return []
    promotions = {r["proposal_id"]: r for r in typed_rows(log.events(PROMOTED), EventRow)}
    promotion = promotions.get(proposal_id)
    newer = [r for r in typed_rows(log.frame, ProposalState) if proposal_id in (r["supersedes"] or [])]
    events, by = [*_decided(row), *_repeated(log, proposal_id), *_recorded(log, proposal_id)], None
    for other in newer:
        if promotion and (over := promotions.get(other["proposal_id"])):
            by = other["proposal_id"]
            events.append(_event(over["happened_at"], "struck through", f"superseded by {by}"))
    events.sort(key=lambda e: (e["moment"], _ORDER.index(e["event"]) if e["event"] in _ORDER else len(_ORDER)))
    untimed = _untimed_repetitions(log, proposal_id)
    for event in events:
        moment = event["moment"].astimezone(zone)
        event["moment"] = moment.date() if event["moment"] in untimed else moment
    if row["status"] == APPROVED:
        waiting = [r["proposal_id"] for r in newer if r["status"] == PENDING]
        events += [_event(None, "may be replaced", f"{p} is pending") for p in waiting]
    events += _later_changes(workspace.settings, promotion, by) if promotion else []
    fix = log.fixes.get(proposal_id)
    if fix and not fix["place"] and row["status"] == APPROVED:
        events.append(_event(None, "left to you", to_make(fix, row["decided_text"] or row["text"])))
    return [_event(row["day"], "offered", _offered(log, row)), *events]


def _offered(log: ProposalLog, row: ProposalState) -> str:
    """The section, the lines that it would replace, and who asked for it."""
    asked = typed_rows(log.table("remembered").filter(proposal_id=row["proposal_id"]), RememberedRow)
    takes = f", in the place of {', '.join(row['supersedes'])}" if row["supersedes"] else ""
    origins = (f"{'' if r['trust'] == IMPORTED else 'asked for by '}{describe_requester(r)}" for r in asked)
    return row["section"] + takes + "".join(f", {origin}" for origin in origins)


def _repeated(log: ProposalLog, proposal_id: str) -> Iterator[Event]:
    for r in typed_rows(log.table("supports").filter(proposal_id=proposal_id), SupportRow):
        times = len(r["sources"])
        yield _event(r["said_at"], "said again", "once" if times == 1 else f"{times} times")


def _recorded(log: ProposalLog, proposal_id: str) -> Iterator[Event]:
    """The recorded events of a proposal, without the decision in force."""
    rows = typed_rows(log.table("events").filter(proposal_id=proposal_id), EventRow)
    is_reoffered = any(row["kind"] == REOFFERED for row in rows)
    for row in rows:
        surface = row["surface"] or ""
        there = ", which already had it" if row["already_there"] else ""
        told = {
            SHOWN: ("shown", surface),
            DISPLACED: ("displaced", f"displaced by better lines in {surface}"),
            REOFFERED: ("offered again", row["reason"] or ""),
            APPLIED: ("applied", surface),
            PROMOTED: (IN_MEMORY, f"{row['section']}{there}"),
        }
        if row["kind"] in told:
            yield _event(row["happened_at"], *told[row["kind"]])
        elif row["kind"] == DECIDED and is_reoffered and not row["again"]:
            yield _event(row["happened_at"], row["decision"] or "", row["reason"] or "")


def _untimed_repetitions(log: ProposalLog, proposal_id: str) -> set[datetime]:
    """The times of repetitions for which only the day is known."""
    again = typed_rows(log.table("supports").filter(proposal_id=proposal_id), SupportRow)
    columns = ["observation_id", "observed_at", "untimed"]
    observed = log.lake.read("observations", {r["day"] for r in again}, columns).filter(
        pl.col("untimed").is_not_null(), pl.col("observation_id").is_in([s for r in again for s in r["sources"]])
    )
    return set(observed["observed_at"]) if again else set()


def _decided(row: ProposalState) -> Iterator[Event]:
    if row["decided_at"] is not None:
        edited = row["status"] == APPROVED and one_line(row["decided_text"] or "") != one_line(row["text"])
        parts = (row["surface"], "edited" if edited else None, row["reason"])
        yield _event(row["decided_at"], row["status"], ", ".join(part for part in parts if part))


def _later_changes(settings: Settings, promotion: EventRow, by: str | None) -> list[Event]:
    """The user's later changes to the line; empty if it is unchanged."""
    path = settings.memory_file
    if not path.exists():
        return [_event(None, "missing", "there is no MEMORY.md")]
    lines = lines_of(path.read_bytes())
    line = _find_line(lines, promotion)
    if line is None:
        return [_event(None, "removed", "its line is no longer in MEMORY.md")]
    if line.is_struck:
        return [] if by else [_event(None, "removed", "its line was struck through by hand")]
    if by:
        return [_event(None, "restored", "its line is no longer struck through")]
    if normalised(line.text) != normalised(promotion["text"] or ""):
        return [_event(None, "reworded by hand", line.text)]
    return []


def _find_line(lines: Sequence[MemoryLine], promotion: EventRow) -> MemoryLine | None:
    """The line in MEMORY.md, found by its id, or by its words if it was there before promotion."""
    words = normalised(promotion["text"] or "") if promotion["already_there"] else None
    return next(
        (x for x in lines if x.proposal_id == promotion["proposal_id"] or (words and normalised(x.text) == words)), None
    )


def _event(moment: datetime | date | None, event: str, detail: str) -> Event:
    return {"moment": moment, "event": event, "detail": detail}
