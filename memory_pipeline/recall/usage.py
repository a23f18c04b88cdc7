"""The usage log of the memory: one file of JSON lines per local day, `usage/YYYY-MM-DD.jsonl` in the workspace.

Every display of memory to a session or a user is logged here. Sessions must not wait, so the log fails open: an entry
that cannot be written is silently lost. Each entry is appended by a single write, so concurrent processes need no lock.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict

from memory_pipeline.days import day_of
from memory_pipeline.settings import Settings

if TYPE_CHECKING:
    from memory_pipeline.lake.store import Lake
    from memory_pipeline.proposals.memory_file import MemoryLine

Kind = Literal["recall", "search", "brief", "pack", "compaction", "mcp"]
KEPT_DAYS = 180
"""Days after which files are removed, when a new day begins. A use half a year ago is irrelevant: with a half-life of a
week it would not affect a ranking."""
MAX_QUERY = 500
"""Maximum characters of a redacted query."""
MAX_IDS = 1_000
UNUSED_DAYS = 30


class Use(TypedDict):
    """An entry: `at` in UTC, the shown ids, and those among them that an answer cited."""

    at: str
    kind: Kind
    query: str
    project: str | None
    shown: list[str]
    cited: list[str]


def log_use(
    settings: Settings,
    kind: Kind,
    *,
    query: str = "",
    project: str | None = None,
    shown: Iterable[str] = (),
    cited: Iterable[str] = (),
) -> None:
    """Append an entry to the file of today. Never raises and never waits.

    The query is redacted before it is written. The redactor takes .15 s to load, so it is loaded only for a call with a
    query.
    """
    with contextlib.suppress(Exception):  # a session continues without it in any case
        if not settings.lake_dir.is_dir():
            return  # no workspace here
        now = datetime.now(UTC)
        use = Use(
            at=f"{now:%Y-%m-%dT%H:%M:%SZ}",
            kind=kind,
            query=_redacted(settings, query) if query else "",
            project=project,
            shown=list(dict.fromkeys(shown))[:MAX_IDS],
            cited=list(dict.fromkeys(cited))[:MAX_IDS],
        )
        line = json.dumps(use, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"
        _append(usage_dir(settings), day_of(now, settings.zone), line)


def last_days(settings: Settings, *fields: Literal["shown", "cited"]) -> dict[str, date]:
    """The newest day on which each line was shown or cited, by id."""
    found: dict[str, date] = {}
    for day, use in uses(settings):  # a later day overwrites an earlier one
        for field in fields:
            found |= dict.fromkeys(use[field], day)
    return found


def uses(settings: Settings) -> Iterator[tuple[date, Use]]:
    """All entries with their days, oldest day first. Unreadable ones are skipped."""
    for day, path in _files(usage_dir(settings)):
        with contextlib.suppress(OSError):
            for line in path.read_bytes().splitlines():
                with contextlib.suppress(ValueError, TypeError, KeyError):
                    found = json.loads(line)
                    yield day, Use(**{key: found[key] for key in Use.__annotations__})  # type: ignore[typeddict-item]


def unused_lines(settings: Settings, lake: Lake, today: date) -> list[MemoryLine]:
    """The approved lines that were not shown or cited for `UNUSED_DAYS` days, also not at a tool call.

    Lines that are newer than that, and all lines while the log is younger, are left out.
    """
    from memory_pipeline.friction.observed import shown_lines
    from memory_pipeline.proposals.events import PROMOTED, ProposalLog
    from memory_pipeline.proposals.memory_file import lines_of  # a hook that logs its use does not need these
    from memory_pipeline.recall.remembered import memory_bytes

    first = next((day for day, _ in uses(settings)), None)
    if first is None:
        return []
    promoted = dict(ProposalLog(lake).events(PROMOTED).select("proposal_id", "day").iter_rows())
    seen, limit = last_days(settings, "shown", "cited"), today - timedelta(days=UNUSED_DAYS)
    for shown in shown_lines(settings):
        seen[shown.line_id] = max(seen.get(shown.line_id, date.min), day_of(shown.at, settings.zone))
    lines = [line for line in lines_of(memory_bytes(settings)) if line.proposal_id and not line.is_struck]
    recent = {name for known in (promoted, seen) for name, day in known.items() if day >= limit}
    return [line for line in lines if first < limit and line.proposal_id not in recent]


def usage_dir(settings: Settings) -> Path:
    return settings.workspace / "usage"


def _redacted(settings: Settings, query: str) -> str:
    """The redacted query; empty if it cannot be redacted."""
    with contextlib.suppress(Exception):
        from memory_pipeline.redaction import redactor_of

        return redactor_of(settings).excerpt(query, MAX_QUERY)
    return ""


def _append(folder: Path, day: date, line: bytes) -> None:
    path = folder / f"{day:%Y-%m-%d}.jsonl"
    is_new = not path.exists()
    if is_new:
        folder.mkdir(mode=0o700, exist_ok=True)
    # non-blocking, in case the path is not a regular file
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o600)
    try:
        os.write(file, line)
    finally:
        os.close(file)
    if is_new:
        for old, expired in _files(folder):
            if old < day - timedelta(days=KEPT_DAYS):
                expired.unlink(missing_ok=True)


def _files(folder: Path) -> list[tuple[date, Path]]:
    found = []
    for path in folder.glob("????-??-??.jsonl"):
        with contextlib.suppress(ValueError):
            if path.is_file():
                found.append((date.fromisoformat(path.stem), path))
    return sorted(found)
