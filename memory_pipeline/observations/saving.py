"""Keeps rows that a model gave before from being replaced by a worse answer."""

from __future__ import annotations

from collections.abc import Sequence

from memory_pipeline.observations.rows import Rows


def better(found: Rows, before: Rows, message_ids: Sequence[str]) -> Rows:
    """The rows found now, but where the answer was not in the format and an earlier one was, the earlier ones.

    Of what is found now, segments that hold messages which the earlier rows do not know are kept beside them: a
    session may have gone on. `message_ids` are those of the window, in order.
    """
    if all(s["parsed"] for s in found.segments) or not _is_parsed(before):
        return found
    place = {message: i for i, message in enumerate(message_ids)}
    known = max((place.get(s["last_message_id"], -1) for s in before.segments), default=-1)
    kept = Rows(list(before.segments), list(before.observations))
    for segment in found.segments:
        if place[segment["last_message_id"]] > known:
            first = message_ids[max(place[segment["first_message_id"]], known + 1)]
            facts = [o for o in found.observations if o["segment_id"] == segment["segment_id"]]
            new = [o for o in facts if any(place[e["message_id"]] > known for e in o["evidence"])]
            kept.segments.append(segment | {"first_message_id": first, "position": len(kept.segments)})
            kept.observations += new
    return kept


def _is_parsed(rows: Rows) -> bool:
    """Whether a model gave these rows, in the format."""
    return bool(rows.segments) and all(s["parsed"] and s["answer"] for s in rows.segments)
