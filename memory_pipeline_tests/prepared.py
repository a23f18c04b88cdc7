"""Workspaces that are made once for all workers of a test run; a test that changes one takes a copy."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def shared_by_workers(factory: pytest.TempPathFactory) -> Path:
    """The folder of temporary files of the whole test run."""
    root = factory.getbasetemp()
    return root.parent if "PYTEST_XDIST_WORKER" in os.environ else root


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """The folder of that name as `make` has filled it, by whichever worker of pytest-xdist asked first."""
    root = shared_by_workers(factory)
    folder, done = root / name, root / f"{name}.made"
    with FileLock(f"{folder}.lock"):
        if not done.exists():
            make(folder)
            done.touch()
    return folder


def copied(source: Path, target: Path) -> Path:
    """A copy at `target` that leaves the holes in files empty; shutil writes the index's, half a gigabyte of zeros."""
    subprocess.run(["cp", "-a", source, target], check=True)
    return target
