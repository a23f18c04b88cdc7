"""Through Dagster: a run over days, a result of the check for each, red where the gate refuses, and the schedule."""

from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memory_pipeline.days import lookback
from memory_pipeline.defs.jobs import DISTIL_JOBS
from memory_pipeline.defs.partitions import partitions_of
from memory_pipeline.defs.schedules import DISTIL_SCHEDULES
from memory_pipeline.distillation import stage as stage_module
from memory_pipeline.distillation.periods import DAY, LEVELS, MONTH, NAMES, TABLE_OF, WEEK, Period, periods_of
from memory_pipeline.lake.store import Lake
from memory_pipeline_tests.loaded import ALL_SCHEDULES, SETTINGS, defs
from memory_pipeline_tests.rows import at, observation, put, say, window_key, workspace

MONDAY, SUNDAY = date(2025, 3, 3), date(2025, 3, 9)
RULE = "The depot in Leipzig is asked at most once a minute, because it blocks us for a day otherwise."
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
REPOSITORY = defs.get_repository_def()
SCHEDULES = {schedule.name: schedule for schedule in ALL_SCHEDULES}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    _, lake = workspace(tmp_path / "workspace")
    for day in (MONDAY, SUNDAY):
        said(lake, day)
    return lake


def said(lake: Lake, day: date, text: str = RULE) -> None:
    session = f"s{day:%d}{len(text)}"
    say(lake, session, f"user: {text}", day=day)
    row = {"day": day, "segment_id": session, "dedupe_key": window_key(session, day), "session_id": session}
    put(lake, "segments", row | {"position": 0, "narrative": f"Asked: {text} Ended with: done, and pushed."})
    put(lake, "observations", observation(text, day=day, session=session, segment_id=session))


def run(instance: dg.DagsterInstance, level: int, tags: dict[str, str]) -> dg.ExecuteInProcessResult:
    return REPOSITORY.get_job(DISTIL_JOBS[level]).execute_in_process(
        instance=instance, tags=tags, raise_on_error=False, run_config=QUIET
    )


def days(first: date, last: date) -> dict[str, str]:
    return {"dagster/asset_partition_range_start": f"{first}", "dagster/asset_partition_range_end": f"{last}"}


def results(instance: dg.DagsterInstance, asset: str) -> dict[str | None, bool]:
    """Of the check, day to verdict."""
    key = dg.AssetCheckKey(dg.AssetKey(asset), "recall_loss")
    records = instance.event_log_storage.get_asset_check_execution_history(key, limit=50)
    events = [record.event.dagster_event for record in records if record.event]
    kind = dg.DagsterEventType.ASSET_CHECK_EVALUATION
    found = [event.asset_check_evaluation_data for event in events if event and event.event_type == kind]
    return {one.partition: one.passed for one in found}


def metadata(instance: dg.DagsterInstance, asset: str, day: date) -> dict[str, Any]:
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(asset_key=dg.AssetKey(asset), asset_partitions=[f"{day}"]), limit=1
    ).records
    event = records[0].asset_materialization
    assert event
    return {name: value.value for name, value in event.metadata.items()}


def test_a_run_over_days_makes_and_judges_each(lake: Lake) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        assert run(instance, DAY, days(MONDAY, SUNDAY)).success
        week = {f"{MONDAY + timedelta(days=n)}" for n in range(7)}
        by_day = results(instance, "day_distillations")
        assert {day: by_day.get(day) for day in week} == dict.fromkeys(week, True)
        assert instance.get_materialized_partitions(dg.AssetKey("day_distillations")) == week
    assert lake.days("week_distillations") == []


@pytest.mark.parametrize("level", [WEEK, MONTH])
def test_a_run_over_weeks_or_months_makes_and_judges_one_partition_for_each(lake: Lake, level: int) -> None:
    table, period = TABLE_OF[level], Period.containing(SUNDAY, level)
    before = Period.containing(SUNDAY - timedelta(days=28), level)  # nothing was said in it
    with dg.DagsterInstance.ephemeral() as instance:
        assert run(instance, level, days(before.key, period.key)).success
        partitions = instance.get_materialized_partitions(dg.AssetKey(table))
        assert partitions == {f"{p.key}" for p in periods_of(level, [before.last, *lookback(SUNDAY, 28)])}
        by_partition = results(instance, table)
        assert {key: by_partition.get(key) for key in partitions} == dict.fromkeys(partitions, True)
        said = metadata(instance, table, period.key)
        assert (said["highs"], said["highs_kept"], said["recall_loss"]) == (2, 2, 0.0)
        assert 0 < said["compression_ratio"] <= 0.25
        assert said["dagster/row_count"] == lake.read(table, [period.last]).height > 0
        assert metadata(instance, table, before.key)["dagster/row_count"] == 0


def test_one_week_can_be_asked_for_alone(lake: Lake) -> None:
    """Its days are brought up to date, whichever were run before."""
    with dg.DagsterInstance.ephemeral() as instance:
        result = REPOSITORY.get_job(DISTIL_JOBS[WEEK]).execute_in_process(
            instance=instance, partition_key=f"{MONDAY}", raise_on_error=False, run_config=QUIET
        )
        assert result.success
        made = {(event.asset_key, event.partition) for event in result.all_events if event.is_step_materialization}
        assert made == {(dg.AssetKey("week_distillations"), f"{MONDAY}")}
    assert {row["sources"][0] for row in lake.read("week_distillations").to_dicts()} <= {
        row["distillation_id"] for row in lake.read("day_distillations").to_dicts()
    }
    assert lake.read("day_distillations", [MONDAY]).height


def test_the_asset_is_red_where_too_much_would_be_lost(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    made = stage_module.rows_of
    monkeypatch.setattr(stage_module, "rows_of", lambda *args: made(*args) if args[1].level == DAY else [])
    with dg.DagsterInstance.ephemeral() as instance:
        assert run(instance, DAY, days(MONDAY, SUNDAY)).success
        result = run(instance, WEEK, days(MONDAY, MONDAY))
        assert not result.success
        (failure,) = [event for event in result.all_events if event.is_step_failure]
        message = f"{failure.step_failure_data.error_display_string}"
        assert "first 2025-03-09: RecallLostError" in message
        assert "the week that ends on 2025-03-09: 0 of 2 high observations" in message
    assert lake.read("week_distillations").height == 0
    assert lake.read("day_distillations", [MONDAY]).height


def test_weeks_and_months_begin_with_the_first_day_and_are_there_once_they_have_ended() -> None:
    settings = SETTINGS.model_copy(update={"timezone": "Europe/Berlin", "start_date": date(2025, 3, 31)})
    now = {DAY: "2025-04-07T00:30", WEEK: "2025-04-07T00:30", MONTH: "2025-05-01T00:30"}
    then = {level: datetime.fromisoformat(f"{moment}+02:00") for level, moment in now.items()}
    keys = {level: partitions_of(settings, TABLE_OF[level]).get_partition_keys(then[level]) for level in LEVELS}
    assert (keys[DAY][0], keys[DAY][-1]) == ("2025-03-31", "2025-04-04")  # three days old, as is distilled
    assert keys[WEEK] == ["2025-03-31"]
    assert keys[MONTH] == ["2025-04-01"]  # the week of 31 March ends in April
    for level in (WEEK, MONTH):
        second_before = then[level] - timedelta(minutes=30, seconds=1)
        assert partitions_of(settings, TABLE_OF[level]).get_partition_keys(second_before) == []


def test_a_week_depends_on_its_days_and_a_month_on_its_weeks() -> None:
    graph = REPOSITORY.asset_graph

    def upstream(level: int, key: str) -> list[str]:
        node, above = graph.get(dg.AssetKey(TABLE_OF[level])), dg.AssetKey(TABLE_OF[level - 1])
        found = node.partition_mappings[above].get_upstream_mapped_partitions_result_for_partitions(
            node.partitions_def.subset_with_partition_keys([key]), node.partitions_def, graph.get(above).partitions_def
        )
        assert not found.required_but_nonexistent_subset.get_partition_keys()
        return sorted(found.partitions_subset.get_partition_keys())

    assert upstream(WEEK, "2025-03-03") == [f"2025-03-{day:02}" for day in range(3, 10)]
    assert upstream(WEEK, "2024-12-30") == [f"2025-01-0{day}" for day in range(1, 6)]  # the first day is a Wednesday
    weeks = [f"{part.key}" for part in Period(MONTH, date(2025, 3, 31)).parts]
    assert upstream(MONTH, "2025-03-01") == [*weeks, "2025-03-31"]  # Dagster's mapping has one week too many here


def tick(instance: dg.DagsterInstance, level: int, day: date) -> Any:
    """What the level's schedule asks for, or why it does not."""
    moment = at("05:00", day)
    context = dg.build_schedule_context(instance=instance, scheduled_execution_time=moment, repository_def=REPOSITORY)
    asked = SCHEDULES[DISTIL_SCHEDULES[level]](context)
    if isinstance(asked, dg.SkipReason):
        return asked.skip_message
    return asked


def test_the_schedule_asks_for_what_is_old_enough_and_not_for_the_same_twice(lake: Lake, tmp_path: Path) -> None:
    done = "Every day that is old enough is distilled."
    with dg.DagsterInstance.local_temp(f"{tmp_path}") as instance:
        assert tick(instance, DAY, MONDAY + timedelta(days=2)) == done
        (first,) = tick(instance, DAY, MONDAY + timedelta(days=3))
        assert days(MONDAY, MONDAY).items() <= first.tags.items()
        assert [again.run_key for again in tick(instance, DAY, MONDAY + timedelta(days=4))] == [first.run_key]
        monday, sunday = tick(instance, DAY, SUNDAY + timedelta(days=3))  # no run goes over the days between them
        assert monday.run_key == first.run_key != sunday.run_key
        assert days(SUNDAY, SUNDAY).items() <= sunday.tags.items()
        for asked in (monday, sunday):
            assert run(instance, DAY, {name: tag for name, tag in asked.tags.items() if "partition" in name}).success
        assert tick(instance, DAY, SUNDAY + timedelta(days=4)) == done
        said(lake, MONDAY, "Grafana dashboards live in the folder observability, and nowhere else.")
        (again,) = tick(instance, DAY, SUNDAY + timedelta(days=4))
        assert days(MONDAY, MONDAY).items() <= again.tags.items()


@pytest.mark.parametrize("level", [WEEK, MONTH])
def test_weeks_and_months_are_asked_for_by_their_partitions_once_they_are_old_enough(lake: Lake, level: int) -> None:
    period, done = Period.containing(MONDAY, level), f"Every {NAMES[level]} that is old enough is distilled."
    with dg.DagsterInstance.ephemeral() as instance:
        assert tick(instance, level, period.last + timedelta(days=2)) == done
        (asked,) = tick(instance, level, period.last + timedelta(days=3))
        assert days(period.key, period.key).items() <= asked.tags.items()
        assert run(instance, level, days(period.key, period.key)).success
        assert tick(instance, level, period.last + timedelta(days=4)) == done
        said(lake, SUNDAY, "Grafana dashboards live in the folder observability, and nowhere else.")
        (again,) = tick(instance, level, period.last + timedelta(days=4))
        assert again.run_key != asked.run_key
