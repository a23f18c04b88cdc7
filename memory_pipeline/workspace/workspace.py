"""A workspace: the settings and the lake, opened once and passed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from memory_pipeline.lake.store import Lake
from memory_pipeline.settings import Settings
from memory_pipeline.settings.marks import keep_private


@dataclass(frozen=True)
class Workspace:
    """An opened workspace: its settings and its tables."""

    settings: Settings
    lake: Lake

    @classmethod
    def open(cls, settings: Settings, *, for_planning: bool = False) -> Self:
        """The workspace of these settings; see `Lake` for ``for_planning``."""
        keep_private(settings.workspace)
        return cls(settings, Lake.from_settings(settings, for_planning=for_planning))
