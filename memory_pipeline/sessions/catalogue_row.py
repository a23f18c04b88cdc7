"""A row of the catalogue: what is known of one session file."""

from __future__ import annotations

from collections.abc import Iterable
from zoneinfo import ZoneInfo

from memory_pipeline.harnesses.model import ParsedSession, Part, Source
from memory_pipeline.harnesses.records import EARLIEST
from memory_pipeline.lake.rows import FileDayRow, FilePartRow, FileRow
from memory_pipeline.sessions.windows import begins_with_plan, digest, windows_by_day

PROBLEMS_KEPT = 20


def new_row(key: str, source: Source, reader: str) -> FileRow:
    """The row of a file of which only its state and its reader are known."""
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
    """The row with what stays known of a session whose file cannot be read any more."""
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
    """The row with what reading the session adds to it; `before` are the days that the session had."""
    days = sorted(windows_by_day(session, zone).items())
    # a part in which nothing is said yet, or any more, was at least begun
    said = [m.said_at for m in session.messages] or [(session.part and session.part.began_at) or EARLIEST]
    left = {entry["day"] for entry in before} - {day for day, _ in days}
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
    # days that it said something on before: without them nobody would take out what is stored of them
    emptied: list[FileDayRow] = [
        {"day": day, "digest": "", "messages": 0, "inherited": 0, "voided": 0, "typed": []} for day in sorted(left)
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
        # a sub-agent's first message is of the model that started it, however it begins
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
