"""The state of Dagster for `memory status`: failing checks, last successes, and automation.

Dagster takes seconds to load, so the result is stored at the end of a run in a file next to its databases, and used
until one of them changes. It is not stored while the daemon runs, as the state of a schedule then depends on the time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

import memory_pipeline
from memory_pipeline.markdown.safe_write import ChangedMeanwhileError, write_atomically
from memory_pipeline.settings import Settings
from memory_pipeline.settings.dagster_record import names_postgres

NOTHING: Mapping[str, Any] = {"failing_checks": {}, "last_success": {}, "automation": None, "record_problem": None}
_DATABASES = ("history/runs/index.db", "history/runs.db", "schedules/schedules.db")


def dagster_state(settings: Settings, days: Sequence[date]) -> dict[str, Any]:
    """The failing checks of these days, the last materialization of each asset, and the state of automation.

    Dagster's home is not created if missing; an unreadable instance is reported in `record_problem`.
    """
    if not (settings.dagster_home / "dagster.yaml").exists():
        return dict(NOTHING)
    file, before = settings.dagster_home / "status.json", _fingerprint(settings, days)
    with suppress(OSError, ValueError, TypeError, KeyError):  # not stored yet, or damaged
        stored = dict(json.loads(file.read_bytes()))
        if stored.pop("fingerprint") == before:
            return stored
    from memory_pipeline.defs.runs import DamagedInstanceError, automation_of, check_results, instance_of
    from memory_pipeline.settings.dagster_record import RecordMisconfiguredError, RecordUnavailableError

    try:
        with instance_of(settings) as instance:
            known = automation_of(settings, instance)
            checks = check_results(settings, instance, set(days))
    except (DamagedInstanceError, RecordUnavailableError, RecordMisconfiguredError) as error:
        return {**NOTHING, "record_problem": str(error)}
    found = {
        "failing_checks": {name: sorted(c["failed_days"]) for name, c in checks.items() if c["failed_days"]},
        "last_success": {name: moment and f"{moment:%Y-%m-%dT%H:%MZ}" for name, moment in known.succeeded.items()},
        "automation": {"daemon": known.is_on, "switches": dict(known.switches)},
        "record_problem": None,
    }
    is_in_files = not names_postgres(settings) and (settings.dagster_home / _DATABASES[0]).exists()
    if is_in_files and not known.is_on and _fingerprint(settings, days) == before:
        with suppress(OSError, ChangedMeanwhileError):  # a full disk, or another `memory status`
            old = file.read_bytes() if file.exists() else None
            write_atomically(file, json.dumps(found | {"fingerprint": before}).encode(), expected=old, backups=None)
    return found


def _fingerprint(settings: Settings, days: Sequence[date]) -> str:
    """A hash of the sizes and times of Dagster's databases and settings, of these days and of the installed version."""
    known = settings.model_dump_json(exclude={"session_dirs", "default_session_dirs"})  # `memory run --sessions DIR`
    parts = [memory_pipeline.__version__, known, *map(str, days)]
    for name in (*_DATABASES, *(f"{name}-wal" for name in _DATABASES), "dagster.yaml"):
        with suppress(OSError):
            state = (settings.dagster_home / name).stat()
            parts.append(f"{name} {state.st_size} {state.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
