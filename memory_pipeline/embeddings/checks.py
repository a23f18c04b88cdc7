"""The check on the index: it holds what the table says, no more and no less."""

from datetime import date

import dagster as dg

from memory_pipeline.embeddings.index import IndexUnavailableError
from memory_pipeline.embeddings.opening import open_index
from memory_pipeline.embeddings.stage import EmbeddingsStage
from memory_pipeline.orchestration import WorkspaceResource, daily_partitions, days_of, report_by_day
from memory_pipeline.settings import Settings
from memory_pipeline.text.encoder import EncoderUnavailableError, encoder_of
from memory_pipeline.verdict import Verdict

PARITY = "points_equal_rows"


def embedding_checks(settings: Settings) -> list[dg.AssetChecksDefinition]:
    @dg.asset_check(asset="embeddings", name=PARITY, partitions_def=daily_partitions(settings))
    def points_equal_rows(context: dg.AssetCheckExecutionContext, workspace: WorkspaceResource) -> dg.AssetCheckResult:
        """Every observation of the day has its row and its point in the index, and no point is left over.

        Fails when the embedding model is missing, and when the index was deleted, set aside as damaged or put back from
        another copy than the tables.
        """
        opened = workspace.open()
        points: dict[date, set[str]] = {}
        unavailable: Exception | None = None
        try:
            with open_index(opened.settings, encoder_of(opened.settings.embedding_model)) as index:
                points = {day: index.ids(day, EmbeddingsStage.records) for day in days_of(context)}
        except (EncoderUnavailableError, IndexUnavailableError) as error:
            unavailable = error
            context.log.warning(f"Nobody can say what the index holds: {error}")

        def judge(day: date) -> Verdict:
            if unavailable:
                return Verdict(False, offenders=[f"Nobody can say what the index holds: {unavailable}"])
            rows = set(opened.lake.read("embeddings", [day])["point_id"])
            return judge_parity(opened.lake.read("observations", [day]).height, rows, points.get(day, set()))

        return report_by_day(context, "embeddings", PARITY, judge, dg.AssetCheckSeverity.WARN)

    return [points_equal_rows]


def judge_parity(observations: int, rows: set[str], points: set[str]) -> Verdict:
    offenders = [f"point {p} is in the table and not in the index" for p in sorted(rows - points)]
    offenders += [f"point {p} is in the index and not in the table" for p in sorted(points - rows)]
    if observations != len(rows):
        offenders.insert(0, f"{observations} observations have {len(rows)} vectors")
    return Verdict(not offenders, {"rows": len(rows), "points": len(points)}, offenders)
