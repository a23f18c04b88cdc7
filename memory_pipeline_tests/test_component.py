"""The component in somebody else's project: its names clash with nothing, and a day is made through it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.defs.placement import Placement, TablesResource
from memory_pipeline.defs.under_way import work_under_way
from memory_pipeline.lake.store import Lake
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.conftest import conversation, write_session
from memory_pipeline_tests.loaded import SETTINGS
from memory_pipeline_tests.loaded import defs as ours
from memory_pipeline_tests.rows import DAY, FakeEncoder, use_encoder

PYPROJECT = """
[tool.dg]
directory_type = "project"
[tool.dg.project]
root_module = "bakery"
[project]
name = "bakery"
version = "0.1.0"
"""
DEFINITIONS = """
from pathlib import Path
import dagster as dg

@dg.definitions
def defs():
    return dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
"""
BAKERY = """
import dagster as dg

class Oven(dg.ConfigurableResource):
    degrees: int = 220

@dg.asset
def observations(duckdb: Oven, workspace: Oven) -> None: ...

@dg.op
def observe() -> None: ...

@dg.job
def reflect_job() -> None:
    observe()

@dg.definitions
def defs() -> dg.Definitions:
    resources = {"duckdb": Oven(), "workspace": Oven()}
    return dg.Definitions([observations], jobs=[reflect_job], resources=resources, executor=dg.multiprocess_executor)
"""
INSTANCE = """
type: memory_pipeline.MemoryPipeline
attributes:
  key_prefix: [bakery, memory]
  group: remembered
  workspace: {workspace}
  automation: false
"""
BAKERY_MEMORY = Placement(SETTINGS, ("bakery", "memory"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project as `create-dagster` lays it out, with definitions that have names of ours."""
    top = tmp_path / "project"
    files = {
        "pyproject.toml": PYPROJECT,
        "bakery/__init__.py": "",
        "bakery/definitions.py": DEFINITIONS,
        "bakery/defs/__init__.py": "",
        "bakery/defs/bread.py": BAKERY,
    }
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    monkeypatch.syspath_prepend(str(top))
    yield top
    for name in [name for name in sys.modules if name.partition(".")[0] == "bakery"]:
        del sys.modules[name]


@pytest.fixture
def embedded(project: Path, tmp_path: Path) -> dg.Definitions:
    """The project's definitions with an instance of the component."""
    file = project / "bakery/defs/memory/defs.yaml"
    file.parent.mkdir()
    file.write_text(INSTANCE.format(workspace=tmp_path / "theirs"))
    return dg.load_from_defs_folder(path_within_project=project)


def names(definitions: dg.Definitions) -> set[str]:
    """The names that must be unique in an instance or in a code location."""
    repository = definitions.get_repository_def()
    named = [*repository.get_all_jobs(), *repository.schedule_defs, *repository.sensor_defs]
    ops = [node.name for job in repository.get_all_jobs() for node in job.all_node_defs]
    keys = [key.to_user_string() for key in repository.asset_graph.executable_asset_keys]
    return {*keys, *ops, *(one.name for one in named), *repository.get_top_level_resources()} - {"__ASSET_JOB"}


def test_every_name_begins_with_the_prefix(embedded: dg.Definitions) -> None:
    theirs = {"observations", "observe", "reflect_job", "duckdb", "workspace"}
    assert theirs < names(ours)
    mine = names(embedded) - theirs
    prefix = re.compile("^(bakery/memory/|bakery_memory_|bakery__memory__)")
    assert {prefix.sub("", name) for name in mine} == names(ours) - {"prune_runs"}  # the record of runs is not ours
    assert all(prefix.match(name) for name in mine)


def test_the_rest_of_the_project_is_left_alone(embedded: dg.Definitions) -> None:
    graph = embedded.resolve_asset_graph()
    mine = [graph.get(key) for key in graph.executable_asset_keys if key.path[:-1]]
    assert {node.group_name for node in mine} == {"remembered"}
    for node in mine:
        shown = [Path(at.file_path) for at in node.metadata["dagster/code_references"].code_references]
        assert [path.name for path in shown if path.exists()][1:] == ["defs.yaml"]
        assert shown[0].parent.name == "defs"
    day_job = embedded.resolve_job_def("bakery_memory_day_job")
    assert dg.AssetKey("observations") not in day_job.asset_layer.executable_asset_keys
    automatic = [*embedded.get_repository_def().schedule_defs, *embedded.get_repository_def().sensor_defs]
    assert {one.default_status.value for one in automatic} == {"STOPPED"}


def test_runs_of_the_rest_of_the_project_do_not_hold_us_up() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        started = dg.DagsterRunStatus.STARTED
        instance.add_run(dg.DagsterRun("reflect_job", status=started))
        instance.add_run(dg.DagsterRun("__ASSET_JOB", status=started, asset_selection={dg.AssetKey("observations")}))
        assert work_under_way(instance, BAKERY_MEMORY) == []
        asset = BAKERY_MEMORY.key("observations")
        instance.add_run(dg.DagsterRun("__ASSET_JOB", status=started, asset_selection={asset}))
        instance.add_run(dg.DagsterRun("bakery_memory_day_job", status=started))
        assert sorted(work_under_way(instance, BAKERY_MEMORY)) == ["__ASSET_JOB", "bakery_memory_day_job"]
        assert len(work_under_way(instance, Placement(SETTINGS))) == 4


def test_a_day_is_made_in_the_workspace_of_the_attribute(
    embedded: dg.Definitions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    write_session(sessions / "a.jsonl", *conversation(f"{DAY}T09:00:00"))
    monkeypatch.setenv("MEMORY_SESSION_DIRS", f"{sessions}")
    use_encoder(monkeypatch, FakeEncoder("invoices", "parcels", dimension=384))
    with dg.DagsterInstance.ephemeral() as instance:
        job = embedded.resolve_job_def("bakery_memory_reflect_job")
        assert job.execute_in_process(instance=instance, partition_key=f"{DAY}").success
        report = embedded.resolve_job_def("bakery_memory_quality_job").execute_in_process(instance=instance)
        made = instance.get_latest_materialization_event(dg.AssetKey(["bakery", "memory", "messages"]))
        checked = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(dg.AssetKey(["bakery", "memory", "observations"]), "no_secrets"), limit=5
        )
    assert made and made.asset_materialization and made.asset_materialization.partition == f"{DAY}"
    assert (
        Path(f"{made.asset_materialization.metadata['path'].value}") == tmp_path / f"theirs/lake/messages/{DAY}.parquet"
    )
    assert [record.status.value for record in checked] == ["SUCCEEDED"]
    (written,) = report.get_asset_materialization_events()
    assert written.step_materialization_data.materialization.metadata["results"].value
    assert Lake(tmp_path / "theirs/lake").read("messages", [DAY]).height > 0
    with TablesResource(path=f"{tmp_path / 'theirs'}").get_connection() as connection:
        counted = connection.sql("SELECT count(*) FROM messages").fetchone()
    assert counted == (Lake(tmp_path / "theirs/lake").read("messages", [DAY]).height,)
    assert not load_settings().workspace.exists()  # the one that the environment names


REGISTERED = any(point.value == "memory_pipeline" for point in entry_points(group="dagster_dg_cli.registry_modules"))


@pytest.mark.nightly
@pytest.mark.skipif(not (REGISTERED and find_spec("dagster_dg_cli")), reason="`make setup-dev` installs dg")
def test_dg_scaffolds_checks_lists_and_launches(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    places = {"HOME": f"{home}", "DAGSTER_HOME": f"{home}", "MEMORY_WORKSPACE": f"{home / 'w'}"}
    environment = os.environ | places | {"PYTHONPATH": os.pathsep.join([f"{project}", *sys.path])}

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", "from dagster_dg_cli.cli import main; main()", *words],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("scaffold", "defs", "memory_pipeline.MemoryPipeline", "recall")
    assert "- recall" in (project / "bakery/defs/recall/defs.yaml").read_text()
    assert "All definitions loaded successfully." in run("check", "defs", "--use-active-venv")
    assert "defs.yaml (MemoryPipeline)" in run("list", "component-tree")
    assert "memory_pipeline.MemoryPipeline" in run("list", "components", "--json")
    assert '"recall/observations"' in run("list", "defs", "--json")
    run("launch", "--assets", "recall/quality_report")
    assert list((home / "w/reports").glob("*.html"))
