"""Incremental observing: when a session continues, only the messages added since are sent to the model.

Each segment of a model has a `basis`: a hash of the messages that it covers, of everything that decides how they are
observed, and of its observations. The leading segments of a window whose basis is unchanged are kept with their ids;
the messages after them are new. So everything from a withdrawn message on is observed again, and a change of model,
prompt or setting observes the whole window again.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from memory_pipeline.lake.rows import ObservationRow, SegmentRow
from memory_pipeline.observations.flags import ENDED
from memory_pipeline.observations.rows import Rows
from memory_pipeline.observations.types import EvidenceSpan, Fact, WindowMessage
from memory_pipeline.text.priorities import LOW


@dataclass(frozen=True)
class AlreadyObserved:
    """The leading part of a window that was observed before."""

    rows: Rows = field(default_factory=Rows)
    messages: int = 0
    """The number of the window's messages that were observed before."""

    @property
    def facts(self) -> tuple[tuple[str, Fact], ...]:
        return tuple((row["observation_id"], _fact_of(row)) for row in self.rows.observations)

    def continued(self, found: Rows, ended: Collection[str]) -> Rows:
        """These rows and those of the new messages; rows in `ended` get the flag `ended` and low priority."""
        known = {row["observation_id"] for row in self.rows.observations}
        offset = len(self.rows.segments)
        return Rows(
            [*self.rows.segments, *(s | {"position": offset + s["position"]} for s in found.segments)],
            [
                *(_mark_ended(row) if row["observation_id"] in ended else row for row in self.rows.observations),
                *(row for row in found.observations if row["observation_id"] not in known),
            ],
        )


def already_observed(before: Rows, messages: Sequence[WindowMessage], version: str, window: str) -> AlreadyObserved:
    """The part of a window that was observed before, from the stored rows of its session and day.

    The rows may belong to another window, as a compaction cuts a session differently. Ids stay the same.
    """
    place = {message.message_id: i for i, message in enumerate(messages)}
    facts_of = _by_segment(before)
    kept: list[SegmentRow] = []
    end = 0
    for segment in sorted(before.segments, key=lambda s: place.get(s["first_message_id"], len(messages))):
        if place.get(segment["first_message_id"]) != end:
            continue
        last = place.get(segment["last_message_id"], -1)
        if segment["basis"] is None or segment["basis"] != _basis(segment, facts_of, messages[end : last + 1], version):
            break
        kept.append(segment)
        end = last + 1
    if end < len(messages):  # unparsed answers are requested again, together with the new messages
        good = next((i for i, segment in enumerate(kept) if not segment["parsed"]), len(kept))
        kept = kept[:good]
    while kept:
        end = place[kept[-1]["last_message_id"]] + 1
        facts = [fact for segment in kept for fact in facts_of[segment["segment_id"]]]
        if all(place.get(span["message_id"], end) < end for fact in facts for span in fact["evidence"]):
            segments = [s | {"dedupe_key": window, "position": i} for i, s in enumerate(kept)]
            return AlreadyObserved(Rows(segments, [o | {"dedupe_key": window} for o in facts]), end)
        kept.pop()
    return AlreadyObserved()


def with_basis(rows: Rows, messages: Sequence[WindowMessage], version: str) -> Rows:
    """The rows of a window with these messages, where each new segment has its basis."""
    place, facts_of = {message.message_id: i for i, message in enumerate(messages)}, _by_segment(rows)

    def of(segment: SegmentRow) -> str:
        ends = place[segment["first_message_id"]], place[segment["last_message_id"]] + 1
        return _basis(segment, facts_of, messages[slice(*ends)], version)

    return Rows([s if s["basis"] else s | {"basis": of(s)} for s in rows.segments], rows.observations)


def _by_segment(rows: Rows) -> Mapping[str, list[ObservationRow]]:
    found: dict[str, list[ObservationRow]] = defaultdict(list)
    for row in rows.observations:
        found[row["segment_id"]].append(row)
    return found


def _basis(
    segment: SegmentRow,
    facts_of: Mapping[str, list[ObservationRow]],
    messages: Sequence[WindowMessage],
    version: str,
) -> str:
    """A hash of the segment's messages and of its observations, as the table of observations may be lost alone."""
    total = hashlib.sha256(version.encode())
    for m in messages:
        shown = (m.message_id, m.role, m.said_at.isoformat(), m.untimed, m.text, m.is_error, m.quoted, m.tool_name)
        total.update(repr((*shown, len(m.images))).encode())
    total.update(repr(sorted(o["observation_id"] for o in facts_of[segment["segment_id"]])).encode())
    return total.hexdigest()


def _fact_of(row: ObservationRow) -> Fact:
    return Fact(
        text=row["text"],
        priority=row["priority"],
        kind=row["kind"],
        observed_at=row["observed_at"],
        trust=row["trust"],
        evidence=tuple(EvidenceSpan(s["message_id"], s["start"], s["end"]) for s in row["evidence"]),
        flags=tuple(row["flags"]),
        untimed=row["untimed"],
    )


def _mark_ended(row: ObservationRow) -> ObservationRow:
    return row if ENDED in row["flags"] else row | {"priority": LOW, "flags": [*row["flags"], ENDED]}
