"""The assets `embeddings`, `summary_embeddings` and `message_embeddings`, and their checks that index and tables
match."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import dagster as dg

from memory_pipeline.defs.check_results import check_by_day
from memory_pipeline.defs.orchestration import LOOKS_BACK, MODEL_RETRY, OWN_DAY, run_stage, stage_asset, table_spec
from memory_pipeline.defs.placement import Placement
from memory_pipeline.embeddings.index import MESSAGES, IndexUnavailableError
from memory_pipeline.embeddings.messages import MessageEmbeddingsStage
from memory_pipeline.embeddings.opening import open_index
from memory_pipeline.embeddings.stage import (
    VERSION,
    EmbeddingsStage,
    IndexStage,
    SummaryEmbeddingsStage,
    settle_collections,
    switch_when_complete,
)
from memory_pipeline.stages import Stage, is_incomplete
from memory_pipeline.text.encoder import EncoderUnavailableError
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace

LAST = {"dagster/priority": "-10"}
"""Tags of a step that only recall needs: observing, reflecting and proposing come first."""


@dataclass(frozen=True)
class _Embedding:
    """An asset of vectors. Those that only recall reads are built newest day first, and after other steps."""

    op: str
    deps: Sequence[str]
    description: str
    stage: Callable[[Workspace], IndexStage]
    is_for_recall: bool = True


EMBEDDINGS: Mapping[str, _Embedding] = {
    "embeddings": _Embedding(
        "embed",
        ["observations"],
        "The vectors themselves are in the index (index/, or the server of QDRANT_URL), which can be rebuilt from this "
        "table's sources at any time. Without an embedding model there are no rows, `mode` says `lexical_only`, and "
        "later stages compare by words.",
        EmbeddingsStage.from_workspace,
        is_for_recall=False,
    ),
    "summary_embeddings": _Embedding(
        "embed_summaries",
        ["segments", "reflections", "sessions"],
        "Segments and reflections, indexed beside the observations for `memory recall`.",
        SummaryEmbeddingsStage.from_workspace,
    ),
    "message_embeddings": _Embedding(
        "embed_messages",
        ["sessions", "messages"],
        "Passages of the messages of users and models, and every session as a whole: the text that `memory recall` and "
        "`memory search` search. Words are indexed even without a model.",
        MessageEmbeddingsStage.from_workspace,
    ),
}


def embedding_assets(placement: Placement) -> list[dg.AssetsDefinition]:
    """The assets `embeddings`, `summary_embeddings` and `message_embeddings`."""
    return [_asset(placement, table, embedding) for table, embedding in EMBEDDINGS.items()]


def _asset(placement: Placement, table: str, embedding: _Embedding) -> dg.AssetsDefinition:
    spec = table_spec(placement, table, deps=embedding.deps, version=VERSION, description=embedding.description)
    policy = LOOKS_BACK if "reflections" in embedding.deps else OWN_DAY
    tags = LAST if embedding.is_for_recall else None

    @stage_asset(placement, embedding.op, policy, [spec], retry_policy=MODEL_RETRY, op_tags=tags)
    def embed(context: dg.AssetExecutionContext) -> Iterator[dg.MaterializeResult[Any]]:
        opened = placement.open(context)
        stage = embedding.stage(opened)
        newest_first = embedding.is_for_recall
        yield from run_stage(
            context, opened, stage, lambda _, day: describe(opened, stage, day), newest_first=newest_first
        )
        if stage.collection == MESSAGES:
            switch_when_complete(opened)
            settle_collections(opened)

    return embed


def describe(workspace: Workspace, stage: Stage, day: date) -> dict[str, str]:
    """The embedding model and the mode of the day; a day without a model waits for one."""
    mode = "lexical_only" if is_incomplete(stage, workspace.lake, day) else "vectors"
    return {"model": workspace.settings.embedding_model, "mode": mode}


def embedding_checks(placement: Placement) -> list[dg.AssetChecksDefinition]:
    """The check `index_matches_tables` of each asset."""
    return [
        check_by_day(placement, table, "index_matches_tables", _judge_of(embedding.stage), dg.AssetCheckSeverity.WARN)
        for table, embedding in EMBEDDINGS.items()
    ]


def _judge_of(stage_of: Callable[[Workspace], IndexStage]) -> Callable[[Workspace, date], Verdict]:
    def judge(workspace: Workspace, day: date) -> Verdict:
        """Every text of the day that is embedded has its row and its point in the index, and no point is left over.

        Fails when the embedding model is missing, or the index was deleted, quarantined as damaged, or restored from
        another copy than the tables.
        """
        stage = stage_of(workspace)
        try:
            with open_index(workspace.settings, stage.encoder.dimension, stage.collection) as index:
                points = index.ids(day, stage.records)
        except (EncoderUnavailableError, IndexUnavailableError) as error:
            return Verdict(False, offenders=[f"the contents of the index are unknown: {error}"], judged="The vectors")
        rows = set(workspace.lake.read(stage.tables[0], [day])["point_id"])
        return judge_parity(len(stage.points(day)), rows, points)

    return judge


def judge_parity(texts: int, rows: set[str], points: set[str]) -> Verdict:
    offenders = [f"point {p} is in the table and not in the index" for p in sorted(rows - points)]
    offenders += [f"point {p} is in the index and not in the table" for p in sorted(points - rows)]
    if texts != len(rows):
        offenders.insert(0, f"{texts} texts have {len(rows)} vectors")
    judged = f"{texts} texts, {len(rows)} rows and {len(points)} points of the index"
    return Verdict(not offenders, {"rows": len(rows), "points": len(points)}, offenders, judged)
