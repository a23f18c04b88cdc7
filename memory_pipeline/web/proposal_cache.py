"""A cache of the page's data, valid while the underlying tables are unchanged.

Reading all decisions of a year takes too long for a user. Files of a table are never changed in place, only replaced,
so the modification time of a table's folder shows whether it changed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from memory_pipeline.lake.rows import ProposalState
from memory_pipeline.proposals.cards import Card, cards_of, days_of
from memory_pipeline.proposals.context import Turn, conversations
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.quoted_change import shown_lines
from memory_pipeline.workspace.workspace import Workspace

TABLES = (
    *("sessions", "messages", "observations"),
    *("proposals", "remembered", "supports", "friction_fixes", "events"),
)
"""Tables that proposals and their cards are read from."""
SETTLED_NS = 50_000_000
"""Age in nanoseconds from which a modification time is trusted: a second write may fall into the same tick of the file
system's clock."""
AROUND = 3
"""Number of turns before and after the quoted words."""


@dataclass(frozen=True)
class Shown:
    """A card with the conversation around its quote. ``start`` and ``end`` mark the quote in the message."""

    row: ProposalState
    card: Card
    message_id: str
    start: int
    end: int
    turns: Sequence[Turn]

    @property
    def is_editable(self) -> bool:
        """Whether the user can edit the text and choose the section."""
        return self.card.change is None or self.card.change.is_editable

    @property
    def changes(self) -> list[str]:
        """The changed lines of a fix."""
        return shown_lines(self.card.change) if self.card.change else []


class ProposalCache:
    """The cache of one workspace; it may be used by several threads."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self._lock = threading.Lock()
        self._state: tuple[int, ...] = ()
        self._log: ProposalLog | None = None
        self._pending: list[ProposalState] = []
        self._cards: dict[str, Shown] = {}

    def log(self) -> ProposalLog:
        """All proposals and their events, up to date."""
        with self._lock:
            return self._current()

    def pending(self) -> list[ProposalState]:
        """The pending proposals, best first."""
        with self._lock:
            self._current()
            return self._pending

    def shown(self, rows: Sequence[ProposalState]) -> list[Shown]:
        """The cards of these pending proposals, in their order."""
        with self._lock:
            self._current()
            if missing := [row for row in rows if row["proposal_id"] not in self._cards]:
                self._cards |= self._build_cards(missing)
            return [self._cards[row["proposal_id"]] for row in rows]

    def _current(self) -> ProposalLog:
        state = tuple(self.workspace.lake.storage.changed_at(table) for table in TABLES)
        if self._log is None or state != self._state or max(state) >= time.time_ns() - SETTLED_NS:
            self._log, self._state = ProposalLog(self.workspace.lake), state
            self._pending = self._log.pending()
            self._cards.clear()
        return self._log

    def _build_cards(self, rows: Sequence[ProposalState]) -> dict[str, Shown]:
        cards = cards_of(self.workspace, rows)
        firsts = {row["proposal_id"]: spans[0] for row in rows if (spans := row["evidence"])}
        days = days_of(self.workspace, self._log or ProposalLog(self.workspace.lake), rows)
        said = conversations(self.workspace.lake, days, {span["message_id"] for span in firsts.values()}, AROUND)
        found = {}
        for row, card in zip(rows, cards, strict=True):
            p = row["proposal_id"]
            span = firsts.get(p)
            message, start, end = (span["message_id"], span["start"], span["end"]) if span else ("", 0, 0)
            found[p] = Shown(row, card, message, start, end, said.get(message, []))
        return found
