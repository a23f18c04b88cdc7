"""The asset `embeddings`."""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from memory_pipeline.embeddings.stage import VERSION, EmbeddingsStage
from memory_pipeline.orchestration import (
    MODEL_RETRY,
    ONE_RUN,
    PARTITIONS,
    LakeResource,
    run_stage,
    table_spec,
)

LEXICAL_ONLY = "lexical_only"


@dg.multi_asset(
    name="embed",
    specs=[
        table_spec(
            "embeddings",
            deps=["observations"],
            version=VERSION,
            description="The vectors themselves lie in the index (index/, or the server of QDRANT_URL), which can be "
            "rebuilt from this table's sources at any time. Without an embedding model there are no rows, `mode` says "
            "`lexical_only`, and later stages compare by words.",
        )
    ],
    partitions_def=PARTITIONS,
    backfill_policy=ONE_RUN,
    retry_policy=MODEL_RETRY,
)
def embed(context: dg.AssetExecutionContext, lake: LakeResource) -> Iterator[dg.MaterializeResult[Any]]:
    tables, settings = lake.open(), lake.settings()
    stage = EmbeddingsStage.of(settings, tables)
    yield from run_stage(
        context,
        tables,
        stage,
        lambda table, day: {
            "model": settings.embedding_model,
            "mode": LEXICAL_ONLY if stage.unavailable else "vectors",
        },
    )
    if stage.unavailable:
        context.log.warning(f"No vectors, by words only: {stage.unavailable}")
    context.log.info(f"{stage.encoded} texts were encoded")
