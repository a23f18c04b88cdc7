"""Where things lie in a lake that is a folder."""

from pathlib import Path

from memory_pipeline.lake.store import Lake


def versions_folder(lake: Lake, table: str) -> Path:
    """Of the versions of a table."""
    return lake.root.parent / "backups" / lake.root.name / table
