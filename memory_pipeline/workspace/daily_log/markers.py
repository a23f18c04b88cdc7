"""Replacement of the markers of priority (the setting `markers`) in existing logs.

Observations do not change, so no row is rebuilt: only the mark at the beginning of each fact in our blocks is replaced.
A block that a user edited is not changed.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from pathlib import Path

from memory_pipeline.markdown.blocks import body_of, keys_in, put_block
from memory_pipeline.markdown.safe_write import decode, encode, update_file
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import MARKS
from memory_pipeline.workspace.daily_log.render import OBSERVATIONS

_PRIORITY_OF = {mark: priority for marks in MARKS.values() for priority, mark in marks.items()}
_MARK = re.compile(rf"^\* ({'|'.join(map(re.escape, _PRIORITY_OF))})(?= \()", re.MULTILINE)


def write_markers(settings: Settings) -> list[Path]:
    """Update the markers of all logs, including archived ones, to the setting. Returns the changed logs.

    Raises the errors of `safe_write.update_file`.
    """
    logs = (path for folder in (".", "archive") for path in (settings.log_dir / folder).glob("????-??-??.md"))
    return [path for path in sorted(logs) if _write(path, settings.marks, settings.backups)]


def _write(path: Path, marks: Mapping[str, str], backups: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):  # deleted by a user meanwhile
        return _replaced(path, marks, backups)
    return False


def _replaced(path: Path, marks: Mapping[str, str], backups: Path) -> bool:
    current = path.read_bytes()
    if encode(_with_marks(decode(current), marks)) == current:  # the usual case, which needs no lock
        return False

    def edit(now: bytes | None) -> bytes:
        if now is None:
            raise FileNotFoundError(path)
        return encode(_with_marks(decode(now), marks))

    return update_file(path, edit, backups=backups)


def _with_marks(log: str, marks: Mapping[str, str]) -> str:
    for key in keys_in(log, OBSERVATIONS):
        if body := body_of(log, key):
            log = put_block(log, key, _MARK.sub(lambda found: f"* {marks[_PRIORITY_OF[found[1]]]}", body)).text
    return log
