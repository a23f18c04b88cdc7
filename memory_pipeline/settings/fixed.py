"""Values that are fixed when a workspace is created: its time zone, its first day and its salt.

Workspaces with the same lake in object storage or another directory share them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from types import ModuleType

from memory_pipeline.days import today
from memory_pipeline.settings import marks
from memory_pipeline.settings.fields import Settings


def keep_timezone(settings: Settings) -> None:
    """Fix the time zone of the workspace and of its lake, so that travelling does not move its days.

    Raises `OtherMarksError` if the lake has another zone.
    """
    if settings.lake:
        shared_marks().share_zone(settings)
    marks.keep_zone(settings.workspace, settings.timezone)


def keep_first_day(settings: Settings, session_days: Iterable[date], *, is_complete: bool = True) -> Settings:
    """Fix the first day of a workspace that has none: the oldest of these days and of the stored ones.

    Returns the settings with the effective day: one set by the user, else the workspace's. Nothing is fixed unless the
    days are complete, nor for a shared lake without days, where sessions pushed later to a running server would be left
    out.
    """
    days = list(session_days)
    is_shared = settings.lake is not None and shared_marks().is_shared(settings)
    if is_complete and (days or not is_shared):
        marks.keep_first_day(settings.workspace, days, today(settings.zone))
        if is_shared:
            shared_marks().share_first_day(settings)
    if "start_date" in settings.model_fields_set:
        return settings
    first = marks.stored_first_day(settings.workspace) or min((*days, settings.start_date))
    return settings.model_copy(update={"start_date": first})


def workspace_salt(settings: Settings) -> bytes:
    """The random bytes of the workspace for marks of secrets: equal secrets get equal marks only within it and the
    workspaces that share its lake."""
    if settings.lake:
        shared_marks().make_salt(settings)
    return marks.salt(settings.workspace)


def shared_marks() -> ModuleType:
    """The module for marks of a shared lake, imported when needed: the client of a bucket takes long to import."""
    from memory_pipeline.lake import shared_marks

    return shared_marks
