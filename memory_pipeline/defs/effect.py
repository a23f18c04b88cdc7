"""The asset `memory_effect`."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from memory_pipeline.defs.orchestration import LOOKS_BACK, markdown_table, other_asset
from memory_pipeline.defs.partitions import days_of, lookback_dep, partitions_of
from memory_pipeline.defs.placement import Placement
from memory_pipeline.effect.cases import DayEffect, effect_on
from memory_pipeline.effect.summary import totals
from memory_pipeline.text.sentences import clip

EFFECT = "memory_effect"
LOOKED_BACK_ON = ("proposals", "friction_clusters")
MAX_QUOTE = 160
"""Maximum characters of a quote in the table."""


def effect_assets(placement: Placement) -> dg.AssetsDefinition:
    """The asset `memory_effect`."""

    @other_asset(
        placement,
        EFFECT,
        deps=["messages", "memory_file", *(lookback_dep(table, placement) for table in LOOKED_BACK_ON)],
        partitions_def=partitions_of(placement.settings, EFFECT),
        kinds={"polars"},
        **LOOKS_BACK,
    )
    def memory_effect(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        """How often users repeated on a day what the memory held the day before, and which errors occurred again.

        Each instruction, correction and failed call of the day is compared with the lines that were approved, offered
        or only observed before it. The result is metadata, without a table; `memory proof` computes the same over any
        span. It shows what memory could have spared its user, and not what it did.
        """
        opened, days = placement.open(context), days_of(EFFECT, context.partition_keys)
        for effect in effect_on(opened, list(days), in_full=True):
            context.add_asset_metadata(describe(effect), partition_key=days[effect.day])
        return dg.MaterializeResult()

    return memory_effect


def describe(effect: DayEffect) -> Mapping[str, Any]:
    """The counts of the day for plots, and its cases as a table."""
    cases = pl.DataFrame(
        {
            "said": clip(case.need.text, MAX_QUOTE),
            "kind": case.need.kind,
            "state": case.state,
            "line": clip(case.line, MAX_QUOTE),
            "id": case.line_id,
            "since": case.since,
            "shown by": ", ".join(case.shown_by),
        }
        for case in effect.cases
    )
    return {**totals([effect]), "cases": markdown_table(cases) if effect.cases else "Nothing was repeated."}
