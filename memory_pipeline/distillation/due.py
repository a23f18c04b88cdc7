"""Which days are to be distilled: old enough by now, or grown since."""

from __future__ import annotations

from datetime import date

from memory_pipeline.distillation.periods import last_days_touched_by
from memory_pipeline.distillation.stage import DistillationStage
from memory_pipeline.lake import fingerprint_of
from memory_pipeline.stage import is_current


def due_days(stage: DistillationStage) -> list[date]:
    """The days with observations, and the ends of the weeks and months that have these days in them, as far as they
    are old enough and not up to date; oldest first."""
    observed = (day for day in stage.lake.days("observations") if day <= stage.newest)
    days = sorted({last for day in observed for last in last_days_touched_by(day) if last <= stage.newest})
    return [day for day in days if not is_current(stage, stage.lake, day)]


def state_of(stage: DistillationStage, days: list[date]) -> str:
    """Of all that a run of these days would be made from: the same run is not asked for twice."""
    return fingerprint_of(*(f"{day} {stage.fingerprint(day)}" for day in days))
