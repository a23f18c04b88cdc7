"""Removal of temporary files that killed processes left in a workspace.

Each writer makes its temporary file beside its target, under a name that nothing else uses. A later write in the same
folder may never come, so a run searches the whole workspace.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import suppress
from pathlib import Path

from memory_pipeline.markdown.safe_write import TEMPORARY_FILE_SECONDS

_FILE = re.compile(
    r"\.memory-[0-9a-f]{16}\.tmp"  # markdown, backups
    r"|\.(?:all|\d{4}-\d\d-\d\d)\.parquet(?:\.\d{8}T\d{6}\.\d{6}Z)?(?:\.\d+){1,2}\.tmp"  # tables, versions, objects
    r"|\.[0-9a-f]{64}\.[0-9a-f]{8}\.tmp"  # answers of models
    r"|\.(?:timezone|start_date|salt)\.\d+\.\d+\.tmp"  # marks of the workspace
)
_FOLDER = re.compile(r"\.examples-[a-z0-9_]{8}")
"""The bundled examples on their way into their workspace."""


def remove_temporary_files(workspace: Path, *, but_in: Path) -> list[Path]:
    """Take them away and return them. ``but_in`` is a folder that others keep, with many files and none of ours."""
    found = []
    for path in find_temporary_files(workspace, but_in=but_in):
        with suppress(OSError):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            found.append(path)
    return found


def find_temporary_files(workspace: Path, *, but_in: Path) -> list[Path]:
    """Temporary files older than an hour, as newer ones may be in use; also those with a time in the future."""
    found = []
    for folder, folders, names in os.walk(workspace):
        left_out = {name for name in folders if Path(folder, name) == but_in}
        candidates = [Path(folder, name) for name in names if _FILE.fullmatch(name)]
        candidates += [Path(folder, name) for name in folders if _FOLDER.fullmatch(name)]
        folders[:] = [name for name in folders if name not in left_out and not _FOLDER.fullmatch(name)]
        for path in candidates:
            with suppress(OSError):
                if path.is_symlink() or abs(time.time() - path.stat().st_mtime) <= TEMPORARY_FILE_SECONDS:
                    continue
                found.append(path)
    return found
