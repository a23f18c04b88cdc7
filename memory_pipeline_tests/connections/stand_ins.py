"""Programs that stand in for the `memory` command."""

from __future__ import annotations

import sys
from pathlib import Path

RULE = "Fire the kiln at 1,240 degrees."


def program(path: Path, body: str) -> Path:
    """An executable Python program."""
    path.write_text(f"#!{sys.executable} -IS\nimport os, sys, time\n{body}\n")
    path.chmod(0o755)
    return path


def brief(folder: Path) -> Path:
    """Prints the rule, and leaves its arguments in `asked`."""
    asked = str(folder / "asked")
    return program(folder / "memory", f"open({asked!r}, 'a').write(repr(sys.argv[1:]) + '\\n')\nprint({RULE!r})")


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
