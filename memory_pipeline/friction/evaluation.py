"""Check of the evidence of a day's patterns."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from memory_pipeline.days import lookback
from memory_pipeline.lake.rows import FrictionRow, typed_rows
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace


def judge_evidence(workspace: Workspace, day: date) -> Verdict:
    """Every evidence span of a pattern of the day lies in a stored message.

    Fails when a message in which a pattern occurred is gone or shorter: rows were changed after they were written.
    """
    lake, days = workspace.lake, lookback(day, workspace.settings.lookback_days)
    lengths: dict[str, int | None] = {}
    for each in days:
        messages = lake.read("messages", [each], ["message_id", "text"])
        whole = not lake.is_retired("messages", each)  # otherwise their texts are no longer stored
        lengths |= {i: len(text) if whole else None for i, text in messages.iter_rows()}
    rows = [row for row in typed_rows(lake.read("friction_clusters", [day]), FrictionRow) if row["ended_on"] is None]
    offenders = [f"{row['pattern_id']}: {why}" for row in rows if (why := _missing(row, lengths))]
    return Verdict(not offenders, {"checked": len(rows)}, offenders, f"{len(rows)} patterns and their occurrences")


def _missing(row: FrictionRow, lengths: Mapping[str, int | None]) -> str | None:
    for span in row["evidence"] or ():
        if span["message_id"] not in lengths:
            return f"message {span['message_id']} does not exist"
        length = lengths[span["message_id"]]
        if length is not None and not 0 <= span["start"] <= span["end"] <= length:
            return f"span {span['start']}-{span['end']} is outside of message {span['message_id']}"
    return None
