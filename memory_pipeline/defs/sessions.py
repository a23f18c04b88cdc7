"""The assets `sessions`, `messages` and `windows`."""

from collections.abc import Collection, Iterator, Mapping
from datetime import date
from typing import Any

import dagster as dg
import polars as pl

from memory_pipeline.defs.orchestration import (
    OWN_DAY,
    WorkspaceResource,
    daily_partitions,
    markdown_table,
    run_stage,
    table_spec,
)
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.catalogue import READER_VERSION, Catalogue
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import Settings


def session_assets(settings: Settings) -> dg.AssetsDefinition:
    """`sessions`, `messages` and `windows`."""

    @dg.multi_asset(
        name="read_sessions",
        specs=[
            table_spec(
                "sessions",
                version=READER_VERSION,
                description="Read from the sessions of the agents in docs/agents.md, which are never written to. A "
                "session over midnight has a row on each of its days. Wrong when a file touches the day and is not "
                "here: `memory status` names the files that could not be read.",
            ),
            table_spec(
                "messages",
                deps=["sessions"],
                version=READER_VERSION,
                description="Roles are user (what a person typed), assistant, tool (calls and results, clipped) and "
                "injected (text that no person typed). Secrets are replaced by marks before anything is stored.",
            ),
            table_spec(
                "windows",
                deps=["messages"],
                version=READER_VERSION,
                description="Trigger `compaction`: what a compaction summarised away; `shutdown`: the rest once the "
                "session is idle. `reason` says why a window is stored but not observed.",
            ),
        ],
        partitions_def=daily_partitions(settings),
        **OWN_DAY,
        # where it cannot, Dagster 1.13 refuses a backfill on some starts: it compares how each key writes its days
        can_subset=True,
    )
    def read_sessions(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        opened = workspace.open()
        stage = SessionsStage.from_workspace(opened)
        seen = stage.look()
        context.log.info(f"{seen.files} session files, {seen.changed} new or changed")
        in_all = not_read(stage.catalogue, stage.catalogue.rows)

        def told(table: str, day: date) -> Mapping[str, Any]:
            found = dict(describe(opened.lake, table, day))
            if table == "sessions":
                found |= {f"all_{name}": value for name, value in in_all.items()}
                found |= not_read(stage.catalogue, stage.catalogue.files_of(day))
            return found

        yield from run_stage(context, opened, stage, told)

    return read_sessions


def not_read(catalogue: Catalogue, keys: Collection[str]) -> dict[str, Any]:
    """What could not be read of these files and what may not be stored: how much of each, and all but the hidden
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
