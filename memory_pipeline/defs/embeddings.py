"""The assets `embeddings`, `summary_embeddings` and `message_embeddings`, and their checks: the index holds what the
tables say, no more and no less."""

from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import dagster as dg

from memory_pipeline.defs.check_results import Judged, days_to_judge, report_by_day
from memory_pipeline.defs.orchestration import LOOKS_BACK, MODEL_RETRY, OWN_DAY, run_stage, table_spec
from memory_pipeline.defs.partitions import daily_partitions
from memory_pipeline.defs.resources import WorkspaceResource
from memory_pipeline.embeddings import messages
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES, IndexUnavailableError
from memory_pipeline.embeddings.kept_open import indexes_kept_open
from memory_pipeline.embeddings.messages import MessageEmbeddingsStage
from memory_pipeline.embeddings.opening import open_index
from memory_pipeline.embeddings.stage import (
    VERSION,
    EmbeddingsStage,
    LineStage,
    SummaryEmbeddingsStage,
    settle_collections,
    switch_when_complete,
)
from memory_pipeline.settings import Settings
from memory_pipeline.stages import Stage, is_incomplete
from memory_pipeline.text.encoder import EncoderUnavailableError, encoder_of
from memory_pipeline.verdict import Verdict
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


PARITY = "points_equal_rows"


def embedding_checks(settings: Settings) -> list[dg.AssetChecksDefinition]:
    partitions = daily_partitions(settings)

    @dg.asset_check(asset="embeddings", name=PARITY, partitions_def=partitions)
    def points_equal_rows(context: dg.AssetCheckExecutionContext, workspace: WorkspaceResource) -> Judged:
        """Every observation of the day has its row and its point in the index, and no point is left over.

        Fails when the embedding model is missing, and when the index was deleted, set aside as damaged or put back from
        another copy than the tables.
        """
        opened = workspace.open()
        lines = EmbeddingsStage.from_workspace(opened)
        yield from _parity(context, opened, "observations", lines, COLLECTION, lambda day: len(lines.items(day)))

    @dg.asset_check(asset="summary_embeddings", name=PARITY, partitions_def=partitions)
    def summary_points_equal_rows(context: dg.AssetCheckExecutionContext, workspace: WorkspaceResource) -> Judged:
        """Every segment with a title or narrative and every reflection of the day has its row and its point in the
        index, and no point is left over.

        Fails when the embedding model is missing, and when the index was deleted, set aside as damaged or put back from
        another copy than the tables.
        """
        opened = workspace.open()
        lines = SummaryEmbeddingsStage.from_workspace(opened)
        yield from _parity(
            context, opened, "segments and reflections", lines, COLLECTION, lambda day: len(lines.items(day))
        )

    @dg.asset_check(asset="message_embeddings", name=PARITY, partitions_def=partitions)
    def message_points_equal_rows(context: dg.AssetCheckExecutionContext, workspace: WorkspaceResource) -> Judged:
        """Every passage that people or models said on the day, and every session with one, has its row and its point in
        the index, and no point is left over.

        Fails when the embedding model is missing, and when the index was deleted, set aside as damaged or put back from
        another copy than the tables.
        """
        opened = workspace.open()
        stage = MessageEmbeddingsStage.from_workspace(opened)
        yield from _parity(
            context, opened, "passages and sessions", stage, MESSAGES, lambda day: len(stage.points(day))
        )

    return [points_equal_rows, summary_points_equal_rows, message_points_equal_rows]


def _parity(
    context: dg.AssetCheckExecutionContext,
    opened: Workspace,
    what: str,
    stage: LineStage | MessageEmbeddingsStage,
    collection: str,
    number: Callable[[date], int],
) -> Judged:
    """Compare the stage's rows with its points, and with how many lines of the day should have one."""
    (table,) = stage.tables
    days = days_to_judge(context, opened.lake, table, daily_partitions(opened.settings))
    points: dict[date, set[str]] = {}
    unavailable: Exception | None = None
    try:
        with open_index(opened.settings, encoder_of(opened.settings.embedding_model), collection) as index:
            points = {day: index.ids(day, stage.records) for day in days}
    except (EncoderUnavailableError, IndexUnavailableError) as error:
        unavailable = error
        context.log.warning(f"Nobody can say what the index holds: {error}")

    def judge(day: date) -> Verdict:
        if unavailable:
            return Verdict(
                False, offenders=[f"nobody can say what the index holds: {unavailable}"], judged="The vectors"
            )
        rows = set(opened.lake.read(table, [day])["point_id"])
        return judge_parity(number(day), rows, points.get(day, set()), what)

    yield from report_by_day(context, table, PARITY, judge, dg.AssetCheckSeverity.WARN, days)


def judge_parity(lines: int, rows: set[str], points: set[str], what: str = "observations") -> Verdict:
    offenders = [f"point {p} is in the table and not in the index" for p in sorted(rows - points)]
    offenders += [f"point {p} is in the index and not in the table" for p in sorted(points - rows)]
    if lines != len(rows):
        offenders.insert(0, f"{lines} {what} have {len(rows)} vectors")
    judged = f"{lines} {what}, {len(rows)} rows and {len(points)} points of the index"
    return Verdict(not offenders, {"rows": len(rows), "points": len(points)}, offenders, judged)
