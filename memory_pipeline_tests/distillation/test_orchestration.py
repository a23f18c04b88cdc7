"""Through Dagster: a run over days, a result of the check for each, red where the gate refuses, and the schedule."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memory_pipeline.automation.jobs import DISTIL_JOB
from memory_pipeline.distillation import lines as lines_module
from memory_pipeline.lake.store import Lake
from memory_pipeline.orchestration import WorkspaceResource
from memory_pipeline_tests.loaded import defs, distil_at_five
from memory_pipeline_tests.rows import at, observation, put, say, window_key, workspace

MONDAY, SUNDAY = date(2025, 3, 3), date(2025, 3, 9)
RULE = "The depot in Leipzig is asked at most once a minute, because it blocks us for a day otherwise."
TABLES = ("day_distillations", "week_distillations", "month_distillations")
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
REPOSITORY = defs.get_repository_def()


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


def run(instance: dg.DagsterInstance, tags: dict[str, str]) -> dg.ExecuteInProcessResult:
    return REPOSITORY.get_job(DISTIL_JOB).execute_in_process(
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


def test_a_run_over_a_week_makes_its_levels_and_judges_each_day(lake: Lake) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        assert run(instance, days(MONDAY, SUNDAY)).success
        week = [MONDAY + timedelta(days=n) for n in range(7)]
        for table in TABLES:
            by_day = results(instance, table)
            assert {day: by_day.get(f"{day}") for day in week} == dict.fromkeys(week, True)
        told = metadata(instance, "week_distillations", SUNDAY)
        assert (told["questions"], told["recall_before"], told["recall_loss"]) == (2, 1.0, 0.0)
        assert 0 < told["compression_ratio"] <= 0.25
        assert "compression_ratio" not in metadata(instance, "month_distillations", SUNDAY)
    assert lake.read("week_distillations", [SUNDAY]).height


def test_one_level_can_be_asked_for_alone(lake: Lake) -> None:
    """Its days are brought up to date, whichever were run before."""
    with dg.DagsterInstance.ephemeral() as instance:
        result = REPOSITORY.get_job(DISTIL_JOB).execute_in_process(
            instance=instance,
            partition_key=f"{SUNDAY}",
            asset_selection=[dg.AssetKey("week_distillations")],
            raise_on_error=False,
            run_config=QUIET,
        )
        assert result.success
        made = {event.asset_key for event in result.all_events if event.is_step_materialization}
        assert made == {dg.AssetKey("week_distillations")}
    assert {row["sources"][0] for row in lake.read("week_distillations").to_dicts()} <= {
        row["distillation_id"] for row in lake.read("day_distillations").to_dicts()
    }
    assert lake.read("day_distillations", [MONDAY]).height


def test_the_asset_is_red_where_too_much_would_be_lost(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "_shortened", lambda lines, room, rarity: [])
    with dg.DagsterInstance.ephemeral() as instance:
        result = run(instance, days(MONDAY, SUNDAY))
        assert not result.success
        (failure,) = [event for event in result.all_events if event.is_step_failure]
        message = f"{failure.step_failure_data.error_display_string}"
        assert "first 2025-03-09: RecallLostError: the week that ends on 2025-03-09: of 2 questions" in message
    assert lake.read("week_distillations").height == 0
    assert lake.read("day_distillations", [MONDAY]).height


def tick(instance: dg.DagsterInstance, day: date) -> Any:
    """What the schedule asks for, or why it does not."""
    context = dg.build_schedule_context(instance=instance, scheduled_execution_time=at("05:00", day))
    asked = distil_at_five(context, workspace=WorkspaceResource())
    return asked.skip_message if isinstance(asked, dg.SkipReason) else asked


def test_the_schedule_asks_for_what_is_old_enough_and_not_for_the_same_twice(lake: Lake) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        assert tick(instance, MONDAY + timedelta(days=2)) == "Every day that is old enough is distilled."
        first = tick(instance, MONDAY + timedelta(days=3))
        assert days(MONDAY, MONDAY).items() <= first.tags.items()
        assert tick(instance, MONDAY + timedelta(days=4)).run_key == first.run_key
        later = tick(instance, SUNDAY + timedelta(days=3))
        assert days(MONDAY, SUNDAY).items() <= later.tags.items()
        assert later.run_key != first.run_key
        assert run(instance, {name: value for name, value in later.tags.items() if "partition" in name}).success
        assert tick(instance, SUNDAY + timedelta(days=4)) == "Every day that is old enough is distilled."
        said(lake, MONDAY, "Grafana dashboards live in the folder observability, and nowhere else.")
        assert days(MONDAY, SUNDAY).items() <= tick(instance, SUNDAY + timedelta(days=4)).tags.items()
