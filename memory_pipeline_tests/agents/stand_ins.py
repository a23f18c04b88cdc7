"""Programs that stand in for the `memory` command."""

from __future__ import annotations

import sys
from pathlib import Path

RULE = "Fire the kiln at 1,240 degrees."
SUMMARY = "The user fires the kiln, and the glaze waits."


def program(path: Path, body: str) -> Path:
    """An executable Python program."""
    path.write_text(f"#!{sys.executable} -IS\nimport os, sys, time\n{body}\n")
    path.chmod(0o755)
    return path


def brief(folder: Path, *, is_complete: bool = True) -> Path:
    """Prints the rule, or the summary of a compaction, and leaves its arguments in `asked`."""
    details = {"isComplete": is_complete}
    body = f"""
import json
open({str(folder / "asked")!r}, "a").write(repr(sys.argv[1:]) + "\\n")
if "--compaction" not in sys.argv:
    print({RULE!r})
elif "--json" in sys.argv:
    print(json.dumps({{"summary": {SUMMARY!r}, "firstKeptEntryId": "x", "tokensBefore": 1, "details": {details!r}}}))
else:
    print({SUMMARY!r})
"""
    return program(folder / "memory", body)


def hanging(folder: Path) -> Path:
    """Hangs for an hour, with a process below it; both leave their ids in `pids`."""
    pids = str(folder / "pids")
    body = f"""
os.fork()
open({pids!r}, "a").write(f"{{os.getpid()}}\\n")
print({RULE!r}, flush=True)
time.sleep(3600)
"""
    return program(folder / "memory", body)
