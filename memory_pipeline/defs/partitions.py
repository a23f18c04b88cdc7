"""The partitions of tables: local calendar days, weeks and months; and the tags of a run over a range."""

from datetime import date

import dagster as dg

from memory_pipeline.defs.placement import Placement
from memory_pipeline.settings import Settings

RANGE_START_TAG, RANGE_END_TAG = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
"""Dagster's tags of a run over a range of partitions."""
DAYS_TAG = "memory/days"
"""The tag with the days of a run over a range, which the list of runs shows and filters by."""


def range_tags(first: date, last: date) -> dict[str, str]:
    """The tags of a run over these partitions; weeks and months are named by their first day."""
    days = f"{first}" if first == last else f"{first}...{last}"
    return {RANGE_START_TAG: f"{first}", RANGE_END_TAG: f"{last}", DAYS_TAG: days}


def daily_partitions(settings: Settings, youngest: int = 0) -> dg.DailyPartitionsDefinition:
    """One partition per local day, from the workspace's first day to that of ``youngest`` days ago."""
    return dg.DailyPartitionsDefinition(
        start_date=f"{settings.start_date}", timezone=settings.timezone, end_offset=1 - youngest
    )


def lookback_dep(asset: str, placement: Placement) -> dg.AssetDep:
    """A dependency on the days of the lookback; days before the first partition are no error."""
    mapping = dg.TimeWindowPartitionMapping(
        start_offset=1 - placement.settings.lookback_days, allow_nonexistent_upstream_partitions=True
    )
    return dg.AssetDep(placement.key(asset), partition_mapping=mapping)
