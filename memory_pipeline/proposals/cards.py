"""A proposal as it is shown in the terminal and browser reviews: the line, its origin, and quotes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import polars as pl

from memory_pipeline.days import day_of
from memory_pipeline.lake.rows import ProposalState
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.context import NOT_KEPT, Context, contexts
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.fixes import to_make
from memory_pipeline.proposals.review import as_offered
from memory_pipeline.proposals.review_file import Proposal
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

QUOTES_SHOWN, QUOTE_LENGTH = 2, 300


@dataclass(frozen=True, kw_only=True)
class Card(Proposal):
    """A proposal for display: `quotes` have a text and its file and line, `places` is the number of all quotes.

    No text has control characters, which could move the cursor, or hidden ones: users review what they see.
    """

    mark: str
    quotes: tuple[tuple[str, str], ...]
    places: int
    contexts: tuple[Context, ...]
    """The context before and after each quote."""
    to_make: str
    """The instruction for a fix that the user, or their agent, makes after approval."""


def cards_of(workspace: Workspace, rows: Sequence[ProposalState]) -> list[Card]:
    """The cards of these rows of `proposals`, in order; each table is read once."""
    log = ProposalLog(workspace.lake)
    offered, fixes = {p.proposal_id: p for p in as_offered(workspace, log, rows)}, log.fixes
    days = days_of(workspace, log, rows)
    wanted = {span["message_id"] for row in rows for span in row["evidence"] or []}
    columns = ["message_id", "text", "source_file", "source_line"]
    messages = workspace.lake.read("messages", days, columns).filter(pl.col("message_id").is_in(list(wanted)))
    said = {m["message_id"]: m for m in messages.iter_rows(named=True)}
    around = contexts(
        workspace.lake, days, {s["message_id"] for r in rows for s in (r["evidence"] or [])[:QUOTES_SHOWN]}
    )
    cards = []
    for row in rows:
        p = row["proposal_id"]
        proposal, fix, spans = offered[p], fixes.get(p), row["evidence"] or []
        visible = {"section": one_line(proposal.section), "evidence": one_line(proposal.evidence)}
        card = Card(
            **vars(proposal) | visible | {"text": row["text"] if fix else one_line(row["text"])},
            mark=workspace.settings.marks[row["priority"]],
            quotes=_quotes(row, said),
            places=fix["occurrences"] if fix else len(spans),
            contexts=tuple(around[m] for span in spans[:QUOTES_SHOWN] if (m := span["message_id"]) in around),
            to_make=to_make(fix, row["text"]) if fix and not fix["place"] else "",
        )
        cards.append(card)
    return cards


def days_of(workspace: Workspace, log: ProposalLog, rows: Sequence[ProposalState]) -> set[date]:
    """The days on which the evidence of these rows may have been said."""
    fixes, settings = log.fixes, workspace.settings
    days = {row["day"] - timedelta(days=back) for row in rows for back in range(settings.lookback_days)}
    return days | {day_of(fixes[p]["said_at"], settings.zone) for row in rows if (p := row["proposal_id"]) in fixes}


def _quotes(row: ProposalState, said: Mapping[str, dict[str, Any]]) -> tuple[tuple[str, str], ...]:
    quotes = []
    for span in (row["evidence"] or [])[:QUOTES_SHOWN]:
        message = said.get(span["message_id"])
        if message is None:
            quotes.append((f"message {span['message_id']} is no longer in the tables", ""))
            continue
        words = clip(one_line(message["text"][span["start"] : span["end"]]), QUOTE_LENGTH)
        shown = "in just these words:" if words == one_line(row["text"]) else f"“{words}”" if words else NOT_KEPT
        quotes.append((shown, one_line(f"{message['source_file']}:{message['source_line']}")))
    return tuple(quotes)
