"""Checks on what was read."""

from datetime import date
from pathlib import Path

import dagster as dg
import polars as pl

from memory_pipeline.defs.check_results import check_by_day
from memory_pipeline.harnesses.compressed import where_it_lies
from memory_pipeline.lake.rows import FileDayRow, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.forks import Lineage, left_out
from memory_pipeline.settings import Settings
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace

EVERY_MESSAGE = "every_message_in_one_window"


def session_checks(settings: Settings) -> list[dg.AssetChecksDefinition]:
    return [check_by_day("windows", EVERY_MESSAGE, _judge, settings, blocking=True)]


def _judge(workspace: Workspace, day: date) -> Verdict:
    """Every message of the day lies in exactly one window, and no message is there twice.

    Fails when a file of `messages` or `windows` was changed, or put back from another copy than the other one, and when
    a session file has messages of the day and none is stored.
    """
    return judge_windows(workspace.lake, day)


def judge_windows(lake: Lake, day: date) -> Verdict:
    messages = lake.read("messages", [day]).select("message_id", "dedupe_key")
    windows = lake.read("windows", [day])
    twice = messages.group_by("message_id").len().filter(pl.col("len") > 1)["message_id"].to_list()
    known = windows["dedupe_key"].to_list()
    homeless = messages.filter(~pl.col("dedupe_key").is_in(known).fill_null(False))["message_id"].to_list()
    counted = messages.group_by("dedupe_key").len().join(windows, on="dedupe_key", how="right")
    miscounted = counted.filter(pl.col("len").fill_null(0) != pl.col("messages"))["dedupe_key"].to_list()
    offenders = [f"message {m} is there more than once" for m in twice]
    if messages.is_empty():
        offenders += [f"{path} has messages of this day, and none is stored" for path in _files_of(lake, day)]
    offenders += [f"message {m} is in no window" for m in homeless]
    offenders += [f"window {w[:12]} counts other messages than it has" for w in miscounted]
    offenders += [f"window {w[:12]} is there more than once" for w in {w for w in known if known.count(w) > 1}]
    return Verdict(
        not offenders,
        {"messages": messages.height, "windows": windows.height},
        sorted(offenders),
        f"{messages.height:,} messages in {windows.height:,} windows",
    )


def _files_of(lake: Lake, day: date) -> list[str]:
    """What should be stored: sessions that say something on the day and can be read."""
    files = lake.read("files", columns=["path", "session_id", "parent_id", "days", "excluded", "reason"])
    out = left_out(typed_rows(files, Lineage))
    base = pl.col("session_id").str.split("/").list.first()
    files = files.filter(~base.is_in(list(out)), ~pl.col("session_id").is_in(list(out)), pl.col("reason").is_null())
    return [
        path
        for path, days in files.select("path", "days").iter_rows()
        if _says_something(days or [], day) and _is_there(path)
    ]


def _says_something(days: list[FileDayRow], day: date) -> bool:
    """Whether there is more on the day than what it repeats of another session."""
    return any(entry["day"] == day and (entry["messages"] or 0) > (entry["inherited"] or 0) for entry in days)


def _is_there(key: str) -> bool:
    return where_it_lies(Path(key)).exists() or Path(key.rpartition("#")[0]).is_file()
