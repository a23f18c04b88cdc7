"""README.md tells the truth: every asset, check, job, schedule, sensor, command, setting and table is in it."""

import re
import tomllib
from pathlib import Path

import pytest
import typer

from memory_pipeline.cli.main import app
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.setting_sources import settings_of
from memory_pipeline.settings import Settings, variable
from memory_pipeline_tests.loaded import defs

TOP = Path(__file__).resolve().parents[1]
README = (TOP / "README.md").read_text("utf-8")


def names_of_definitions() -> list[str]:
    repository = defs.get_repository_def()
    assets = [key.to_user_string() for key in repository.asset_graph.get_all_asset_keys()]
    checks = [key.name for key in repository.asset_graph.asset_check_keys]
    jobs = [job.name for job in repository.get_all_jobs() if not job.name.startswith("__")]
    automation = [s.name for s in [*repository.schedule_defs, *repository.sensor_defs]]
    return sorted({*assets, *checks, *jobs, *automation})


@pytest.mark.parametrize("name", names_of_definitions())
def test_what_dagster_loads_is_in_the_readme(name: str) -> None:
    assert f"`{name}`" in README


@pytest.mark.parametrize("field", sorted(settings_of(Settings)))
def test_every_setting_is_in_the_readme(field: str) -> None:
    assert f"`{variable(field)}`" in README


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_table_is_in_the_readme(table: str) -> None:
    assert f"`{table}`" in README


def test_every_command_is_in_the_readme() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert set(commands) == {
        "run",
        "estimate",
        "status",
        "review",
        "why",
        "log",
        "archive",
        "identity",
        "settings",
        "sql",
        "ui",
    }
    for name in commands:
        assert f"memory {name}" in README


def test_the_version_has_an_entry_in_the_changelog() -> None:
    import memory_pipeline

    assert f"## {memory_pipeline.__version__}" in (TOP / "CHANGELOG.md").read_text("utf-8")


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(name for names in project["optional-dependencies"].values() for name in names),
    ]
    pinned = {
        line.split("==")[0].lower().replace("_", "-") for line in (TOP / "constraints.txt").read_text().splitlines()
    }
    names = {re.split(r"[\[>=<]", name)[0].lower() for name in wanted}
    assert names - pinned - {project["name"]} == set()  # extras name each other
