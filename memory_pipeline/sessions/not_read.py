"""Unreadable files and records, in one list for `memory run`, `status`, the doctor and the UI.

Side files that agents store next to sessions are left out, as they contain no session.
"""

from __future__ import annotations

from pathlib import PurePath

import polars as pl

from memory_pipeline import harnesses
from memory_pipeline.harnesses.model import Source
from memory_pipeline.lake.store import Lake

IS_NOT_READ = pl.col("reason").is_not_null() & pl.col("side_file_of").is_null()
"""The condition for a row of `files` that was not read."""


def owner_of_side_file(source: Source) -> str | None:
    """The agent that stores side files at such paths; the agent whose folder contains the file is asked first."""
    place = PurePath(source.path)
    asked = sorted(harnesses.HARNESSES, key=lambda harness: harness.name != source.agent)
    return next((harness.name for harness in asked if any(map(place.match, harness.side_files))), None)


def not_read(lake: Lake) -> dict[str, dict[str, str] | list[str]]:
    """The unreadable files and folders, each with the reason, and the unreadable lines of other files."""
    files = lake.read("files", columns=["path", "reason", "side_file_of", "problems"]).sort("path")
    lines = files.select("path", "problems").explode("problems", empty_as_null=True).drop_nulls().unnest("problems")
    return {
        "files_not_read": dict(files.filter(IS_NOT_READ).select("path", "reason").iter_rows()),
        "records_not_read": [f"{p}:{n}: {r}" for p, n, r in lines.select("path", "line", "reason").iter_rows()],
    }
