"""What Dagster loads: names, policies and times. A rename or a dropped check shows up here first."""

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg

from memory_pipeline.defs.orchestration import LOOKS_BACK, OWN_DAY, table_schema
from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.lake.tables import TABLES
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.loaded import defs
from memory_pipeline_tests.rows import DAY, at, day_after, workspace

ASSETS = {
    "sessions",
    "messages",
    "windows",
    "segments",
    "observations",
    "embeddings",
    "summary_embeddings",
    "message_embeddings",
    "reflections",
    "pool_reflections",
    "day_distillations",
    "week_distillations",
    "month_distillations",
    "proposals",
    "memory_file",
    "friction_clusters",
    "memory_effect",
    "quality_report",
}
DISTILLED = {"day_distillations", "week_distillations", "month_distillations"}
OTHER_PARTITIONS = {
    "week_distillations": dg.WeeklyPartitionsDefinition,
    "month_distillations": dg.MonthlyPartitionsDefinition,
}
UNPARTITIONED = {"memory_file", "pool_reflections", "quality_report"}
CHECKS = {
    "windows:every_message_in_one_window",
    "observations:times_are_recorded",
    "observations:hallucinated_timestamps",
    "observations:evidence_is_verbatim",
    "observations:no_secrets",
    "observations:no_silent_zero",
    "observations:compression_ratio",
    "observations:ungrounded_specifics",
    "observations:regurgitation",
    "observations:high_is_rare",
    "embeddings:index_matches_tables",
    "friction_clusters:evidence_is_stored",
    "summary_embeddings:index_matches_tables",
    "message_embeddings:index_matches_tables",
    "reflections:compression_ratio",
    "reflections:no_silent_zero",
    "day_distillations:recall_loss",
    "week_distillations:recall_loss",
    "month_distillations:recall_loss",
    "day_distillations:lines_are_whole",
    "week_distillations:lines_are_whole",
    "month_distillations:lines_are_whole",
    "memory_file:one_decision_each",
    "memory_file:review_backlog",
    "memory_file:identity_files",
}
BLOCKING = {
    "windows:every_message_in_one_window",
    "observations:times_are_recorded",
    "observations:evidence_is_verbatim",
    "observations:no_secrets",
}
OF_A_DAY_ALONE = {
    *("sessions", "messages", "windows", "segments", "observations"),
    *("embeddings", "message_embeddings"),
}
JOBS = {
    "day_job": ASSETS - DISTILLED - {"memory_effect", "pool_reflections", "quality_report"},
    "reflect_job": ASSETS
    - DISTILLED
    - {"friction_clusters", "memory_effect", "pool_reflections", "quality_report"}
    - {"summary_embeddings", "message_embeddings"},
    "pool_reflect_job": {"pool_reflections"},
    "distil_job": {"day_distillations"},
    "distil_weeks_job": {"week_distillations"},
    "distil_months_job": {"month_distillations"},
    "friction_job": {"friction_clusters"},
    "review_job": {"memory_file"},
    "effect_job": {"memory_effect"},
    "quality_job": {"quality_report"},
    "todoist_job": set(),
    "archive_job": set(),
    "prune_job": set(),
}
REPOSITORY = defs.get_repository_def()
GRAPH = REPOSITORY.asset_graph


def test_the_assets_are_in_one_group_that_the_ui_opens_unfolded() -> None:
    found = {key.to_user_string(): GRAPH.get(key).group_name for key in GRAPH.materializable_asset_keys}
    assert found == dict.fromkeys(ASSETS, "memory")


@each("name", sorted(ASSETS))
def test_every_asset_says_what_it_is(name: str) -> None:
    node = GRAPH.get(dg.AssetKey(name))
    assert len(node.description or "") > 100
    assert "{" not in (node.description or "")
    if name in TABLES and name not in UNPARTITIONED:
        schema = node.metadata["dagster/column_schema"]
        assert schema.columns[0].name == "day"
        assert all(c.type for c in schema.columns)


def test_every_column_says_what_it_is() -> None:
    silent = [(t, c.name) for t in TABLES for c in table_schema(t).columns if not (c.description or "").strip()]
    assert silent == []


def test_a_backfill_is_several_runs_of_what_needs_no_other_day_and_one_of_what_looks_back() -> None:
    for name in ASSETS - UNPARTITIONED:
        node = GRAPH.get(dg.AssetKey(name))
        expected = OWN_DAY if name in OF_A_DAY_ALONE else LOOKS_BACK
        assert (node.backfill_policy, node.pools) == (expected["backfill_policy"], {expected["pool"]}), name
        for parent in node.parent_keys:
            mapping = GRAPH.get_partition_mapping(node.key, parent)
            assert name not in OF_A_DAY_ALONE or type(mapping) is dg.TimeWindowPartitionMapping
            assert name not in OF_A_DAY_ALONE or mapping == dg.TimeWindowPartitionMapping(), (name, parent)


def test_every_table_is_partitioned_by_day_but_those_of_weeks_and_months() -> None:
    found = {name: type(GRAPH.get(dg.AssetKey(name)).partitions_def) for name in ASSETS - UNPARTITIONED}
    assert found == dict.fromkeys(found, dg.DailyPartitionsDefinition) | OTHER_PARTITIONS
    offsets = {name: GRAPH.get(dg.AssetKey(name)).partitions_def.end_offset for name in found}
    expected = {name: 0 if name in OTHER_PARTITIONS else 1 for name in found}  # today is a partition too
    assert offsets == expected | {"day_distillations": -2}  # the newest that is distilled is three days old


def test_the_arrows_between_the_assets() -> None:
    arrows = {name: {p.to_user_string() for p in GRAPH.get(dg.AssetKey(name)).parent_keys} for name in ASSETS}
    assert arrows == {
        "sessions": set(),
        "messages": {"sessions"},
        "windows": {"messages"},
        "segments": {"messages", "windows"},
        "observations": {"messages", "windows"},
        "embeddings": {"observations"},
        "summary_embeddings": {"segments", "reflections", "sessions"},
        "message_embeddings": {"sessions", "messages"},
        "reflections": {"segments", "observations", "embeddings"},
        "pool_reflections": {"reflections"},
        "day_distillations": {"windows", "segments", "observations"},
        "week_distillations": {"day_distillations"},
        "month_distillations": {"week_distillations"},
        "proposals": {"reflections"},
        "memory_file": {"proposals"},
        "friction_clusters": {"sessions", "messages", "observations"},
        "memory_effect": {"messages", "proposals", "memory_file", "friction_clusters"},
        "quality_report": {"memory_file", "friction_clusters"},
    }


def test_a_reflection_depends_on_seven_days_also_at_the_very_beginning() -> None:
    reflections = GRAPH.get(dg.AssetKey("reflections"))
    mapping = reflections.partition_mappings[dg.AssetKey("observations")]
    days = reflections.partitions_def

    def upstream(day: str) -> list[str]:
        subset = days.subset_with_partition_keys([day])
        return sorted(
            mapping.get_upstream_mapped_partitions_result_for_partitions(
                subset, days, days
            ).partitions_subset.get_partition_keys()
        )

    assert upstream("2025-03-05") == [f"{day_after(back)}" for back in range(-6, 1)]
    assert upstream("2025-01-02") == ["2025-01-01", "2025-01-02"]


def test_the_checks_and_which_of_them_stop_what_comes_after() -> None:
    specs = {spec.key.to_user_string(): spec for check in defs.asset_checks or [] for spec in check.check_specs}
    assert set(specs) == CHECKS
    assert {name for name, spec in specs.items() if spec.blocking} == BLOCKING
    assert all(spec.description for spec in specs.values())
    whole = {name for name in CHECKS if name.split(":")[0] in UNPARTITIONED}
    assert {name for name, spec in specs.items() if spec.partitions_def is None} == whole
    for name, spec in specs.items():
        if name not in whole:
            assert spec.partitions_def == GRAPH.get(spec.asset_key).partitions_def


def test_the_jobs_and_what_they_materialize() -> None:
    made = {
        name: {key.to_user_string() for key in REPOSITORY.get_job(name).asset_layer.executable_asset_keys}
        for name in JOBS
    }
    assert made == JOBS
    assert {job.name for job in REPOSITORY.get_all_jobs()} - {"__ASSET_JOB"} == set(JOBS)


def test_steps_run_in_one_process() -> None:
    """A process per step would load the embedding model for each of them."""
    assert defs.executor is dg.in_process_executor
    assert all(job.executor_def is dg.in_process_executor for job in REPOSITORY.get_all_jobs())


def test_the_schedules() -> None:
    found = {s.name: (s.job_name, s.cron_schedule, s.default_status.value) for s in REPOSITORY.schedule_defs}
    assert found == {
        "distil_at_five": ("distil_job", "0 5 * * *", "RUNNING"),
        "distil_weeks_at_five": ("distil_weeks_job", "0 5 * * *", "RUNNING"),
        "distil_months_at_five": ("distil_months_job", "0 5 * * *", "RUNNING"),
        "reflect_at_six": ("reflect_job", "0 6 * * *", "RUNNING"),
        "friction_at_seven": ("friction_job", "0 7 * * *", "RUNNING"),
        "effect_at_twenty_past_seven": ("effect_job", "20 7 * * *", "RUNNING"),
        "report_at_half_past_seven": ("quality_job", "30 7 * * *", "RUNNING"),
        "prune_on_sunday": ("prune_job", "0 4 * * 0", "RUNNING"),
        "archive_at_eight": ("archive_job", "0 8 * * *", "STOPPED"),  # it runs where MEMORY_ARCHIVE_AFTER_DAYS is set
    }
    zones = {s.execution_timezone for s in REPOSITORY.schedule_defs}
    assert zones == {GRAPH.get(dg.AssetKey("sessions")).partitions_def.timezone}


def test_the_sensors() -> None:
    found = {
        s.name: (s.job_name if s.targets else None, s.minimum_interval_seconds, s.default_status.value)
        for s in REPOSITORY.sensor_defs
    }
    assert found == {
        "session_sensor": ("day_job", 60, "RUNNING"),
        "reflect_early": ("reflect_job", 300, "RUNNING"),
        "review_sensor": ("review_job", 30, "RUNNING"),
        "todoist_sensor": ("todoist_job", 120, "STOPPED"),  # it runs where MEMORY_TODOIST is true
        "tell_failures": (None, 30, "STOPPED"),  # it runs where MEMORY_NOTIFY names somebody
    }


def in_a_new_process(code: str, home: Path, **env: str) -> object:
    """What the code prints as JSON, in a process with this environment."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MEMORY_", "DAGSTER_"))}
    place = {"HOME": str(home), "MEMORY_WORKSPACE": str(home / "w")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean | place | env, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_loading_the_definitions_loads_no_model_and_writes_nothing(tmp_path: Path) -> None:
    """The code server, each tick and `memory --help` would pay seconds and a gigabyte for it."""
    heavy = ["torch", "sentence_transformers", "transformers", "qdrant_client", "qdrant_edge"]
    code = (
        "import sys, json; from memory_pipeline.definitions import defs; defs(); "
        f"print(json.dumps([m for m in {heavy} if m in sys.modules]))"
    )
    assert in_a_new_process(code, tmp_path) == []
    assert list(tmp_path.iterdir()) == []


SCHEDULES = """
import json
from datetime import datetime
import dagster as dg
from memory_pipeline.definitions import defs as load

defs, found = load(), {}
for at in %r:
    moment = datetime.fromisoformat(at)
    context = dg.build_schedule_context(scheduled_execution_time=moment, repository_def=defs.get_repository_def())
    asked = defs.get_schedule_def("reflect_at_six").evaluate_tick(context).run_requests
    found[at] = [(r.partition_key, r.run_key) for r in asked or []]
zones = {s.execution_timezone for s in defs.get_repository_def().schedule_defs}
print(json.dumps({"asked": found, "zones": sorted(zones)}))
"""


def test_the_schedules_ask_for_the_day_that_ended_also_when_the_clock_changes(tmp_path: Path) -> None:
    cases = {
        "2025-03-30T06:00:00+01:00": "2025-03-29",  # the night had 23 hours of day: the clock went forward at 01:00
        "2025-03-31T06:00:00+01:00": "2025-03-30",  # the day that ended had 23 hours
        "2025-10-26T06:00:00+00:00": "2025-10-25",  # the clock went back at 02:00
        "2025-10-27T06:00:00+00:00": "2025-10-26",  # the day that ended had 25 hours
        "2025-07-01T05:00:00+00:00": "2025-06-30",  # 06:00 in London, given in UTC
        "2025-07-01T22:59:00+00:00": "2025-06-30",  # a late tick of the same day: 23:59 in London
        "2025-07-01T23:30:00+00:00": "2025-07-01",  # it is tomorrow in London, and not yet in UTC
    }
    result = in_a_new_process(
        SCHEDULES % list(cases), tmp_path, MEMORY_TIMEZONE="Europe/London", MEMORY_START_DATE="2025-01-01"
    )
    assert result == {
        "asked": {at: [[day, f"reflect:{day}"]] for at, day in cases.items()},
        "zones": ["Europe/London"],
    }


def test_no_day_before_the_workspaces_first_is_asked_for(tmp_path: Path) -> None:
    ticks = ["2025-03-05T06:00:00+00:00", "2025-03-06T06:00:00+00:00"]
    zone_and_first = {"MEMORY_TIMEZONE": "UTC", "MEMORY_START_DATE": "2025-03-05"}
    result = in_a_new_process(SCHEDULES % ticks, tmp_path, **zone_and_first)
    assert result == {"asked": {ticks[0]: [], ticks[1]: [["2025-03-05", "reflect:2025-03-05"]]}, "zones": ["UTC"]}


def tick_at_seven(instance: dg.DagsterInstance) -> Any:
    context = dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=at("07:00", day_after(1)),
        repository_def=REPOSITORY,
        resources={"workspace": WorkspaceResource()},
    )
    return defs.get_schedule_def("friction_at_seven").evaluate_tick(context)


def test_friction_waits_for_the_reflections_of_its_day(tmp_path: Path) -> None:
    """What Dagster was told of the day does not count: it is told of an empty day as it begins."""
    _, lake = workspace(tmp_path / "workspace")
    (tmp_path / "dagster").mkdir()
    with dg.DagsterInstance.local_temp(f"{tmp_path / 'dagster'}") as instance:
        instance.report_runless_asset_event(dg.AssetMaterialization("reflections", partition="2025-03-05"))
        skipped = tick_at_seven(instance)
        assert not skipped.run_requests
        assert "2025-03-05 has not been reflected on" in (skipped.skip_message or "")
        for day in (DAY - timedelta(days=1), DAY):
            lake.replace("reflections", lake.read("reflections", [day]), [day])
            requests = tick_at_seven(instance).run_requests or []
            assert [r.partition_key for r in requests] == ([f"{DAY}"] if day == DAY else [])
