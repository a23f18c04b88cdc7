"""Replacement of the markers of priority (the setting `markers`) in existing logs.

Observations do not change, so no row is rebuilt: only the mark at the beginning of a fact in one of our blocks is
replaced. A block that a user edited stays as it is.
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
    """Bring the markers of all logs, also archived ones, in line with the settings; returns the logs that changed.

    Raises what `safe_write.update_file` raises.
    """
    logs = (path for folder in (".", "archive") for path in (settings.log_dir / folder).glob("????-??-??.md"))
    return [path for path in sorted(logs) if _write(path, settings.marks, settings.backups)]


def _write(path: Path, marks: Mapping[str, str], backups: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):  # a user has just taken it away
        return _replaced(path, marks, backups)
    return False


def _replaced(path: Path, marks: Mapping[str, str], backups: Path) -> bool:
    current = path.read_bytes()
    if encode(_marked(decode(current), marks)) == current:  # nearly always, and then no lock is taken
        return False

    def edit(now: bytes | None) -> bytes:
        if now is None:
            raise FileNotFoundError(path)
        return encode(_marked(decode(now), marks))

    return update_file(path, edit, backups=backups)


def _marked(log: str, marks: Mapping[str, str]) -> str:
    for key in keys_in(log, OBSERVATIONS):
        if body := body_of(log, key):
            log = put_block(log, key, _MARK.sub(lambda found: f"* {marks[_PRIORITY_OF[found[1]]]}", body)).text
    return log
