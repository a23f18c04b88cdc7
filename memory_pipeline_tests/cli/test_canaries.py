"""Secrets planted in every place of the sessions of every harness reach nothing that a run leaves behind.

One run reads them all; then everything that the home holds is searched: tables, index, logs, markdown files, Dagster's
runs, events and metadata, and what the commands printed. The same search finds them where redaction is switched off.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.redaction.canaries import CANARIES
from memory_pipeline_tests.redaction.planted import ALL, HARNESSES, found_in, pi

EMPTY = bytes(4096)
"""Files of the index are mostly of this: room for points to come."""


def left_behind(home: Path) -> Iterator[tuple[str, str]]:
    """Everything below the home: each file as it is and, where that hides text, as what it holds."""
    for path in sorted(home.rglob("*")):
        if not path.is_file() or "sessions" in path.relative_to(home).parts[:1]:
            continue
        yield str(path), path.read_bytes().replace(EMPTY, b"").decode("utf-8", "replace")
        if path.suffix == ".parquet":
            yield str(path), pl.read_parquet(path, glob=False).write_ndjson()
        elif path.suffix == ".db" or path.read_bytes()[:15] == b"SQLite format 3":
            with closing(sqlite3.connect(path)) as connection:
                yield str(path), "\n".join(connection.iterdump())


def run(home: Path, *harnesses: Callable[..., None], redact: str = "true") -> list[tuple[str, str]]:
    """Read, observe and propose; everything that this leaves behind or prints.

    Every canary is said in every voice, by one of the harnesses: `redaction/test_every_voice.py` has all by each.
    """
    sessions = home / "sessions"
    for number, write_sessions in enumerate(harnesses):
        write_sessions(sessions, ALL[number :: len(harnesses)])
    printed = []
    for command in (["run", "--all", "--sessions", str(sessions)], ["status", "--json"], ["review"]):
        result = memory(home, *command, env={"MEMORY_DEFAULT_SESSION_DIRS": "false", "MEMORY_REDACT": redact})
        assert result.returncode == 0, result.stderr
        printed.append((f"output of {command[0]}", result.stdout + result.stderr))
    return [*printed, *left_behind(home)]


@pytest.mark.slow
def test_no_canary_reaches_anything(tmp_path: Path) -> None:
    texts = run(tmp_path, *HARNESSES)
    workspace = tmp_path / ".memory-pipeline"
    harnesses = pl.read_parquet(workspace / "lake/files/all.parquet").filter(pl.col("reason").is_null())["harness"]
    assert sorted(harnesses) == ["claude_code", "codex", "gemini", "opencode", "pi"]
    observations = pl.read_parquet(workspace / "lake/observations/2025-03-05.parquet")
    assert observations["text"].str.contains("[redacted:", literal=True).any()  # they were worth observing
    for made in ("REVIEW.md", "memory/2025-03-05.md", "index", "dagster", "lake/embeddings"):
        assert (workspace / made).exists()
    assert len(CANARIES) >= 40
    assert found_in(texts) == set()


@pytest.mark.slow
def test_the_search_finds_them_where_redaction_is_off(tmp_path: Path) -> None:
    texts = run(tmp_path, pi, redact="false")
    assert found_in(texts) == set(CANARIES)  # what is marked private stays out in any case
