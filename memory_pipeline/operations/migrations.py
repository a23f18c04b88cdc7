"""One-time changes to a workspace of an earlier version, before anything else is written to it.

A workspace has a format number (`lake/format`; 0 if missing), and the functions of `MIGRATIONS` bring it from each
number to the next. They are named for what they do and are append-only: a released one is never changed or removed. A
new one goes to the end, with `workspace_marks.FORMAT` and a test with a workspace written by the previous version
(`memory_pipeline_tests/operations/test_migrations.py`). Each may be killed and called again; one that changes a user's
file keeps a copy with `safe_write`. New columns and tables need no migration: files without them are valid, and derived
rows are rebuilt when the version of their stage changes.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import polars as pl

from memory_pipeline.lake.storage import storage_of
from memory_pipeline.lake.store import Lake
from memory_pipeline.locks import FileLock
from memory_pipeline.markdown.safe_write import LOCK_SECONDS, write_atomically
from memory_pipeline.operations import earlier_events
from memory_pipeline.proposals.events import REOFFERED, event_rows
from memory_pipeline.settings import Settings
from memory_pipeline.settings.marks import FORMAT, keep_format, stored_format

_INSTALLED_YAMLS = {
    "14af87a3a762c2ed3c083ac9ba18920ffbbbc621f3ae8e2043c828df034df6fb",
    "966e2e7e41563b0d674b176815e986a1fcfdfcec0000130eadf62012789f10f3",
    "8564394471b25cd8ab3d0f52e01708b009e2902da692d170fe58a241856caf61",
}
"""SHA-256 of each dagster.yaml that was installed before workspaces had a format."""
_YAMLS_WITH_OWN_STORAGE = {
    "56fd442387431d69966b23f8a87670c0162d5e04951c218c9d7bb8abf357431d",
    "dcc388df958cc1169ee91322f1948364034415ec3eb7db0e7aee6b09506a6be2",
}
"""SHA-256 of the dagster.yaml of version 0.2.0 and of the workspaces of format 4."""
_OWN_STORAGE = re.compile(
    rb"^event_log_storage:\n(?:[ \t]+(?:module: memory_pipeline|class: KeptEventLog).*\n?)+", re.M
)
_OF_A_SCHEMA = re.compile(r"-any-v\d+$")


def m001_take_back_dagster_yaml(settings: Settings) -> None:
    """The instance settings allowed one run at a time, so a decision waited for a backfill, and events were stored
    slowly. An unchanged dagster.yaml is replaced by the current one; one that a user changed is kept."""
    own = settings.dagster_home / "dagster.yaml"
    if own.exists() and hashlib.sha256(own.read_bytes()).hexdigest() in _INSTALLED_YAMLS:
        own.unlink()


def m002_remove_the_index_without_schema(settings: Settings) -> None:
    """Remove the index in a folder named only after its model, which is no longer read."""
    for mark in settings.index_dir.glob("*.generation"):
        if not _OF_A_SCHEMA.search(mark.stem):
            shutil.rmtree(settings.index_dir / mark.stem, ignore_errors=True)
            (settings.index_dir / f"{mark.stem}.lock").unlink(missing_ok=True)
            mark.unlink()


def m003_offer_again_what_expired_unseen(settings: Settings) -> None:
    """Up to version 0.2.0 proposals expired by calendar days, without a recorded reason. Those that runs showed on
    fewer than half of the days are offered again, except tasks in Todoist, whose list users see, and proposals that a
    newer line replaced."""
    lake, storage = Lake.from_settings(settings), storage_of(settings)
    decisions = earlier_events.read(storage, "decisions")
    by_clock = decisions.filter(pl.col("surface") == "expiry", pl.col("reason").is_null())
    if by_clock.is_empty() or not earlier_events.read(storage, "shown_days").is_empty():
        return
    showings, today = earlier_events.read(storage, "showings"), datetime.now(settings.zone).date()
    settled = set(showings.filter(pl.col("surface") == "todoist")["proposal_id"])
    settled.update(*lake.read("proposals")["supersedes"].drop_nulls().to_list())
    shown = showings.filter(pl.col("surface") != "command")
    first = dict(shown.group_by("proposal_id").agg(pl.col("day").min()).iter_rows())
    tables = ("showings", "displacements", "decisions", "promotions")
    ran = {day for table in tables for day in earlier_events.days(storage, table)}
    again = []
    for proposal_id, ended in by_clock.select("proposal_id", "day").iter_rows():
        due = first.get(proposal_id, ended) + timedelta(days=settings.proposal_expiry_days)
        # the clock was right; otherwise no day is reliable
        was_right = ended <= today and not any(due < day < ended for day in ran)
        days = sum(first.get(proposal_id, ended) <= day < ended for day in ran) if was_right else 0
        if 2 * days < settings.proposal_expiry_days and proposal_id not in settled:
            again.append({"proposal_id": proposal_id, "reason": earlier_events.shown_on(days)})
    known = pl.concat([lake.read("events").filter(kind=REOFFERED), earlier_events.read(storage, "reoffers")])
    made = event_rows(REOFFERED, again, today, datetime.now(UTC)).join(known, on="proposal_id", how="anti")
    lake.update("events", lambda rows: pl.concat([rows, made]), today)


def m004_drop_the_own_event_storage(settings: Settings) -> None:
    """Version 0.2.0 had its own event storage class, and no pools. An unchanged dagster.yaml is replaced by the current
    one; in one that a user changed the class is removed, as Dagster's own reads the same files."""
    own = settings.dagster_home / "dagster.yaml"
    text = own.read_bytes() if own.exists() else b""
    if hashlib.sha256(text).hexdigest() in _YAMLS_WITH_OWN_STORAGE:
        own.unlink()
    elif (kept := _OWN_STORAGE.sub(b"", text)) != text:
        write_atomically(own, kept, expected=text, backups=settings.backups)


def m005_put_what_happened_to_proposals_into_events(settings: Settings) -> None:
    """Up to version 0.2.0 events were in nine tables. Copy their rows to `events`; the old tables are kept."""
    lake, storage = Lake.from_settings(settings), storage_of(settings)
    if not earlier_events.are_there(storage):  # a run may hold the lock for a long time
        return
    with FileLock(settings.backups / "proposals.lock", timeout=LOCK_SECONDS):
        found = pl.concat([earlier_events.read(storage, table) for table in earlier_events.MOMENTS])
        for (day,), made in found.partition_by("day", as_dict=True, include_key=True).items():
            lake.update("events", partial(_with_new_rows, made), day)


def _with_new_rows(made: pl.DataFrame, rows: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([rows, made.join(rows, on=made.columns, how="anti", nulls_equal=True)])


def m006_remove_the_tables_that_events_replaced(settings: Settings) -> None:
    """Remove the nine tables; their last versions stay in `backups/lake/`. This is a separate step, because the
    workspace now has a format that a version which reads those tables refuses."""
    storage = storage_of(settings)
    if any(earlier_events.days(storage, table) for table in earlier_events.MOMENTS):
        with FileLock(settings.backups / "proposals.lock", timeout=LOCK_SECONDS):
            earlier_events.remove(storage)


def m007_drop_the_own_event_storage_of_format_4(settings: Settings) -> None:
    """Development versions between 0.2.0 and 0.3.0 reached format 4 while the class still existed."""
    m004_drop_the_own_event_storage(settings)


MIGRATIONS: tuple[Callable[[Settings], None], ...] = (
    m001_take_back_dagster_yaml,
    m002_remove_the_index_without_schema,
    m003_offer_again_what_expired_unseen,
    m004_drop_the_own_event_storage,
    m005_put_what_happened_to_proposals_into_events,
    m006_remove_the_tables_that_events_replaced,
    m007_drop_the_own_event_storage_of_format_4,
)


def migrate(settings: Settings) -> list[str]:
    """Run the pending migrations in order; returns their names. Each is recorded when done, so an interrupted one is
    repeated. One process at a time; others wait."""
    if stored_format(settings.workspace) >= FORMAT:
        return []
    settings.backups.mkdir(parents=True, exist_ok=True)
    with FileLock(settings.backups / "migrations.lock"):
        done = []
        for number, migration in list(enumerate(MIGRATIONS, 1))[stored_format(settings.workspace) :]:
            migration(settings)
            keep_format(settings.workspace, number)
            done.append(migration.__name__)
        return done
