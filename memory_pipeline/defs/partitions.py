"""The partitions of tables: local calendar days, weeks and months; and the tags of a run over a range."""

from collections.abc import Iterable
from datetime import date

import dagster as dg

from memory_pipeline.defs.placement import Placement
from memory_pipeline.distillation.periods import DAY, LEVEL_OF, MONTH, WEEK, Period
from memory_pipeline.settings import Settings

RANGE_START_TAG, RANGE_END_TAG = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
"""Dagster's tags of a run over a range of partitions."""
DAYS_TAG = "memory/days"
"""The tag with the days of a run over a range, which the list of runs shows and filters by."""


def range_tags(first: date, last: date) -> dict[str, str]:
    """The tags of a run over these partitions; weeks and months are named by their first day."""
    days = f"{first}" if first == last else f"{first}...{last}"
    return {RANGE_START_TAG: f"{first}", RANGE_END_TAG: f"{last}", DAYS_TAG: days}


def partitions_of(settings: Settings, table: str) -> dg.TimeWindowPartitionsDefinition:
    """The partitions of a table, from the one that contains the workspace's first day: local days up to today, or for a
    distillation the days that are old enough, or the weeks from Monday to Sunday or months that have ended."""
    level, zone = LEVEL_OF.get(table, DAY), settings.timezone
    first = f"{Period.containing(settings.start_date, level).key}"
    if level == WEEK:
        return dg.WeeklyPartitionsDefinition(start_date=first, timezone=zone, day_offset=1)
    if level == MONTH:
        return dg.MonthlyPartitionsDefinition(start_date=first, timezone=zone)
    youngest = settings.distil_after_days if table in LEVEL_OF else 0
    return dg.DailyPartitionsDefinition(start_date=first, timezone=zone, end_offset=1 - youngest)


def days_of(table: str, keys: Iterable[str]) -> dict[date, str]:
    """The `day` of the rows of each of these partitions, which is the last day of a week or month, oldest first."""
    level = LEVEL_OF.get(table, DAY)
    return dict(sorted((Period.from_key(level, date.fromisoformat(key)).last, key) for key in keys))


def lookback_dep(asset: str, placement: Placement) -> dg.AssetDep:
    """A dependency on the days of the lookback; days before the first partition are no error."""
    mapping = dg.TimeWindowPartitionMapping(
        start_offset=1 - placement.settings.lookback_days, allow_nonexistent_upstream_partitions=True
    )
    return dg.AssetDep(placement.key(asset), partition_mapping=mapping)
