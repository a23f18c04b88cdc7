"""A row of the catalogue, which describes one session file."""

from __future__ import annotations

from collections.abc import Iterable
from zoneinfo import ZoneInfo

from memory_pipeline.harnesses.model import ParsedSession, Part, Source
from memory_pipeline.harnesses.records import EARLIEST
from memory_pipeline.lake.rows import FileDayRow, FilePartRow, FileRow
from memory_pipeline.sessions.windows import begins_with_plan, digest, windows_by_day

PROBLEMS_KEPT = 20


def new_row(key: str, source: Source, reader: str) -> FileRow:
    """The row of a file for which only its state and its reader are known."""
    return {
        "path": key,
        "member": source.session or None,
        "harness": None,
        "session_id": None,
        "last_said_at": None,
        "began_at": None,
        "reader": reader,
        "size": source.size,
        "modified_ns": source.modified_ns,
        "messages": 0,
        "records": 0,
        "days": [],
        "problems": [],
        "unknown_records": [],
        "parent_id": None,
        "reason": None,
        "excluded": None,
        "hidden_characters": None,
        "cwd": None,
        "branch": None,
        "repository": None,
        "begins_with_plan": None,
        "repository_dir": None,
        "side_file_of": None,
        "part": None,
        "withdrawn_from": None,
    }


def unread_row(row: FileRow, known: FileRow, reason: str) -> FileRow:
    """The row of a session whose file has become unreadable, with the data that is still valid."""
    return row | {
        "harness": known["harness"],
        "session_id": known["session_id"],
        "last_said_at": known["last_said_at"],
        "began_at": known["began_at"],
        "messages": known["messages"],
        "records": known["records"],
        "days": known["days"],
        "parent_id": known["parent_id"],
        "excluded": known["excluded"],
        "hidden_characters": known["hidden_characters"],
        "cwd": known["cwd"],
        "branch": known["branch"],
        "repository": known["repository"],
        "begins_with_plan": known["begins_with_plan"],
        "repository_dir": known["repository_dir"],
        "part": known["part"],
        "withdrawn_from": known["withdrawn_from"],
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
        "part": session.part and _part_columns(session.part),
    }


def _part_columns(part: Part) -> FilePartRow:
    return {
        "name": part.name,
        "began_at": part.began_at,
        "base": part.base,
        "base_end": part.base_end,
        "end": part.end,
    }
