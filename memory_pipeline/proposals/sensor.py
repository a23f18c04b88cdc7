"""Watches REVIEW.md: what a person decides there is done within a minute."""

import hashlib
import time

import dagster as dg

from memory_pipeline.orchestration import MOST_ATTEMPTS, LakeResource

REVIEW_JOB = "review_job"
SETTLED_SECONDS = 3.0
"""Age of a file that no editor is writing any more."""
SAVED_TAG = "memory/review"
review_job = dg.define_asset_job(
    REVIEW_JOB,
    selection=dg.AssetSelection.assets("memory_file"),
    description="Decisions from REVIEW.md into MEMORY.md.",
)


@dg.sensor(
    job_name=REVIEW_JOB,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="REVIEW.md was saved by a person: read the decisions and bring MEMORY.md up to date.",
)
def review_sensor(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    settings = lake.settings()
    path, shown = settings.review_file, settings.review_shown
    if not path.exists():
        return dg.SkipReason("There is no REVIEW.md yet.")
    if time.time() - path.stat().st_mtime < SETTLED_SECONDS:
        return dg.SkipReason("REVIEW.md was saved just now; an editor may still be writing.")
    data = path.read_bytes()
    if shown.exists() and shown.read_bytes() == data:
        return dg.SkipReason("REVIEW.md is as it was written.")
    saved = f"{hashlib.sha256(data).hexdigest()}:{path.stat().st_mtime_ns}"
    filters = dg.RunsFilter(job_name=REVIEW_JOB, tags={SAVED_TAG: saved}, statuses=[dg.DagsterRunStatus.FAILURE])
    failed = context.instance.get_runs_count(filters)
    if failed >= MOST_ATTEMPTS:
        return dg.SkipReason(f"{failed} runs failed for REVIEW.md as it is; see why, then save it again.")
    request = dg.RunRequest(run_key=f"review:{saved}:{failed}", tags={SAVED_TAG: saved})
    return dg.SensorResult(run_requests=[request])
