"""Notes: text that a user wrote into a day's log by hand, which is reflected on like observations.

The table `notes` has the notes read last. A note is identified by its words, not its position: a log that was updated
or archived has the same notes. Notes of a missing log are kept; notes removed from a log are deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time
from functools import lru_cache
from pathlib import Path

import polars as pl

from memory_pipeline.lake.rows import NoteRow, SourceRow, typed_rows
from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.markdown.safe_write import decode
from memory_pipeline.redaction import Redactor, redactor_of
from memory_pipeline.redaction.redactor import Unredacted, find_secrets
from memory_pipeline.settings import Settings
from memory_pipeline.text.hidden import without_hidden
from memory_pipeline.text.kinds import NORMATIVE, kind_of_user
from memory_pipeline.text.priorities import HIGH, MEDIUM
from memory_pipeline.text.sentences import squeeze
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.daily_log.user_text import own_words, paragraphs
from memory_pipeline.workspace.workspace import Workspace

VERSION = "2"
SESSION = "notes"
"""The session id of rows that come from notes."""
NOON = time(12)
"""The time assigned to a note, as a log does not have it."""
_PRIVATE = re.compile(r"<private>.*?</private>", re.DOTALL)
_ID = re.compile(r"n-(\d{8})-[0-9a-f]{12}")


def notes_fingerprint(workspace: Workspace, days: Iterable[date]) -> str:
    """A hash of all notes of these days; empty if there are none, so that a log without notes changes nothing."""
    digests = [f"{day} {digest}" for day in days if (digest := _digest(workspace, day))]
    return fingerprint_of(*digests) if digests else ""


def has_notes(workspace: Workspace, day: date) -> bool:
    return bool(_digest(workspace, day))


def days_with_notes(workspace: Workspace) -> list[date]:
    """The days that have a log with notes, oldest first."""
    found = set()
    for path in (
        *workspace.settings.log_dir.glob("????-??-??.md"),
        *workspace.settings.log_dir.glob("archive/????-??-??.md"),
    ):
        try:
            day = date.fromisoformat(path.stem)
        except ValueError:
            continue
        if has_notes(workspace, day):
            found.add(day)
    return sorted(found)


def keep_notes(workspace: Workspace, days: Iterable[date]) -> None:
    """Update the table `notes` from the logs of these days. Raises OSError for an unreadable log."""
    for day in days:
        digest = _digest(workspace, day, strict=True)
        if digest != (workspace.lake.fingerprint("notes", day) or ""):
            workspace.lake.replace("notes", _frame(_read(workspace.settings, day)), [day], {day: digest})


def put_back_notes(workspace: Workspace, days: Iterable[date]) -> None:
    """Restore rows of a lost or damaged file of the table from the logs, for days that were read before."""
    for day in days:
        if workspace.lake.fingerprint("notes", day) is None and has_notes(workspace, day):
            with contextlib.suppress(OSError):
                keep_notes(workspace, [day])


def notes_in(workspace: Workspace, days: Sequence[date]) -> list[SourceRow]:
    """The notes of these days as stored by `keep_notes`, in the form of rows of `observations`."""
    return [
        {
            "day": row["day"],
            "observation_id": row["note_id"],
            "session_id": SESSION,
            "priority": row["priority"],
            "kind": row["kind"],
            "trust": "user",
            "observed_at": datetime.combine(row["day"], NOON, workspace.settings.zone).astimezone(UTC),
            "text": row["text"],
            "tokens": estimate(row["text"]),
            "flags": [],
            "evidence": [],
            "untimed": None,
            "cwd": None,
            "project": None,
        }
        for row in typed_rows(workspace.lake.read("notes", days), NoteRow)
    ]


def written_notes(workspace: Workspace, ids: Iterable[str]) -> list[NoteRow]:
    """The notes among these ids: rows of `notes` with their current file and line. A log grows above a note, so the
    line is looked up; a deleted note keeps its last one."""
    wanted: dict[date, set[str]] = {}
    for note_id in ids:
        if found := _ID.fullmatch(note_id):
            with contextlib.suppress(ValueError):
                wanted.setdefault(date.fromisoformat(found[1]), set()).add(note_id)
    rows = []
    for day in sorted(wanted):
        stored = {row["note_id"]: row for row in typed_rows(workspace.lake.read("notes", [day]), NoteRow)}
        try:
            now = {row["note_id"]: row for row in _read(workspace.settings, day)}
        except OSError:
            now = {}
        known = stored | now
        rows += [known[note_id] for note_id in sorted(wanted[day] & set(known))]
    return rows


def _read(settings: Settings, day: date) -> list[NoteRow]:
    """The unique notes of the day's current log. Raises OSError, and FileNotFoundError if there is no log."""
    path = settings.daily_log(day)
    redactor = redactor_of(settings)
    rows: dict[str, NoteRow] = {}
    for note in paragraphs(_redacted(without_hidden(own_words(decode(path.read_bytes())))[0], redactor)):
        text = one_line(squeeze(note.text))
        note_id = f"n-{day:%Y%m%d}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        kind = kind_of_user(text)
        rows.setdefault(
            note_id,
            {
                "day": day,
                "note_id": note_id,
                "line": note.line,
                "text": text,
                "kind": kind,
                "priority": HIGH if kind in NORMATIVE else MEDIUM,  # somebody wrote it by hand
                "source_file": str(path),
            },
        )
    return list(rows.values())


def _redacted(own: str, redactor: Redactor) -> str:
    """The redacted text, with the same number of lines even if a secret spans several."""
    if not isinstance(redactor, Unredacted):
        own = _PRIVATE.sub(lambda private: "\n" * private[0].count("\n"), own)
    redacted = redactor.redact(own)
    if redacted.count("\n") == own.count("\n"):
        return redacted
    pieces, end = [], 0
    for span in find_secrets(own):
        secret = own[span.start : span.end]
        pieces += [own[end : span.start], redactor.mark(span.kind, secret), "\n" * secret.count("\n")]
        end = span.end
    return redactor.redact("".join(pieces) + own[end:])


def _digest(workspace: Workspace, day: date, *, strict: bool = False) -> str:
    """A hash of the notes in the day's log, else of the stored ones; empty if there are none."""
    path = workspace.settings.daily_log(day)
    try:
        stat = os.stat(path)  # noqa: PTH116
        texts = _texts(str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        return workspace.lake.fingerprint("notes", day) or ""
    except OSError:
        if strict:
            raise
        return "unreadable"  # reported by the run that tries to read it
    return fingerprint_of(VERSION, workspace.settings.redact, *texts) if texts else ""


@lru_cache(maxsize=5_000)
def _texts(path: str, inode: int, size: int, modified_ns: int) -> tuple[str, ...]:
    """The texts of the notes in the file, cached because a plan reads them repeatedly."""
    own = own_words(decode(Path(path).read_bytes()))
    found = {squeeze(note.text).encode("utf-8", "replace").decode() for note in paragraphs(own)}
    return tuple(sorted(found))


def _frame(rows: list[NoteRow]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TABLES["notes"].columns)
