"""Which days are to be distilled: old enough by now, or grown since."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

from memory_pipeline.distillation.periods import last_days_touched_by
from memory_pipeline.distillation.stage import DistillationStage
from memory_pipeline.lake import fingerprint_of
from memory_pipeline.stage import is_current


def due_days(stage: DistillationStage, among: Iterable[date] | None = None) -> list[date]:
    """The days with observations (of those `among`, if it is said), and the ends of the weeks and months that have
    these days in them, as far as they are old enough and not up to date; oldest first."""
    observed = set(stage.lake.days("observations"))
    wanted = observed if among is None else observed & set(among)
    return [day for day in ends_of(wanted, stage.newest) if not is_current(stage, stage.lake, day)]


def ends_of(days: Iterable[date], newest: date) -> list[date]:
    """The last days of the periods up to `newest` that have any of these days in them, oldest first."""
    old = (day for day in days if day <= newest)
    return sorted({last for day in old for last in last_days_touched_by(day) if last <= newest})


def state_of(stage: DistillationStage, days: list[date]) -> str:
    """Of all that a run of these days would be made from: the same run is not asked for twice."""
    return fingerprint_of(*(f"{day} {stage.fingerprint(day)}" for day in days))
