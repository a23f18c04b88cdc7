"""How long the hook of tool calls takes as a whole process, beside an empty Python.

    python -m benchmarks.action_latency [--calls N]

For 10, 1,000 and 10,000 patterns of one project: the first call, and the median and the 95th percentile of N calls
before a command of which nothing is known, which is what most calls are, and after a failure that has a cure.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from statistics import quantiles
from typing import Any

from benchmarks.common import parser
from memory_pipeline.agents.hooks import ACTION_SCRIPT

FOLDER = "/src/kiln"
EMPTY = [sys.executable, "-I", "-S", "-c", "pass"]


def main() -> None:
    options = parser("action_latency", __doc__)
    options.add_argument("--calls", type=int, default=100, metavar="N", help="calls of each kind")
    calls = options.parse_args().calls
    print(f"{'patterns':>9}{'call':>9}{'first':>8}{'median':>8}{'95 %':>8}  milliseconds")
    show(0, "empty", [timed(EMPTY, {}) for _ in range(calls)])
    for patterns in (10, 1_000, 10_000):
        with tempfile.TemporaryDirectory() as folder:
            workspace = Path(folder)
            write(workspace / "connections" / "actions", patterns)
            for event, payload in (("before", call("git status")), ("after", call("tool 3", error="Error 3x: broken"))):
                command = [sys.executable, "-I", "-S", str(ACTION_SCRIPT), f"{workspace}", "claude", event]
                show(patterns, event, [timed(command, payload) for _ in range(calls)])


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


def timed(command: list[str], payload: dict[str, Any]) -> float:
    """Milliseconds of a process."""
    began = time.perf_counter()
    subprocess.run(command, input=json.dumps(payload).encode(), capture_output=True, check=True)
    return 1_000 * (time.perf_counter() - began)


def show(patterns: int, event: str, taken: list[float]) -> None:
    later = sorted(taken[1:])
    middle, high = quantiles(later, n=20)[9], quantiles(later, n=20)[18]
    print(f"{patterns or '':>9}{event:>9}{taken[0]:8.1f}{middle:8.1f}{high:8.1f}")


if __name__ == "__main__":
    main()
