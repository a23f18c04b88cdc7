"""How long the hook of tool calls takes as a whole process, beside `python3 -I -S -c pass`.

    python -m benchmarks.action_latency [--calls N]

For 10, 1,000 and 10,000 patterns of one project: the median and the 95th percentile of N calls before a command of
which nothing is known, which is what most calls are, and after a failure that has a cure. Before a cold call the files
of the hook, of the modules that it imports and of the workspace are dropped from the page cache, as far as no other
process has mapped them; the interpreter itself stays there. The rows take turns, so that other load falls on all alike;
`cpu` is the median of the processor time, which other load changes little.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median, quantiles
from typing import Any, NamedTuple

from benchmarks.common import parser
from memory_pipeline.agents.hooks import ACTION_SCRIPT

FOLDER = "/src/kiln"
EMPTY = [sys.executable, "-I", "-S", "-c", "pass"]
IMPORTED = """
import contextlib, fcntl, json, os, re, signal, sys, time, zlib
for module in list(sys.modules.values()):
    for name in ("__file__", "__cached__"):
        if os.path.exists(getattr(module, name, None) or ""):
            print(getattr(module, name))
"""
"""Prints the files of the modules that the hook imports."""


def main() -> None:
    options = parser("action_latency", __doc__)
    options.add_argument("--calls", type=int, default=100, metavar="N", help="calls of each kind")
    calls = options.parse_args().calls
    with tempfile.TemporaryDirectory() as folder:
        rows = list(rows_in(Path(folder)))
        taken, used = defaultdict[tuple[str, bool], list[float]](list), defaultdict[str, list[float]](list)
        for is_cold in (False, True):
            for number in range(calls + 1):
                for row in rows:
                    milliseconds, processor = timed(row, is_cold)
                    if number:  # the first compiles what the hook imports
                        taken[row.name, is_cold].append(milliseconds)
                        used[row.name].append(processor)
    print(f"{'milliseconds':24}{'warm p50':>10}{'p95':>7}{'cold p50':>10}{'p95':>7}{'cpu':>7}")
    for row in rows:
        figures = (quantiles(taken[row.name, is_cold], n=20) for is_cold in (False, True))
        told = "".join(f"{found[9]:10.1f}{found[18]:7.1f}" for found in figures)
        print(f"{row.name:24}{told}{median(used[row.name]):7.1f}")


class Row(NamedTuple):
    """A process that is timed."""

    name: str
    command: list[str]
    payload: bytes
    files: list[Path]
    """The files that a cold call reads from the disk."""


def rows_in(folder: Path) -> Iterator[Row]:
    """The rows of the table; their workspaces are made in the folder."""
    imported = [Path(line) for line in run([sys.executable, "-I", "-S", "-c", IMPORTED]).splitlines()]
    own = [path for path in ACTION_SCRIPT.parent.rglob("*.py*") if path.is_file()]
    yield Row("python3 -I -S -c pass", EMPTY, b"", imported)
    for patterns in (10, 1_000, 10_000):
        workspace = folder / f"{patterns}"
        write(workspace / "connections" / "actions", patterns)
        files = [*imported, *own, *(path for path in workspace.rglob("*") if path.is_file())]
        for event, payload in (("before", call("git status")), ("after", call("tool 3", error="Error 3x: broken"))):
            command = [sys.executable, "-I", "-S", str(ACTION_SCRIPT), f"{workspace}", "claude", event]
            yield Row(f"{patterns:,} patterns, {event}", command, json.dumps(payload).encode(), files)


def write(folder: Path, patterns: int) -> None:
    """The files of a project with so many patterns."""
    folder.mkdir(parents=True)
    hints = [
        {"id": f"f-{n}", "line": "x" * 150, "evidence": "3 sessions, last 2026-03-01", "words": ["tool", f"{n}"]}
        for n in range(patterns)
    ]
    after = {f"error {n}x: broken": [hint] for n, hint in enumerate(hints)}
    (folder / "p-1.json").write_text(json.dumps({"rules": [], "before": hints[: patterns // 10], "after": after}))
    named = {"folders": {FOLDER: "p-1.json"}}
    (folder / f"{zlib.crc32(FOLDER.encode()):08x}.json").write_text(json.dumps(named))


def call(command: str, **more: Any) -> dict[str, Any]:
    tool = {"tool_name": "Bash", "tool_input": {"command": command}}
    return {"session_id": "s", "cwd": f"{FOLDER}/oven", **tool, **more}


def timed(row: Row, is_cold: bool) -> tuple[float, float]:
    """Milliseconds of a process, and those of the processor."""
    for path in row.files if is_cold else ():
        file = os.open(path, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
    used = getrusage(RUSAGE_CHILDREN)
    before, began = used.ru_utime + used.ru_stime, time.perf_counter()
    run(row.command, row.payload)
    ended, after = time.perf_counter(), getrusage(RUSAGE_CHILDREN)
    return 1_000 * (ended - began), 1_000 * (after.ru_utime + after.ru_stime - before)


def run(command: list[str], payload: bytes = b"") -> str:
    return subprocess.run(command, input=payload, capture_output=True, check=True).stdout.decode()


if __name__ == "__main__":
    main()
