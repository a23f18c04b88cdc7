"""What Dagster loads, made once from the settings that every test has: days from 2025 in UTC, a workspace of nobody."""

from __future__ import annotations

import tempfile
from datetime import date
from pathlib import Path

from memory_pipeline.defs.graph import build_definitions
from memory_pipeline.defs.placement import Placement
from memory_pipeline.defs.reflections import reflection_assets, reflection_checks
from memory_pipeline.defs.schedules import schedules
from memory_pipeline.defs.sensors import sensors
from memory_pipeline.defs.sessions import session_assets, session_checks
from memory_pipeline.settings import Settings

SETTINGS = Settings(
    workspace=Path(tempfile.gettempdir()) / "nobody",
    timezone="UTC",
    start_date=date(2025, 1, 1),
    default_session_dirs=False,
)
PLACEMENT = Placement(SETTINGS)
defs = build_definitions(PLACEMENT)
read_sessions = session_assets(PLACEMENT)
(every_message_in_one_window,) = session_checks(PLACEMENT)
reflect = reflection_assets(PLACEMENT)
REFLECTION_CHECKS = reflection_checks(PLACEMENT)
ALL_SCHEDULES = schedules(PLACEMENT)
_BY_NAME = {schedule.name: schedule for schedule in ALL_SCHEDULES}
reflect_at_six, friction_at_seven, archive_at_eight = (
    _BY_NAME[name] for name in ("reflect_at_six", "friction_at_seven", "archive_at_eight")
)
session_sensor, reflect_early, review_sensor, todoist_sensor, tell_failures = sensors(PLACEMENT)
