"""The asset `friction_clusters`, and its check."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import dagster as dg
import polars as pl

from memory_pipeline.actions.outcomes import OUTCOMES, outcomes, repeated_failures
from memory_pipeline.days import day_of, lookback
from memory_pipeline.defs.check_results import check_by_day
from memory_pipeline.defs.orchestration import (
    LOOKS_BACK,
    MODEL_RETRY,
    markdown_table,
    run_stage,
    stage_asset,
    table_spec,
)
from memory_pipeline.defs.partitions import lookback_dep
from memory_pipeline.defs.placement import Placement
from memory_pipeline.friction.active import Pattern, active_patterns, judge_evidence, points_in, why_none
from memory_pipeline.friction.observed import shown_lines
from memory_pipeline.friction.stage import INPUTS, VERSION, FrictionStage
from memory_pipeline.lake.rows import FrictionRow, typed_rows
from memory_pipeline.proposals.shown_to_agents import approved_rules, refresh_agents
from memory_pipeline.scope import describe_projects
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

MAX_TITLE = 120
"""Maximum characters of a title in the table."""


def friction_assets(placement: Placement) -> dg.AssetsDefinition:
    """The asset `friction_clusters`."""
    spec = table_spec(
        placement,
        "friction_clusters",
        deps=[lookback_dep(table, placement) for table in INPUTS],
        version=VERSION,
        description="Problems that recur over sessions, of seven kinds: corrections, failures, misused tools, "
        "environment drift, missing skills, stale lines and broken rules, each with all its occurrences. Severity is "
        "the number of sessions times the minutes that one occurrence costs. A day has the patterns that occurred on "
        "it and those that ended.",
    )

    @stage_asset(placement, "find_friction", LOOKS_BACK, [spec], retry_policy=MODEL_RETRY)
    def find_friction(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        opened = placement.open(context)
        yield from run_stage(context, opened, FrictionStage(opened), lambda _, day: describe(opened, day))
        for problem in refresh_agents(opened.settings):
            context.log.warning(problem)

    return find_friction


def describe(workspace: Workspace, day: date) -> Mapping[str, Any]:
    """The patterns that are active on the day, as numbers for plots and as a table."""
    lake, days = workspace.lake, workspace.settings.lookback_days
    patterns = active_patterns(lake, day, days)
    rows = typed_rows(lake.read("friction_clusters", [day]), FrictionRow)
    metadata: dict[str, Any] = {
        "points": points_in(lake, lookback(day, days)),
        "active": len(patterns),
        "new": sum(p.row["pattern_id"].startswith(f"f-{day:%Y%m%d}-") for p in patterns),
        "ended": sum(row["ended_on"] is not None for row in rows),
        "occurrences": sum(p.row["occurrences"] for p in patterns),
        "minutes_lost": float(sum(p.row["minutes"] or 0.0 for p in patterns)),
        "worst_severity": float(max((p.row["severity"] for p in patterns), default=0.0)),
        "table": _table(patterns, day) if patterns else why_none(workspace, day),
    }
    return metadata | _hints(workspace, day)


def _hints(workspace: Workspace, day: date) -> dict[str, int]:
    """The hints that agents were shown at tool calls on the day, by what became of them, the calls that rules held or
    would have held, and known failures that occurred again; empty before the first hint."""
    settings, lake = workspace.settings, workspace.lake
    shown = [(day_of(line.at, settings.zone), line) for line in shown_lines(settings)]
    if not shown or day < min(of for of, _ in shown):
        return {}
    found = outcomes(settings, lake, approved_rules(settings, lake), day)
    times, again = Counter(seen.outcome for seen in found), repeated_failures(settings, lake, day)
    return {f"hints_{outcome}": times[outcome] for outcome in OUTCOMES} | {
        "hints_shown": len(found),
        "rule_violations": sum(of == day and line.shown_as != "hint" for of, line in shown),
        "failures_repeated_with_hint": again["with"],
        "failures_repeated_without_hint": again["without"],
    }


def _table(patterns: Sequence[Pattern], day: date) -> dg.MarkdownMetadataValue:
    return markdown_table(
        pl.DataFrame(
            {
                "pattern": p.row["pattern_id"],
                "kind": p.kind,
                "title": clip(p.row["title"], MAX_TITLE),
                "project": describe_projects(p.row["projects"]),
                "times": p.row["occurrences"],
                "sessions": p.row["sessions"],
                "minutes": "" if p.row["minutes"] is None else f"{p.row['minutes']:.1f}",
                "severity": round(p.row["severity"], 1),
                "by week": " ".join(f"{n}" for _, n in p.weeks(day)),
                "since": p.first_day,
                "last": p.last_day,
                "target": p.row["target_file"],
            }
            for p in patterns
        )
    )


def friction_checks(placement: Placement) -> list[dg.AssetChecksDefinition]:
    warn = dg.AssetCheckSeverity.WARN
    return [check_by_day(placement, "friction_clusters", "evidence_is_stored", judge_evidence, warn)]
