"""Transcripts that their agent will delete before they are read.

At startup, Claude Code and Gemini CLI delete transcripts that were unchanged for a number of days, which is set in
their settings.json. Messages that were read before stay in the tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import NamedTuple

from memory_pipeline import harnesses
from memory_pipeline.harnesses.model import Source
from memory_pipeline.harnesses.records import JsonObject, decoded_object
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.stages import is_current
from memory_pipeline.workspace.workspace import Workspace

NOTICE = timedelta(days=7)
_SETTINGS_BYTES = 1_000_000


class Expiring(NamedTuple):
    """Unread transcripts that will be deleted soon."""

    paths: tuple[str, ...]
    agents: tuple[str, ...]
    first_at: datetime
    """The time of the first deletion; in the past if the agent deletes the file at its next start."""

    def sentence(self, now: datetime) -> str:
        what = "1 transcript" if len(self.paths) == 1 else f"{len(self.paths)} transcripts"
        when = "when it next starts" if self.first_at <= now else f"from {self.first_at:%Y-%m-%d} on"
        return f"{' and '.join(self.agents)} will delete {what} {when}, and nothing is stored of what is new in them"


def expiring(catalogue: Catalogue, sources: Iterable[Source], now: datetime) -> Expiring | None:
    """The sources that will be deleted within a week unless they are written to; None if there are none."""
    stage = SessionsStage(Workspace(catalogue.settings, catalogue.lake), catalogue, now)
    days, kept = set(catalogue.days()), _retention()

    @cache
    def is_stored(day: date) -> bool:
        return is_current(stage, catalogue.lake, day)

    found: dict[str, tuple[datetime, str]] = {}
    for source in sources:
        known = next((of for of in kept if source.path.startswith(of[0])), None)
        if known is None or source.session or not source.modified_ns:
            continue
        deleted_at = datetime.fromtimestamp(source.modified_ns / 1e9, UTC) + known[2]
        if deleted_at <= now + NOTICE and catalogue.is_to_be_stored(source, days, is_stored):
            found[source.path] = deleted_at, known[1]
    if not found:
        return None
    agents = sorted({agent for _, agent in found.values()})
    return Expiring(tuple(sorted(found)), tuple(agents), min(found.values())[0])


def _retention() -> list[tuple[str, str, timedelta]]:
    """The folders in which an agent deletes sessions: path prefix, agent and age."""
    found = []
    for harness in harnesses.HARNESSES:
        for root in harness.default_roots(Path.home(), os.environ):
            settings = _settings(root.parent / "settings.json")
            days = None if settings is None else harness.retention_days(settings)
            if days is not None:
                found.append((f"{root}{os.sep}", harness.name, timedelta(days=min(days, 1e6))))
    return found


def _settings(file: Path) -> JsonObject | None:
    """The settings of an agent; None if unreadable, so that its behaviour is unknown."""
    try:
        with file.open("rb") as opened:
            return decoded_object(opened.read(_SETTINGS_BYTES))
    except FileNotFoundError:
        return {}
    except OSError:
        return None
