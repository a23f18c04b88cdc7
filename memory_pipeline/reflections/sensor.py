"""Watches how much was observed today: a long day is reflected on before it has ended, once."""

from datetime import date

import dagster as dg

from memory_pipeline.days import today
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.own_sessions import is_inside
from memory_pipeline.orchestration import LakeResource
from memory_pipeline.reflections.schedule import REFLECT_JOB


@dg.sensor(
    job_name=REFLECT_JOB,
    minimum_interval_seconds=300,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Today's observations have passed MEMORY_REFLECT_EARLY_TOKENS: reflect on today now, once.",
)
def reflect_early(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.RunRequest | dg.SkipReason:
    if is_inside():
        return dg.SkipReason("This process was started by a model command of the pipeline itself.")
    settings = lake.settings()
    return early_request(lake.open(), today(settings.zone), settings.reflect_early_tokens)


def early_request(lake: Lake, day: date, threshold: int) -> dg.RunRequest | dg.SkipReason:
    """The run for a day with so many tokens of observations; its key is the day's, so it is asked for once."""
    tokens = int(lake.read("observations", [day], ["tokens"])["tokens"].sum())
    if tokens < threshold:
        return dg.SkipReason(f"The observations of {day} have {tokens:,} tokens, fewer than {threshold:,}.")
    return dg.RunRequest(run_key=f"reflect_early:{day}", partition_key=f"{day}")
