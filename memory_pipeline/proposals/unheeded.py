"""Approved lines that agents were told and did not heed, offered like outdated ones: to be struck, or kept.

A line that nobody was told is no reason: agents that obey it, or read it in MEMORY.md, leave no trace.
"""

from __future__ import annotations

from collections import Counter
from datetime import date

import polars as pl

from memory_pipeline.actions.outcomes import MIN_UNHEEDED, outcomes, unheeded
from memory_pipeline.actions.rules import RuleError
from memory_pipeline.friction.attempts import Session
from memory_pipeline.friction.events import event_at
from memory_pipeline.friction.patterns import MEMORY_FILE, STALE_MEMORY, Pattern
from memory_pipeline.friction.shown import shown_lines
from memory_pipeline.friction.stage import row_of
from memory_pipeline.lake.rows import FrictionRow
from memory_pipeline.proposals.shown_to_agents import approved_rules
from memory_pipeline.workspace.workspace import Workspace

FIRST_UNHEEDED = 901
"""The first number of the ids of such lines: a day has at most ten new patterns of friction."""


def unheeded_lines(workspace: Workspace, fixes: pl.DataFrame, day: date) -> list[FrictionRow]:
    """The lines that were ignored or contradicted three times or more, as patterns of the day, without those that
    `friction_fixes` already offered to strike."""
    settings, lake = workspace.settings, workspace.lake
    times = Counter(line.line_id for line in shown_lines(settings) if line.shown_as in ("hint", "ask"))
    if not any(number >= MIN_UNHEEDED for number in times.values()):
        return []
    try:
        rules = {rule.rule_id: rule for rule in approved_rules(settings, lake) if rule.check}
    except RuleError:  # `memory agents rules` says why
        return []
    asked = set(fixes["replaces"])
    number = FIRST_UNHEEDED + fixes["proposal_id"].str.starts_with(f"f-{day:%Y%m%d}-9").sum()
    found = list[FrictionRow]()
    for line_id, calls in unheeded(outcomes(settings, lake, rules.values())).items():
        rule = rules.get(line_id)
        if rule is None or rule.text in asked:
            continue
        title = (
            f"Agents were told this {len(calls)} times in vain; to keep and enforce it, "
            f"`memory agents rules set {line_id} deny`"
        )
        members = sorted(
            (event_at(Session((), project=rule.project), call) for call in calls), key=lambda event: event.at
        )
        pattern = Pattern(STALE_MEMORY, title, MEMORY_FILE, tuple(members), replaces=rule.text)
        found.append(row_of(day, pattern, f"f-{day:%Y%m%d}-{number + len(found)}", settings.owner))
    return found
