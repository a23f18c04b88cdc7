"""What the UI's catalogue shows of each asset beside its rows: who makes it, where its columns come from, by when it
has to be there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

import dagster as dg

from memory_pipeline.settings import Settings

PIPELINE, USER = "team:pipeline", "team:you"
"""Owners: what makes itself, and what a person decides on."""
STAGE = {
    "sessions": "read",
    "messages": "read",
    "windows": "read",
    "segments": "observe",
    "observations": "observe",
    "embeddings": "index",
    "message_embeddings": "index",
    "summary_embeddings": "index",
    "reflections": "reflect",
    "pool_reflections": "reflect",
    "day_distillations": "distil",
    "week_distillations": "distil",
    "month_distillations": "distil",
    "friction_clusters": "friction",
    "proposals": "review",
    "memory_file": "review",
    "quality_report": "report",
}
"""The tag `stage`. Groups would be folded in the graph, where the first thing to see should be the assets."""
ASKS_A_MODEL = {
    "segments": "OBSERVER_MODEL",
    "observations": "OBSERVER_MODEL",
    "reflections": "REFLECTOR_MODEL",
    "pool_reflections": "REFLECTOR_MODEL",
    "embeddings": "EMBEDDING_MODEL",
    "message_embeddings": "EMBEDDING_MODEL",
    "summary_embeddings": "EMBEDDING_MODEL",
}
EVERY_MORNING = {
    *("sessions", "messages", "windows", "segments", "observations", "embeddings", "reflections", "proposals"),
    *("memory_file", "friction_clusters"),
}
"""Made by the schedules of six and seven, also of a day on which nobody said anything."""
DEADLINE, MADE_WITHIN = "0 8 * * *", timedelta(hours=2)
"""Red at eight where the schedules since six have made nothing. What is reported at midnight of a day without a session
is older than that, and does not count."""
COLUMNS_FROM: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "messages": {"session_id": ("sessions", "session_id"), "source_file": ("sessions", "source_file")},
    "windows": {"dedupe_key": ("messages", "dedupe_key"), "session_id": ("messages", "session_id")},
    "segments": {
        "dedupe_key": ("windows", "dedupe_key"),
        "narrative": ("messages", "text"),
        "first_message_id": ("messages", "message_id"),
        "last_message_id": ("messages", "message_id"),
    },
    "observations": {
        "dedupe_key": ("windows", "dedupe_key"),
        "text": ("messages", "text"),
        "evidence": ("messages", "message_id"),
        "observed_at": ("messages", "said_at"),
    },
    "embeddings": {"source_id": ("observations", "observation_id"), "content_hash": ("observations", "text")},
    "message_embeddings": {"source_id": ("messages", "message_id"), "content_hash": ("messages", "text")},
    "summary_embeddings": {"source_id": ("reflections", "reflection_id"), "content_hash": ("reflections", "text")},
    "reflections": {
        "sources": ("observations", "observation_id"),
        "text": ("observations", "text"),
        "input_tokens": ("observations", "tokens"),
    },
    "pool_reflections": {"sources": ("reflections", "reflection_id"), "text": ("reflections", "text")},
    "proposals": {
        "sources": ("reflections", "reflection_id"),
        "text": ("reflections", "text"),
        "evidence": ("observations", "evidence"),
    },
    "friction_clusters": {"evidence": ("messages", "message_id"), "session_ids": ("sessions", "session_id")},
    "day_distillations": {"sources": ("observations", "observation_id"), "text": ("observations", "text")},
    "week_distillations": {"sources": ("day_distillations", "distillation_id"), "text": ("day_distillations", "text")},
    "month_distillations": {
        "sources": ("week_distillations", "distillation_id"),
        "text": ("week_distillations", "text"),
    },
}
"""By asset and column: the asset and column that its values are from."""


def as_shown(assets: Iterable[dg.AssetsDefinition], settings: Settings) -> list[dg.AssetsDefinition]:
    """The assets with what the UI shows of them."""
    fresh = dg.FreshnessPolicy.cron(DEADLINE, MADE_WITHIN, settings.timezone)

    def shown(spec: dg.AssetSpec) -> dg.AssetSpec:
        name = spec.key.to_user_string()
        model = {"model": ASKS_A_MODEL[name]} if name in ASKS_A_MODEL else {}
        told = spec.replace_attributes(
            owners=[USER if name in ("proposals", "memory_file") else PIPELINE],
            tags={**spec.tags, "stage": STAGE[name], **model},
            freshness_policy=fresh if name in EVERY_MORNING else None,
        )
        return told.merge_attributes(metadata=_lineage(name))

    return [asset for asset in dg.map_asset_specs(shown, assets) if isinstance(asset, dg.AssetsDefinition)]


def _lineage(asset: str) -> dict[str, dg.TableColumnLineage]:
    columns = COLUMNS_FROM.get(asset)
    if not columns:
        return {}
    deps = {column: [dg.TableColumnDep(dg.AssetKey(table), of)] for column, (table, of) in columns.items()}
    return {"dagster/column_lineage": dg.TableColumnLineage(deps)}
