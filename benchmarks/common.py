"""What the benchmarks share: where data lies, how they are called, and `memory run` in a place of its own."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "memory_pipeline/examples"
SHARED = ROOT.parent / "shared"
"""Data that is no part of the project: labelled sessions and dialogues. What needs it says so where it is missing."""
FIXTURES, MORE, GOLD, BENCH = (SHARED / name for name in ("fixtures", "more-sessions", "gold", "bench"))
SESSIONS = FIXTURES if FIXTURES.is_dir() else EXAMPLES


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
    """A parser of the arguments of `python -m benchmarks.NAME` (no name: of all), whose help is the docstring."""
    return argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}".rstrip("."),
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def memory(
    arguments: Sequence[str], sessions: Path, workspace: Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """`memory ARGUMENTS` of this checkout on a workspace, with a home beside it; it may fail."""
    named = ["--sessions", f"{sessions}"] if arguments[0] == "run" else []
    return python(["-m", "memory_pipeline.cli.main", *arguments, *named], workspace, **variables)


def python(arguments: Sequence[str], workspace: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """`python ARGUMENTS` with this checkout, likewise."""
    home = workspace.parent / "home"
    home.mkdir(exist_ok=True)
    env = {"PATH": "/usr/bin:/bin", "HOME": f"{home}", "TZ": "UTC", "MEMORY_TIMEZONE": "UTC"}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=env | {"MEMORY_WORKSPACE": f"{workspace}"} | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )


def run_everything(
    checkout: Path,
    sessions: Sequence[Path],
    workspace: Path,
    home: Path,
    *,
    python: str = sys.executable,
    output: IO[bytes] | None = None,
) -> None:
    """`memory run --all` of the package in `checkout`, which sees no home and no setting of this machine.

    Raises CalledProcessError.
    """
    home.mkdir(parents=True, exist_ok=True)
    named = [argument for directory in sessions for argument in ("--sessions", f"{directory.resolve()}")]
    env = {"PATH": os.environ["PATH"], "HOME": f"{home}", "TZ": "UTC", "MEMORY_TIMEZONE": "UTC"}
    subprocess.run(
        [python, "-m", "memory_pipeline.cli.main", "run", "--all", *named],
        cwd=checkout,  # `-m` takes the package that stands there
        env=env | {"MEMORY_WORKSPACE": f"{workspace.resolve()}"},
        stdout=output or subprocess.DEVNULL,
        stderr=subprocess.STDOUT if output else None,
        check=True,
    )
