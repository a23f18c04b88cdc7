"""Where things lie in a lake that is a folder."""

from pathlib import Path
from typing import ClassVar

from memory_pipeline.lake.storage import FolderStorage
from memory_pipeline.lake.store import Lake


class FarFolder(FolderStorage):
    """A folder that passes for a bucket, where nothing of its requests matters."""

    is_far: ClassVar[bool] = True


def versions_folder(lake: Lake, table: str) -> Path:
    """Of the versions of a table."""
    return lake.root.parent / "backups" / lake.root.name / table
