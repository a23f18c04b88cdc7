"""A run of the command line is one like any other in the UI: with its job, its days, and what it was started for."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from dagster._core.instance.config import PoolGranularity
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG

from memory_pipeline.cli.running import ranges_of
from memory_pipeline.defs.orchestration import DAYS_POOL, LOOK_BACK_POOL
from memory_pipeline.defs.runs import instance_of, run_job
from memory_pipeline.settings import Settings
from memory_pipeline_tests.loaded import defs
from memory_pipeline_tests.rows import DAY, workspace

LABEL = "__repository__@memory_pipeline.definitions"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return workspace(tmp_path)[0]


@pytest.fixture
def instance(settings: Settings) -> Iterator[Any]:
    with instance_of(settings) as made:
        yield made


def test_a_run_has_the_job_of_the_ui_and_its_days(settings: Settings, instance: Any) -> None:
    later = DAY + timedelta(days=1)
    assert run_job(settings, instance, "distil_job", (DAY, later)) is None
    (run,) = instance.get_runs(dg.RunsFilter(tags={REPOSITORY_LABEL_TAG: LABEL}))  # as the timeline asks
    assert run.tags["memory/days"] == f"{DAY}...{later}"
    shown = [tag for tag in run.tags if not tag.startswith((".dagster/", "dagster/"))]
    assert shown == ["memory/days"]
    assert [r.run_id for r in instance.get_runs(dg.RunsFilter(tags={"memory/days": f"{DAY}...{later}"}))] == [
        run.run_id
    ]


def test_a_run_without_days_has_its_job_too(settings: Settings, instance: Any) -> None:
    assert run_job(settings, instance, "review_job") is None
    (run,) = instance.get_runs(dg.RunsFilter(tags={REPOSITORY_LABEL_TAG: LABEL}))
    assert run.job_name == "review_job" and "memory/days" not in run.tags


def test_a_decision_does_not_wait_for_a_run_over_days(instance: Any) -> None:
    """Of the runs of each pool one goes at a time, and there is room for one without days, which has no pool."""
    config = instance.get_concurrency_config()
    assert (config.pool_config.pool_granularity, config.pool_config.default_pool_limit) == (PoolGranularity.RUN, 1)
    graph = defs.get_repository_def().asset_graph
    pools = {key.to_user_string(): graph.get(key).pools for key in graph.executable_asset_keys}
    by_day = {name for name in pools if graph.get(dg.AssetKey(name)).partitions_def}
    assert all(pools[name] in ({DAYS_POOL}, {LOOK_BACK_POOL}) for name in by_day)
    assert pools["memory_file"] == set()
    assert config.run_queue_config.max_concurrent_runs > len({DAYS_POOL, LOOK_BACK_POOL})


def test_what_is_due_of_a_level_is_a_run_for_each_range_of_periods() -> None:
    from memory_pipeline.distillation.periods import DAY as DAYS
    from memory_pipeline.distillation.periods import Period

    due = [Period(DAYS, DAY + timedelta(days=n)) for n in (0, 1, 90)]
    assert ranges_of(due) == [(DAY, due[1].last), (due[2].last, due[2].last)]
