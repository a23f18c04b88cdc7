"""The checks on the index: it holds what the tables say, no more and no less."""

from collections.abc import Callable
from datetime import date

import dagster as dg

from memory_pipeline.defs.check_results import Judged, days_to_judge, report_by_day
from memory_pipeline.defs.orchestration import WorkspaceResource, daily_partitions
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES, IndexUnavailableError
from memory_pipeline.embeddings.messages import MessageEmbeddingsStage
from memory_pipeline.embeddings.opening import open_index
from memory_pipeline.embeddings.stage import EmbeddingsStage, LineStage, SummaryEmbeddingsStage
from memory_pipeline.settings import Settings
from memory_pipeline.text.encoder import EncoderUnavailableError, encoder_of
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace

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
