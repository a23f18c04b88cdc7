"""Results of checks, from Dagster's history."""

from __future__ import annotations

from datetime import date

import dagster as dg

from memory_pipeline.markdown.blocks import unescaped
from memory_pipeline.quality.results import Result

MAX_RESULTS = 20_000
"""Maximum results read for one check, newest first."""
NOTHING_SAID = "nothing_said"
"""Metadata of results that version 0.2 stored for days without a session; nothing was checked."""


def checks_of(definitions: dg.Definitions) -> dict[str, str]:
    """The first sentence of each check's description by its name, in the order of the assets."""
    graph = definitions.resolve_asset_graph()
    order = list(graph.toposorted_asset_keys)
    keys = sorted(graph.asset_check_keys, key=lambda key: order.index(key.asset_key))
    texts = {key: (graph.get_check_spec(key).description or "").strip().split("\n\n")[0] for key in keys}
    return {f"{key.asset_key.path[-1]}/{key.name}": " ".join(text.split()) for key, text in texts.items()}


def results_of(instance: dg.DagsterInstance, definitions: dg.Definitions) -> list[Result]:
    """The latest result of each check and day with a session, without the totals of runs over a range."""
    found, graph = [], definitions.resolve_asset_graph()
    for key in graph.asset_check_keys:
        partitioned = graph.get(key).partitions_def is not None
        seen: set[str | None] = set()
        for record in instance.event_log_storage.get_asset_check_execution_history(key, MAX_RESULTS):
            evaluation = record.evaluation if record.status.value in ("SUCCEEDED", "FAILED") else None
            partition = record.partition
            if evaluation is None or partition in seen or (partition is None) == partitioned:
                continue
            seen.add(partition)
            if NOTHING_SAID in evaluation.metadata:
                continue
            found.append(_result(key, partition, evaluation))
    return sorted(found, key=lambda r: (r.day or date.min, r.name))


def _result(key: dg.AssetCheckKey, partition: str | None, evaluation: dg.AssetCheckEvaluation) -> Result:
    numbers = {}
    offenders: list[str] = []
    for name, value in evaluation.metadata.items():
        raw = value.value
        if isinstance(raw, (int, float)) and not isinstance(raw, bool):
            numbers[name] = float(raw)
        elif isinstance(value, dg.MarkdownMetadataValue):
            offenders += [unescaped(line[2:]) for line in value.value.splitlines() if line.startswith("- ")]
    return Result(
        key.asset_key.path[-1],
        key.name,
        date.fromisoformat(partition) if partition else None,
        evaluation.passed,
        evaluation.severity is dg.AssetCheckSeverity.ERROR,
        evaluation.description or "",
        numbers,
        tuple(offenders),
    )
