"""Estimate of the cost of friction: the requests for grouping and for texts.

The search does not run: the number of remarks in the lookback gives the length of a request, and the new patterns of
past days the number of texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.friction.answers import GROUPS
from memory_pipeline.friction.grouping import MAX_LINES, MAX_REMARKS
from memory_pipeline.friction.grouping import MAX_TOKENS as MOST_OF_GROUPS
from memory_pipeline.friction.messages import MAX_MESSAGE
from memory_pipeline.friction.stage import MAX_PER_DAY, FrictionStage
from memory_pipeline.friction.writing import MAX_TOKENS as MOST_OF_TEXT
from memory_pipeline.llm.config import SMALL_CONTEXT, reflector_model
from memory_pipeline.llm.ledger import cost_of
from memory_pipeline.llm.prompts import text_of
from memory_pipeline.observations.estimate import Estimate
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.stages import is_current
from memory_pipeline.text.tokens import estimate

OF_REMARK, AROUND_REMARK, OF_LINE = 18, 16, 28
"""Tokens of a remark, of its context, and of a rule: in 24 synthetic weeks, 5,600 tokens for 240 remarks and 15
rules."""
GROUPS_ANSWERED = 60
ASKED_OF_TEXT, TEXT_ANSWERED = 900, 70
NEW_A_DAY = 1.0
"""New patterns per day, if no day has been searched yet."""


def estimate_friction(
    observations: ObservationsStage, friction: FrictionStage, days: Iterable[date]
) -> dict[date, Estimate]:
    """The estimate for each of these days, whose messages must be stored; empty without a model."""
    settings, lake = friction.settings, friction.lake
    config = reflector_model(settings)
    if config is None:
        return {}
    days = sorted(days)
    coming = {day for day in days if not is_current(observations, lake, day)}
    texts = _new_patterns_per_day(friction)
    groups = settings.effective_context > SMALL_CONTEXT
    system = sum(map(estimate, map(text_of, (GROUPS.system, GROUPS.turn, GROUPS.as_lines))))
    found = {}
    for day in days:
        before = lookback(day, settings.lookback_days)
        said = {d: _typed_tokens(friction, d) for d in before}
        if not said[day] or (coming.isdisjoint(before) and is_current(friction, lake, day)):
            found[day] = Estimate()
            continue
        remarks = min(MAX_REMARKS, sum(said.values()) // OF_REMARK)
        lines = min(MAX_LINES, len(friction.rules.before(day)))
        asked = groups * (system + remarks * (OF_REMARK + AROUND_REMARK) + lines * OF_LINE)
        answered = groups * GROUPS_ANSWERED
        all_asked, all_answered = int(asked + texts * ASKED_OF_TEXT), int(answered + texts * TEXT_ANSWERED)
        most = asked + MAX_PER_DAY * ASKED_OF_TEXT, groups * MOST_OF_GROUPS + MAX_PER_DAY * MOST_OF_TEXT
        found[day] = Estimate(
            *(0, round(groups + texts), 0, all_asked, all_answered),
            *(cost_of(config, all_asked, all_answered), cost_of(config, *most)),
        )
    return found


def _typed_tokens(friction: FrictionStage, day: date) -> int:
    """The tokens that users typed."""
    messages = friction.lake.read("messages", [day], ["role", "text", "voided"])
    typed = (pl.col("role") == "user") & (pl.col("text").str.len_chars() <= MAX_MESSAGE)
    return sum(map(estimate, messages.filter(typed & ~pl.col("voided").fill_null(False))["text"]))


def _new_patterns_per_day(friction: FrictionStage) -> float:
    days = friction.lake.days("friction_clusters")
    if not days:
        return NEW_A_DAY
    rows = friction.lake.read("friction_clusters", list(days), ["day", "pattern_id"])
    return len([i for day, i in rows.iter_rows() if i.startswith(f"f-{day:%Y%m%d}-")]) / len(days)
