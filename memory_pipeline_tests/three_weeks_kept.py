"""What must hold after every run of `three_weeks.ThreeWeeks`, found in the tables and files and not by asking the code.

No proposal vanishes or changes, each has at most one end, REVIEW.md and the logs tell just what the tables do, and
MEMORY.md loses nothing but what a person agreed to lose.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.settings import Settings

ENDS = ("approved", "rejected", "expired", "invalid", "superseded")
WEEK, WARNED = timedelta(days=7), timedelta(days=5)
SHOWN_AT_ONCE = 9
_ITEM = re.compile(r"^- \[ \] `(p-\d{8}-\d{3})` (.*)\n  _(.*)_$", re.MULTILINE)
_COUNT = re.compile(r"^_Last updated: .* \| (\d+)(?: shown of (\d+))? proposals pending_$", re.MULTILINE)
_OURS = re.compile(r"^- .* <!-- (p-\d{8}-\d{3}) -->\n", re.MULTILINE)

Row = dict[str, Any]


class Kept:
    """Remembers what there was, and looks whether it is still there."""

    def __init__(self, settings: Settings, lake: Lake) -> None:
        self.settings, self.lake = settings, lake
        self.proposals: dict[str, Row] = {}
        self.decisions: dict[str, Row] = {}
        self.first_seen: dict[str, datetime] = {}
        self._displaced: set[str] = set()
        """By proposal, the first run after which it stood in REVIEW.md."""
        self.most_waiting = 0
        self._lines: dict[str, str] = {}
        """Our lines of MEMORY.md by proposal, as they were written."""
        self._own = ""
        """MEMORY.md without our lines."""

    @property
    def ends(self) -> dict[str, str]:
        return {p: row["decision"] for p, row in self.decisions.items()}

    @property
    def pending(self) -> set[str]:
        return self.proposals.keys() - self.decisions.keys()

    def by_hand(self) -> None:
        """A person has just written into MEMORY.md; from now on this is theirs."""
        self._own = _OURS.sub("", self._memory())

    def look(self, now: datetime) -> None:
        self.at = f"{now:%A %Y-%m-%d %H:%M}"
        self._look_at_the_tables()
        self._look_at_the_review(now)
        self._look_at_the_logs()
        self._look_at_the_memory()

    def _look_at_the_tables(self) -> None:
        made = self.lake.read("proposals").to_dicts()
        found = {row["proposal_id"]: row for row in made}
        assert len(found) == len(made), (
            f"{self.at}: a proposal was created twice, so one decision would leave the other"
        )
        self._is_still_there(self.proposals, found, "proposal")
        self.proposals = found
        decisions = ProposalLog(self.lake).events("decided").to_dicts()
        ended = {row["proposal_id"]: row for row in decisions}
        twice = sorted(p for p in ended if sum(row["proposal_id"] == p for row in decisions) > 1)
        assert not twice, f"{self.at}: {twice} ended twice; which of the two a person meant is lost"
        self._is_still_there(self.decisions, ended, "decision")
        self.decisions = ended
        assert ended.keys() <= found.keys(), f"{self.at}: decisions on proposals that were never made"
        unknown = {row["decision"] for row in decisions} - set(ENDS)
        assert not unknown, f"{self.at}: the end {unknown} is none, and its proposals would be nowhere"

    def _is_still_there(self, before: dict[str, Row], after: dict[str, Row], what: str) -> None:
        gone = sorted(before.keys() - after.keys())
        assert not gone, f"{self.at}: the {what} of {gone} vanished, and nobody would be told"
        changed = sorted(p for p in before if before[p] != after[p])
        assert not changed, f"{self.at}: the {what} of {changed} is not what a person was shown any more"

    def _look_at_the_review(self, now: datetime) -> None:
        path = self.settings.review_file
        text = path.read_text("utf-8") if path.exists() else ""
        items = _ITEM.findall(text)
        shown = {p for p, *_ in items}
        assert len(shown) == len(items) == text.count("- [ ] `p-"), f"{self.at}: REVIEW.md shows a line twice or bent"
        assert shown <= self.pending, f"{self.at}: REVIEW.md asks about {shown - self.pending}, which have ended"
        wanted = min(len(self.pending), SHOWN_AT_ONCE)
        assert len(shown) == wanted, (
            f"{self.at}: {len(self.pending)} proposals are pending and REVIEW.md shows {len(shown)}, not {wanted}: "
            "either nobody will ever decide on some, or a person is buried in them"
        )
        counts = _COUNT.findall(text)
        wanted_counts = [(f"{len(shown)}", f"{total}" if (total := len(self.pending)) > len(shown) else "")]
        assert counts == wanted_counts or not text, f"{self.at}: REVIEW.md counts {counts}, and shows {len(shown)}"
        for proposal_id, words, evidence in items:
            assert words == self.proposals[proposal_id]["text"], (
                f"{self.at}: {proposal_id} has other words than its row"
            )
            if proposal_id in self._displaced:  # a better line had its place; those days do not count
                continue
            self._has_its_time(proposal_id, evidence, self.first_seen.setdefault(proposal_id, now), now)
        self._displaced |= self.first_seen.keys() - shown - self.decisions.keys()
        self.most_waiting = max(self.most_waiting, len(self.pending))
        for proposal_id, row in self.decisions.items():
            if row["decision"] == "expired":
                since = self.first_seen.get(proposal_id, row["happened_at"])
                assert row["happened_at"] - since >= WEEK, (
                    f"{self.at}: {proposal_id} expired after {row['happened_at'] - since} in REVIEW.md; a person who "
                    "looks once a week would never have seen it"
                )

    def _has_its_time(self, proposal_id: str, evidence: str, since: datetime, now: datetime) -> None:
        assert now - since < WEEK, f"{self.at}: {proposal_id} was shown since {since}, so nothing ever leaves the list"
        warning = f" · expires on {(since + WEEK).date()}"
        assert evidence.endswith(warning) == (now - since >= WARNED), (
            f"{self.at}: {proposal_id}, shown since {since}, should{'' if now - since >= WARNED else ' not'} say "
            f"{warning!r}: {evidence}"
        )

    def _look_at_the_logs(self) -> None:
        for proposal_id, row in self.decisions.items():
            path = self.settings.daily_log(row["day"])
            log = path.read_text("utf-8") if path.exists() else ""
            line = f"* {row['happened_at']:%H:%M} {row['decision']} `{proposal_id}` {row['text']}"
            told = [each for each in log.splitlines() if each.startswith(line)]
            assert len(told) == 1, f"{self.at}: the log of {row['day']} tells {len(told)} times that {line!r}"

    def _look_at_the_memory(self) -> None:
        text = self._memory()
        ours = {found[1]: found[0] for found in _OURS.finditer(text)}
        approved = {p for p, end in self.ends.items() if end == "approved"}
        assert ours.keys() == approved, (
            f"{self.at}: approved and not in MEMORY.md: {sorted(approved - ours.keys())}; in MEMORY.md and never "
            f"approved: {sorted(ours.keys() - approved)}"
        )
        assert all(text.count(line) == 1 for line in ours.values()), f"{self.at}: MEMORY.md says a line twice"
        for proposal_id, line in ours.items():
            self._is_as_it_was(proposal_id, line)
        own = _OURS.sub("", text)
        self._own = self._own or own
        assert own == self._own, f"{self.at}: MEMORY.md lost or changed a byte that a person wrote"

    def _is_as_it_was(self, proposal_id: str, line: str) -> None:
        row, decision = self.proposals[proposal_id], self.decisions[proposal_id]
        said = f"({row['day']}) {decision['text']}"
        if line == f"- {said} <!-- {proposal_id} -->\n":
            assert "~~" not in self._lines.get(proposal_id, ""), f"{self.at}: {proposal_id} was struck and holds again"
        else:
            by = self._struck_by(proposal_id)
            note = f"(superseded by {by['proposal_id']}, {by['day']})" if by else ""
            assert by and line == f"- ~~{said}~~ {note} <!-- {proposal_id} -->\n", (
                f"{self.at}: MEMORY.md does not say {said!r} any more, and nobody approved that: {line}"
            )
        self._lines[proposal_id] = line

    def _struck_by(self, proposal_id: str) -> Row | None:
        """The decision by which a person agreed that another line takes its place."""
        newer = [p for p, row in self.proposals.items() if proposal_id in (row["supersedes"] or [])]
        return next((self.decisions[p] for p in newer if self.ends.get(p) == "approved"), None)

    def _memory(self) -> str:
        path: Path = self.settings.memory_file
        return path.read_bytes().decode() if path.exists() else ""
