"""Keeps rows that a model gave before from being replaced by a worse answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from memory_pipeline.observations.observer import row_id
from memory_pipeline.observations.rows import Row, Rows


def better(found: Rows, before: Rows, message_ids: Sequence[str]) -> Rows:
    """The rows found now; of messages whose answer was not in the format, those of an earlier one that was.

    Where the session went on since, there are only those found now. `message_ids` are those of the window, in order.
    """
    if all(s["parsed"] for s in found.segments):
        return found
    place = {message: i for i, message in enumerate(message_ids)}
    topics = [_Topic.of(s, rows, place) for rows in (before, found) for s in rows.segments]
    good, new = topics[: len(before.segments)], topics[len(before.segments) :]
    by_message = {i: topic for topic in new for i in topic.at}
    kept_of = {i: topic for topic in good if topic.is_good for i in topic.at}
    chosen = [kept_of.get(i, topic) if not topic.row["parsed"] else topic for i, topic in sorted(by_message.items())]
    kept, known = Rows(), set[str]()
    for topic, run in _runs(chosen):
        facts = [o for o in topic.facts_of(run, place) if o["observation_id"] not in known]
        known.update(o["observation_id"] for o in facts)
        segment_id = topic.row["segment_id"]
        bounds = {"first_message_id": message_ids[run.start], "last_message_id": message_ids[run.stop - 1]}
        if run.start != topic.at.start:
            segment_id = row_id("s", topic.row["dedupe_key"], bounds["first_message_id"])
        kept.segments.append(topic.row | bounds | {"segment_id": segment_id, "position": len(kept.segments)})
        kept.observations += [o | {"segment_id": segment_id} for o in facts]
    return kept


@dataclass(frozen=True)
class _Topic:
    """A stored segment with its observations, and the positions of its messages."""

    row: Row
    facts: Sequence[Row]
    at: range
    is_good: bool
    """Whether a model gave it in the format, and all that it points to is still there."""

    @classmethod
    def of(cls, row: Row, rows: Rows, place: Mapping[str, int]) -> _Topic:
        facts = [o for o in rows.observations if o["segment_id"] == row["segment_id"]]
        ends = (row["first_message_id"], row["last_message_id"])
        is_there = all(m in place for m in (*ends, *(e["message_id"] for o in facts for e in o["evidence"])))
        at = range(place[ends[0]], place[ends[1]] + 1) if is_there else range(0)
        return cls(row, facts, at, bool(row["parsed"] and row["answer"] and at))

    def facts_of(self, run: range, place: Mapping[str, int]) -> Iterator[Row]:
        """All of them, or of a part of the segment those with a place in it."""
        for fact in self.facts:
            if run == self.at or any(place[e["message_id"]] in run for e in fact["evidence"]):
                yield fact


def _runs(chosen: Sequence[_Topic]) -> Iterator[tuple[_Topic, range]]:
    """Neighbouring positions of one segment."""
    start = 0
    for _, same in groupby(chosen, key=id):
        topics = list(same)
        yield topics[0], range(start, start + len(topics))
        start += len(topics)
