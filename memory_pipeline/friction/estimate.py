"""Estimate of the cost of friction: one request for each day with remarks, whose length follows from the words that
users typed in the lookback."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date

import polars as pl

from memory_pipeline.days import lookback
from memory_pipeline.friction.asking import GROUPS
from memory_pipeline.friction.corrections import MAX_REMARKS, MAX_RULES, MAX_TOKENS
from memory_pipeline.friction.messages import MAX_MESSAGE
from memory_pipeline.friction.stage import FrictionStage
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
ANSWERED = 60
"""Tokens of an answer."""


def estimate_friction(
    observations: ObservationsStage, friction: FrictionStage, days: Iterable[date]
) -> dict[date, Estimate]:
    """The estimate for each of these days, whose messages must be stored; empty without a model with enough context."""
    settings, lake = friction.settings, friction.lake
    config = reflector_model(settings)
    if config is None or settings.effective_context <= SMALL_CONTEXT:
        return {}
    days = sorted(days)
    coming = {day for day in days if not is_current(observations, lake, day)}
    system = sum(map(estimate, map(text_of, (GROUPS.system, GROUPS.turn, GROUPS.format))))
    found = {}
    for day in days:
        before = lookback(day, settings.lookback_days)
        said = {d: _typed_tokens(friction, d) for d in before}
        if not said[day] or (coming.isdisjoint(before) and is_current(friction, lake, day)):
            found[day] = Estimate()
            continue
        remarks = min(MAX_REMARKS, sum(said.values()) // OF_REMARK)
        lines = min(MAX_RULES, len(friction.rules.before(day)))
        asked = system + remarks * (OF_REMARK + AROUND_REMARK) + lines * OF_LINE
        expected, most = cost_of(config, asked, ANSWERED), cost_of(config, asked, MAX_TOKENS)
        found[day] = Estimate(0, 1, 0, asked, ANSWERED, expected, most)
    return found


def _typed_tokens(friction: FrictionStage, day: date) -> int:
    """The tokens that users typed."""
    messages = friction.lake.read("messages", [day], ["role", "text", "voided"])
    typed = (pl.col("role") == "user") & (pl.col("text").str.len_chars() <= MAX_MESSAGE)
    return sum(map(estimate, messages.filter(typed & ~pl.col("voided").fill_null(False))["text"]))
