"""The memory as it was before a day: approved, offered and observed lines, and the texts made from them.

Decisions are read from the events, with their local days. A line counts as offered from the day of the sessions that
it comes from, as if the pipeline had run every day; in a backfill it was in fact offered later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Literal, get_args

import polars as pl

from memory_pipeline.actions.files import error_signatures
from memory_pipeline.friction.messages import bare
from memory_pipeline.lake.rows import FrictionRow, ObservationRow, ProposalState, typed_rows
from memory_pipeline.lake.storage import File
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.proposals.events import (
    APPLIED,
    APPROVED,
    DECIDED,
    EXPIRED,
    PROMOTED,
    REJECTED,
    ProposalLog,
    is_fix,
)
from memory_pipeline.proposals.memory_file import Promotion, add_lines
from memory_pipeline.scope import without_note
from memory_pipeline.text.kinds import NORMATIVE
from memory_pipeline.text.relation import statement
from memory_pipeline.workspace.workspace import Workspace

State = Literal["approved", "offered", "observed", "rejected"]
STATES: tuple[State, ...] = get_args(State)
"""The states of a line before a day, the strongest first."""
USER = "user"


class LakeBefore(Lake):
    """The tables without the days from a given one on."""

    def __init__(self, lake: Lake, day: date) -> None:
        super().__init__(lake.storage)
        self._end = f"{day}"

    def _files(self, table: str, days: Iterable[date] | None) -> list[File]:
        found = super()._files(table, days)
        return [file for file in found if file.stem < self._end] if TABLES[table].daily else found

    def _dated_files(self, table: str) -> list[File]:
        return [file for file in super()._dated_files(table) if file.stem < self._end]


@dataclass(frozen=True)
class KnownLine:
    """A line that the memory holds since a day."""

    line_id: str
    text: str
    projects: tuple[str, ...]
    since: date
    sessions: frozenset[str]
    """The sessions that it comes from."""
    sources: frozenset[str]
    """Its id, and those of the rows and messages that it comes from: a search may find any of them."""
    section: str = ""
    is_proposal: bool = False
    approved_on: date | None = None
    ended_on: date | None = None
    """The day on which it was rejected, withdrawn, or replaced by another line."""
    was_rejected: bool = False

    @cached_property
    def words(self) -> str:
        """The text as it is compared."""
        return bare(without_note(self.text))

    def state_before(self, day: date) -> State | None:
        """The state at the end of the day before; None if it did not exist or was no longer in force."""
        if self.since >= day:
            return None
        if not self.is_proposal:
            return "observed"
        if self.ended_on and self.ended_on < day:
            return "rejected" if self.was_rejected else None
        return "approved" if self.approved_on and self.approved_on < day else "offered"


class MemoryHistory:
    """All lines of a workspace with the days on which their states changed."""

    def __init__(self, workspace: Workspace) -> None:
        self.settings, self.lake = workspace.settings, workspace.lake
        self.log = ProposalLog(workspace.lake)
        self.lines = [*self._proposals(), *self._observations()]
        self._errors: dict[tuple[str, date], set[str]] = {}
        self._having: defaultdict[str, list[KnownLine]] = defaultdict(list)
        for line in self.lines:
            for stem in statement(line.words).stems:
                self._having[stem].append(line)

    def near(self, text: str) -> list[KnownLine]:
        """The lines that share a stem with the text, each once."""
        stems = statement(text).stems
        return list({id(line): line for stem in sorted(stems) for line in self._having.get(stem, ())}.values())

    def memory_file_before(self, day: date, *states: State) -> bytes | None:
        """MEMORY.md with the lines that were in one of these states before the day, in the order of their approval."""
        lines = [line for line in self.lines if line.is_proposal and line.state_before(day) in states]
        lines.sort(key=lambda line: (line.approved_on or date.max, line.since, line.line_id))
        promotions = [Promotion(x.line_id, x.section, x.text, x.since, x.projects) for x in lines]
        return add_lines(None, promotions, self.settings.sections).data if promotions else None

    def fix_state_before(self, pattern_id: str, day: date) -> State:
        """The state of the change that would end a friction pattern."""
        if any(done < day for done in self._fixes_approved.get(pattern_id, ())):
            return "approved"
        fix = self.log.fixes.get(pattern_id)
        return "offered" if fix and fix["day"] < day else "observed"

    def errors_of(self, row: FrictionRow) -> set[str]:
        """The signatures of the errors of a pattern; see `error_signatures`."""
        key = row["pattern_id"], row["day"]
        if key not in self._errors:
            self._errors[key] = set(error_signatures(row, self.lake))
        return self._errors[key]

    @cached_property
    def _fixes_approved(self) -> dict[str, list[date]]:
        done = pl.col("kind").is_in([APPLIED, DECIDED]) & (pl.col("decision").fill_null(APPROVED) == APPROVED)
        rows = self.log.table("events").filter(done).select("proposal_id", "day").iter_rows()
        found: defaultdict[str, list[date]] = defaultdict(list)
        for proposal_id, day in rows:
            if is_fix(proposal_id):
                found[proposal_id].append(day)
        return found

    def _proposals(self) -> Iterator[KnownLine]:
        promoted = {i: (day, text) for i, day, text in self._events(PROMOTED).select(*_EVENT, "text").iter_rows()}
        decided = {i: (day, end) for i, day, end in self._events(DECIDED).select(*_EVENT, "decision").iter_rows()}
        rows = typed_rows(self.log.frame, ProposalState)
        replaced_on = {
            old: promoted[row["proposal_id"]][0]
            for row in rows
            if row["proposal_id"] in promoted
            for old in row["supersedes"] or ()
        }
        for row in rows:
            proposal_id = row["proposal_id"]
            if is_fix(proposal_id):
                continue
            approved_on, text = promoted.get(proposal_id, (None, None))
            decided_on, end = decided.get(proposal_id, (None, None))
            is_over = end not in (None, APPROVED, EXPIRED)
            yield KnownLine(
                proposal_id,
                text or row["text"],
                tuple(row["projects"] or ()),
                row["day"],
                frozenset(row["session_ids"] or ()),
                frozenset((proposal_id, *row["sources"], *(span["message_id"] for span in row["evidence"] or ()))),
                row["decided_section"] or row["section"],
                is_proposal=True,
                approved_on=approved_on,
                ended_on=replaced_on.get(proposal_id) or (decided_on if is_over else None),
                was_rejected=end == REJECTED,
            )

    def _events(self, kind: str) -> pl.DataFrame:
        return self.log.events(kind).filter(pl.col("day").is_not_null()).sort("day", "happened_at")

    def _observations(self) -> Iterator[KnownLine]:
        columns = ("day", "observation_id", "text", "kind", "trust", "session_id", "project", "evidence")
        rows = self.lake.read("observations", columns=columns)
        rows = rows.filter((pl.col("trust") == USER) & pl.col("kind").is_in(NORMATIVE))
        for row in typed_rows(rows, ObservationRow):
            yield KnownLine(
                row["observation_id"],
                row["text"],
                (row["project"],) if row["project"] else (),
                row["day"],
                frozenset((row["session_id"],)),
                frozenset((row["observation_id"], *(span["message_id"] for span in row["evidence"]))),
            )


_EVENT = ("proposal_id", "day")
