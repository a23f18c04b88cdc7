"""The rows of the table `files`, one per session file.

They are read again only if another process or this one has written them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, cast
from zoneinfo import ZoneInfo

import polars as pl

from memory_pipeline.harnesses.model import ParsedSession, Source
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
    current = {name: row[name] for name in ("member", "size", "modified_ns", "reader", "side_file_of")}
    return known | cast("FileRow", current | {"problems": [], "unknown_records": [], "reason": reason})


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


class StoredRows(NamedTuple):
    """The stored catalogue as last read by this process; its rows are replaced, never modified."""

    version: str | int | None
    """The version of the file; see `Lake.version`."""
    rows: dict[str, FileRow]


_STORED: dict[str, StoredRows] = {}


def stored(lake: Lake) -> dict[str, FileRow]:
    """The currently stored rows."""
    place, version = lake.place("files"), lake.version("files")
    known = _STORED.get(place)
    if known is None or known.version != version:
        rows = typed_rows(lake.read("files"), FileRow)
        known = _STORED[place] = StoredRows(version, {row["path"]: row for row in rows})
    return known.rows


def write_rows(lake: Lake, folder: Path, changed: Mapping[str, FileRow], gone: Collection[str]) -> None:
    """Write the changed rows into the stored ones, which may include those of other processes. `folder` has the
    lock."""

    def with_changes(rows: pl.DataFrame) -> pl.DataFrame:
        old = rows.filter(~pl.col("path").is_in([*changed, *gone]))
        new = pl.DataFrame(list(changed.values()), schema_overrides=old.schema)
        return pl.concat([old, new.select(old.columns)]) if len(new) else old

    with FileLock(folder / "files.lock", timeout=LOCK_SECONDS):
        lake.update("files", with_changes)


IS_NOT_READ = pl.col("reason").is_not_null() & pl.col("side_file_of").is_null()
"""The condition for a row of a file that was not read."""


def not_read(lake: Lake) -> dict[str, dict[str, str] | list[str]]:
    """The unreadable files and folders, each with the reason, and the unreadable lines of other files. Side files of
    agents are left out, as they contain no session."""
    files = lake.read("files", columns=["path", "reason", "side_file_of", "problems"]).sort("path")
    lines = files.select("path", "problems").explode("problems", empty_as_null=True).drop_nulls().unnest("problems")
    return {
        "files_not_read": dict(files.filter(IS_NOT_READ).select("path", "reason").iter_rows()),
        "records_not_read": [f"{p}:{n}: {r}" for p, n, r in lines.select("path", "line", "reason").iter_rows()],
    }
