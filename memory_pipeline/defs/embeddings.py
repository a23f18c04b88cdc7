"""The assets `embeddings`, `summary_embeddings` and `message_embeddings`."""

from collections.abc import Iterator
from datetime import date
from typing import Any

import dagster as dg

from memory_pipeline.defs.orchestration import (
    LOOKS_BACK,
    MODEL_RETRY,
    OWN_DAY,
    WorkspaceResource,
    daily_partitions,
    run_stage,
    table_spec,
)
from memory_pipeline.embeddings import messages
from memory_pipeline.embeddings.kept_open import indexes_kept_open
from memory_pipeline.embeddings.stage import (
    VERSION,
    EmbeddingsStage,
    SummaryEmbeddingsStage,
    settle_collections,
    switch_when_complete,
)
from memory_pipeline.settings import Settings
from memory_pipeline.stages import Stage, is_incomplete
from memory_pipeline.workspace.workspace import Workspace

LEXICAL_ONLY = "lexical_only"
LAST = {"dagster/priority": "-10"}
"""Of a step that recall alone waits for: observing, reflecting and proposing come first."""


def embedding_assets(settings: Settings) -> list[dg.AssetsDefinition]:
    """`embeddings`, `summary_embeddings`, `message_embeddings`."""

    @dg.multi_asset(
        name="embed",
        specs=[
            table_spec(
                "embeddings",
                deps=["observations"],
                version=VERSION,
                description="The vectors themselves lie in the index (index/, or the server of QDRANT_URL), which "
                "can be rebuilt from this table's sources at any time. Without an embedding model there "
                "are no rows, `mode` says `lexical_only`, and later stages compare by words.",
            )
        ],
        partitions_def=daily_partitions(settings),
        **OWN_DAY,
        retry_policy=MODEL_RETRY,
    )
    def embed(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Iterator[dg.MaterializeResult[Any]]:
        opened = workspace.open()
        stage = EmbeddingsStage.from_workspace(opened)
        with indexes_kept_open():
            made = run_stage(context, opened, stage, lambda _, day: describe(opened, stage, day))
        yield from made

    @dg.multi_asset(
        name="embed_summaries",
        specs=[
            table_spec(
                "summary_embeddings",
                deps=["segments", "reflections", "sessions"],
                version=VERSION,
                description="Segments and reflections beside the observations in the index: for `memory recall`.",
            )
        ],
        partitions_def=daily_partitions(settings),
        **LOOKS_BACK,
        retry_policy=MODEL_RETRY,
        op_tags=LAST,
    )
    def embed_summaries(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        opened = workspace.open()
        stage = SummaryEmbeddingsStage.from_workspace(opened)
        with indexes_kept_open():
            made = run_stage(context, opened, stage, lambda _, day: describe(opened, stage, day), newest_first=True)
        yield from made

    @dg.multi_asset(
        name="embed_messages",
        specs=[
            table_spec(
                "message_embeddings",
                deps=["sessions", "messages"],
                version=messages.VERSION,
                description="What people and models said, in passages, and every session as a whole: what `memory "
                "recall` and `memory search` look through. Words are indexed without a model.",
            )
        ],
        partitions_def=daily_partitions(settings),
        **OWN_DAY,
        retry_policy=MODEL_RETRY,
        op_tags=LAST,
    )
    def embed_messages(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource
    ) -> Iterator[dg.MaterializeResult[Any]]:
        opened = workspace.open()
        stage = messages.MessageEmbeddingsStage.from_workspace(opened)
        with indexes_kept_open():
            made = run_stage(context, opened, stage, lambda _, day: describe(opened, stage, day), newest_first=True)
        yield from made
        switch_when_complete(opened)
        settle_collections(opened)

    return [embed, embed_summaries, embed_messages]


def describe(workspace: Workspace, stage: Stage, day: date) -> dict[str, str]:
    """A day without a model waits for one."""
    mode = LEXICAL_ONLY if is_incomplete(stage, workspace.lake, day) else "vectors"
    return {"model": workspace.settings.embedding_model, "mode": mode}
