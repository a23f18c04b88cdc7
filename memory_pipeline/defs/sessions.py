"""The assets `sessions`, `messages` and `windows`, and their check."""

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl

from memory_pipeline.defs.check_results import check_by_day
from memory_pipeline.defs.orchestration import OWN_DAY, markdown_table, run_stage, stage_asset, table_spec
from memory_pipeline.defs.placement import Placement
from memory_pipeline.harnesses.compressed import where_it_lies
from memory_pipeline.lake.rows import FileDayRow, typed_rows
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.catalogue import READER_VERSION, Catalogue
from memory_pipeline.sessions.forks import Lineage, left_out
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace


def session_assets(placement: Placement) -> dg.AssetsDefinition:
    """The assets `sessions`, `messages` and `windows`."""
    specs = [
        table_spec(
            placement,
            "sessions",
            version=READER_VERSION,
            description="Read from the sessions of the agents in docs/agents.md, which are never written to. A "
            "session over midnight has a row on each of its days. Rows are missing when a file of the day could "
            "not be read: `memory status` names such files.",
        ),
        table_spec(
            placement,
            "messages",
            deps=["sessions"],
            version=READER_VERSION,
            description="Roles are user (what a person typed), assistant, tool (calls and results, clipped) and "
            "injected (text that no person typed). Secrets are replaced by marks before anything is stored.",
        ),
        table_spec(
            placement,
            "windows",
            deps=["messages"],
            version=READER_VERSION,
            description="Trigger `compaction`: the messages that a compaction replaced by a summary; `shutdown`: "
            "the rest once the session is idle. `reason` says why a window is stored but not observed.",
        ),
    ]

    @stage_asset(placement, "read_sessions", OWN_DAY, specs)
    def read_sessions(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        opened = placement.open(context)
        stage = SessionsStage.from_workspace(opened)
        seen = stage.look()
        context.log.info(f"{seen.files} session files, {seen.changed} new or changed")
        in_all = not_read(stage.catalogue, stage.catalogue.rows)

        def metadata_of(table: str, day: date) -> Mapping[str, Any]:
            found = dict(describe(opened.lake, table, day))
            if table == "sessions":
                found |= {f"all_{name}": value for name, value in in_all.items()}
                found |= not_read(stage.catalogue, stage.catalogue.files_of(day))
            return found

        yield from run_stage(context, opened, stage, metadata_of)

    return read_sessions


def not_read(catalogue: Catalogue, keys: Collection[str]) -> dict[str, Any]:
    """The parts of these files that are unreadable or must not be stored: the number of each, and all but hidden
    characters as a table.
    """
    rows = [catalogue.rows[key] for key in sorted(keys)]
    files = [(row["path"], None, row["reason"]) for row in rows if row["reason"] and not row["side_file_of"]]
    left_out = [(row["path"], None, row["excluded"]) for row in rows if row["excluded"]]
    records = [(row["path"], p["line"], p["reason"]) for row in rows for p in row["problems"] or []]
    counts = {
        "files_not_read": len(files),
        "records_not_read": len(records),
        "left_out": len(left_out),
        "hidden_characters": sum(row["hidden_characters"] or 0 for row in rows),
    }
    lines = [(f"{path}:{line}" if line else path, reason) for path, line, reason in (*files, *left_out, *records)]
    table = pl.DataFrame(lines, schema={"where": pl.String(), "why": pl.String()}, orient="row")
    return counts | ({"not_read": markdown_table(table)} if lines else {})


def describe(lake: Lake, table: str, day: date) -> Mapping[str, Any]:
    frame = lake.read(table, [day])
    if table == "sessions":
        shown = frame.select("harness", "name", "user_messages", "messages", "cwd")
        return {
            "user_messages": int(frame["user_messages"].sum()),
            "harnesses": frame["harness"].n_unique(),
            "preview": markdown_table(shown),
        }
    if table == "messages":
        by_role = dict(frame.group_by("role").len().sort("role").iter_rows())
        return {f"role_{role}": int(by_role.get(role, 0)) for role in ("user", "assistant", "tool", "injected")}
    return {
        "observed": int(frame["observed"].sum()),
        "tokens": int(frame["tokens"].sum()),
        "tokens_said": int(frame["tokens_said"].sum()),
        "preview": markdown_table(
            frame.select("trigger", "messages", "user_messages", "observed", pl.col("reason").fill_null(""))
        ),
    }


def session_checks(placement: Placement) -> list[dg.AssetChecksDefinition]:
    def judge(workspace: Workspace, day: date) -> Verdict:
        return judge_windows(workspace.lake, day)

    judge.__doc__ = judge_windows.__doc__
    return [check_by_day(placement, "windows", "every_message_in_one_window", judge, blocking=True)]


def judge_windows(lake: Lake, day: date) -> Verdict:
    """Every message of the day is in exactly one window, and no message is stored twice.

    Fails when a file of `messages` or `windows` was changed or restored from a different copy than the other one, or a
    session file has messages of the day but none is stored.
    """
    messages = lake.read("messages", [day]).select("message_id", "dedupe_key")
    windows = lake.read("windows", [day])
    twice = messages.group_by("message_id").len().filter(pl.col("len") > 1)["message_id"].to_list()
    known = windows["dedupe_key"].to_list()
    without_window = messages.filter(~pl.col("dedupe_key").is_in(known).fill_null(False))["message_id"].to_list()
    counted = messages.group_by("dedupe_key").len().join(windows, on="dedupe_key", how="right")
    miscounted = counted.filter(pl.col("len").fill_null(0) != pl.col("messages"))["dedupe_key"].to_list()
    offenders = [f"message {m} is stored more than once" for m in twice]
    if messages.is_empty():
        offenders += [f"{path} has messages of this day, and none is stored" for path in _files_of(lake, day)]
    offenders += [f"message {m} is in no window" for m in without_window]
    offenders += [f"window {w[:12]} has another number of messages than it states" for w in miscounted]
    offenders += [f"window {w[:12]} is stored more than once" for w in {w for w in known if known.count(w) > 1}]
    return Verdict(
        not offenders,
        {"messages": messages.height, "windows": windows.height},
        sorted(offenders),
        f"{messages.height:,} messages in {windows.height:,} windows",
    )


def _files_of(lake: Lake, day: date) -> list[str]:
    """The files that should be stored: readable ones with messages on the day."""
    files = lake.read("files", columns=["path", "session_id", "parent_id", "days", "excluded", "reason"])
    out = left_out(typed_rows(files, Lineage))
    base = pl.col("session_id").str.split("/").list.first()
    files = files.filter(~base.is_in(list(out)), ~pl.col("session_id").is_in(list(out)), pl.col("reason").is_null())
    return [
        path
        for path, days in files.select("path", "days").iter_rows()
        if _has_own_messages(days or [], day) and _exists(path)
    ]


def _has_own_messages(days: list[FileDayRow], day: date) -> bool:
    """Whether the session has messages on the day that it does not repeat from another one."""
    return any(entry["day"] == day and (entry["messages"] or 0) > (entry["inherited"] or 0) for entry in days)


def _exists(key: str) -> bool:
    return where_it_lies(Path(key)).exists() or Path(key.rpartition("#")[0]).is_file()
