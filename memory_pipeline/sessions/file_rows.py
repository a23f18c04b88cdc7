"""The rows of the table `files`, one per session file.

They are read once per process, and merged with those of other processes on writing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast
from zoneinfo import ZoneInfo

import polars as pl

from memory_pipeline.harnesses.model import ParsedSession, Part, Source
from memory_pipeline.harnesses.records import EARLIEST
from memory_pipeline.lake.rows import FileDayRow, FilePartRow, FileRow, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.locks import FileLock
from memory_pipeline.sessions.windows import begins_with_plan, digest, windows_by_day

PROBLEMS_KEPT = 20
LOCK_SECONDS = 60.0
"""Seconds to wait for another process that writes the table, which takes a second with 100,000 files."""


def new_row(key: str, source: Source, reader: str) -> FileRow:
    """The row of a file for which only its state and its reader are known."""
    nothing = dict.fromkeys(FileRow.__annotations__)
    row = {"path": key, "member": source.session or None, "size": source.size, "modified_ns": source.modified_ns}
    counts = {"messages": 0, "records": 0, "unknown_records": [], "problems": [], "days": []}
    return cast("FileRow", nothing | row | counts | {"reader": reader})


def unread_row(row: FileRow, known: FileRow, reason: str) -> FileRow:
    """The row of a session whose file has become unreadable, with the data that is still valid."""
    return known | {
        "member": row["member"],
        "size": row["size"],
        "modified_ns": row["modified_ns"],
        "reader": row["reader"],
        "side_file_of": row["side_file_of"],
        "problems": [],
        "unknown_records": [],
        "reason": reason,
    }


def read_row(row: FileRow, session: ParsedSession, zone: ZoneInfo, before: Iterable[FileDayRow] = ()) -> FileRow:
    """The row with the data of the session; `before` are the days that it had."""
    days = sorted(windows_by_day(session, zone).items())
    # a part without messages has at least a beginning
    said = [m.said_at for m in session.messages] or [(session.part and session.part.began_at) or EARLIEST]
    discard = {entry["day"] for entry in before} - {day for day, _ in days}
    entries: list[FileDayRow] = [
        {
            "day": day,
            "digest": digest(session, windows),
            "messages": sum(len(window.messages) for window in windows),
            "inherited": sum(m.message_id in session.inherited for w in windows for m in w.messages),
            "voided": sum(m.voided for w in windows for m in w.messages),
            "typed": [m.message_id for w in windows for m in w.standing if m.role == "user"],
        }
        for day, windows in days
    ]
    # days on which it had messages before: without them their stored messages would not be removed
    emptied: list[FileDayRow] = [
        {"day": day, "digest": "", "messages": 0, "inherited": 0, "voided": 0, "typed": []} for day in sorted(discard)
    ]
    return row | {
        "harness": session.harness,
        "session_id": session.session_id,
        "last_said_at": max(said),
        "began_at": session.began_at or min(said),
        "messages": len(session.messages),
        "records": session.records,
        "unknown_records": [{"type": t, "count": n} for t, n in sorted(session.unknown_records.items())],
        "problems": [{"line": p.line, "reason": p.reason} for p in session.problems[:PROBLEMS_KEPT]],
        "days": [*entries, *emptied],
        "parent_id": session.parent_id or None,
        "excluded": session.excluded,
        "hidden_characters": session.hidden_characters,
        "cwd": None if session.excluded else session.cwd,
        "branch": None if session.excluded else session.branch,
        "repository": None if session.excluded else session.repository,
        # a sub-agent's first message comes from the model that started it, whatever its form
        "begins_with_plan": session.is_attended
        and "/" not in session.session_id
        and begins_with_plan(session.messages),
        "part": session.part
        and cast("FilePartRow", {k: getattr(session.part, k) for k in FilePartRow.__annotations__}),
    }


def _part_row(part: Part) -> FilePartRow:
    return FilePartRow(name=part.name, began_at=part.began_at, base=part.base, base_end=part.base_end, end=part.end)


@dataclass(frozen=True)
class StoredRows:
    """The stored catalogue as last read by this process; its rows are replaced, never modified."""

    version: str | int | None
    """The version of the file; see `Lake.version`."""
    frame: pl.DataFrame
    rows: dict[str, FileRow]


_STORED: dict[str, StoredRows] = {}


def stored(lake: Lake) -> StoredRows:
    """The currently stored rows."""
    place, version = lake.place("files"), lake.version("files")
    known = _STORED.get(place)
    if known is None or known.version != version:
        frame = lake.read("files")
        known = _STORED[place] = StoredRows(version, frame, {row["path"]: row for row in typed_rows(frame, FileRow)})
    return known


def write_rows(lake: Lake, folder: Path, changed: Mapping[str, FileRow], gone: Collection[str]) -> None:
    """Write the changed rows into the stored ones, which may include those of other processes. Most of the work is for
    unchanged rows. `folder` has the lock."""
    made: list[StoredRows] = []

    def with_changes(_: pl.DataFrame) -> pl.DataFrame:
        known = stored(lake)
        old = known.frame.filter(~pl.col("path").is_in([*changed, *gone]))
        new = pl.DataFrame(list(changed.values()), schema_overrides=old.schema)
        frame = pl.concat([old, new.select(old.columns)]) if len(new) else old
        rows = {key: row for key, row in known.rows.items() if key not in gone}
        made.append(StoredRows(None, frame, rows | dict(changed)))
        return frame

    with FileLock(folder / "files.lock", timeout=LOCK_SECONDS):
        lake.update("files", with_changes)
        _STORED[lake.place("files")] = replace(made[-1], version=lake.version("files"))
