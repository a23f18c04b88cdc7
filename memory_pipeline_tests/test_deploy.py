"""What deploy/ mentions is there: files, commands, variables, services, modules. Docker itself need not be."""

from __future__ import annotations

import importlib
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from memory_pipeline.cli.commands import COMMANDS, load_command
from memory_pipeline.defs.runs import dagster_yaml
from memory_pipeline.settings import Settings
from memory_pipeline.settings.dagster_record import postgres_record
from memory_pipeline.settings.sources import settings_of
from memory_pipeline_tests.postgres import YAML, record_in_postgres
from memory_pipeline_tests.rows import workspace

TOP = Path(__file__).resolve().parents[1]
DEPLOY = TOP / "deploy"
COMPOSE: Any = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
VALUES: Any = yaml.safe_load((DEPLOY / "values.yaml").read_text("utf-8"))
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
EXAMPLE = dict(line.split("=", 1) for line in (DEPLOY / "env.example").read_text("utf-8").splitlines() if "=" in line)
SETTINGS = {setting.variable for setting in settings_of(Settings).values()}
OF_OTHERS = {
    *("OPENAI_API_KEY", "MEMORY_SESSIONS_FOLDER", "QDRANT_IMAGE", "OBJECTS_IMAGE"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    *(f"DAGSTER_POSTGRES_{name}" for name in ("HOST", "PORT", "USER", "PASSWORD", "DB")),
}
"""Variables that are no settings: of a provider, of Compose alone, of the S3 store, of dagster.postgres.yaml."""
OURS = re.compile(r"(MEMORY|OBSERVER|REFLECTOR|QDRANT|EMBEDDING|TODOIST)_(?!_)")


def instructions() -> list[tuple[str, str]]:
    """Of the Dockerfile, with what is continued on one line."""
    whole = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.M))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in whole.splitlines() if line.strip())]


def test_the_image_copies_what_is_there_and_what_docker_is_shown() -> None:
    shown = {
        line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines() if line[0] == "!"
    }
    copied = {name for word, rest in instructions() if word == "COPY" for name in shlex.split(rest)[:-1]}
    assert copied == shown and all((TOP / name).exists() for name in copied)
    with (TOP / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    needed = {project["project"]["readme"], *project["project"]["license-files"]}
    needed |= set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"])
    assert needed <= copied  # else the package could not be built there


def test_the_image_runs_as_nobody_special_and_holds_no_secret() -> None:
    users = [rest for word, rest in instructions() if word == "USER"]
    assert users == ["memory"]
    for word, rest in instructions():
        if word in ("ENV", "ARG"):
            assert not re.search(r"KEY|PASSWORD|TOKEN|SECRET", rest)
    set_there = {part.partition("=")[0] for word, rest in instructions() if word == "ENV" for part in shlex.split(rest)}
    assert {name for name in set_there if OURS.match(name)} <= SETTINGS
    assert ("ENTRYPOINT", '["memory"]') in instructions()


def test_compose_publishes_on_loopback_alone_and_calls_what_there_is() -> None:
    for name, service in COMPOSE["services"].items():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", [])), name
        assert "healthcheck" in service and service["restart"] == "unless-stopped"
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in COMPOSE["volumes"] or source.startswith("${MEMORY_SESSIONS_FOLDER")
        assert set(service.get("depends_on", {})) <= set(COMPOSE["services"])
    assert COMPOSE["services"]["objects"]["profiles"] == ["object-storage"]
    ours = COMPOSE["services"]["memory"]
    assert (DEPLOY / ours["build"]["context"] / ours["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    command, *options = ours["command"]
    assert command in COMMANDS
    known = {name for option in load_command(command).params for name in option.opts}
    assert {option for option in options if option.startswith("--")} <= known


def test_every_variable_is_a_setting_or_named_as_somebody_elses() -> None:
    named = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text("utf-8")))
    environment = set(COMPOSE["services"]["memory"]["environment"])
    assert named | environment | set(EXAMPLE) <= SETTINGS | OF_OTHERS
    assert named - {"QDRANT_IMAGE", "OBJECTS_IMAGE"} <= set(EXAMPLE)
    for name, value in EXAMPLE.items():
        assert not value or not re.search(r"KEY|PASSWORD|TOKEN|SECRET", name)
    (deployment,) = VALUES["dagster-user-deployments"]["deployments"]
    assert {variable["name"] for variable in deployment["env"]} <= SETTINGS


def test_the_chart_runs_this_image_with_our_definitions_and_no_secret() -> None:
    (deployment,) = VALUES["dagster-user-deployments"]["deployments"]
    flag, module = deployment["dagsterApiGrpcArgs"]
    assert flag == "--module-name" and importlib.import_module(module).defs
    assert VALUES["dagsterWebserver"]["image"] == VALUES["dagsterDaemon"]["image"] == deployment["image"]
    user = int(re.search(r"useradd --uid (\d+)", DOCKERFILE)[1])  # type: ignore[index]
    assert deployment["podSecurityContext"]["runAsUser"] == user
    assert {mount["name"] for mount in deployment["volumeMounts"]} == {
        volume["name"] for volume in deployment["volumes"]
    }
    assert VALUES["runLauncher"]["type"] == "K8sRunLauncher" and "postgresqlPassword" not in VALUES["postgresql"]
    version = re.search(r"--version (\S+)", (DEPLOY / "values.yaml").read_text("utf-8"))
    assert version and f"\ndagster=={version[1]}\n" in (TOP / "constraints.txt").read_text("utf-8")


def test_the_record_in_postgres_differs_from_the_one_in_files_in_its_place_alone() -> None:
    files, server = (yaml.safe_load(path.read_text("utf-8")) for path in (dagster_yaml(), YAML))
    assert server.pop("storage").keys() == {"postgres"}
    assert server == files
    queue = VALUES["dagsterDaemon"]["runCoordinator"]["config"]["queuedRunCoordinator"]
    runs = files["concurrency"]["runs"]
    assert queue["maxConcurrentRuns"] == runs["max_concurrent_runs"]
    at_once = files["concurrency"]["pools"]["default_limit"]
    assert [limit["limit"] for limit in queue["tagConcurrencyLimits"]] == [at_once, at_once]


def test_the_variables_of_the_record_make_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings, _ = workspace(tmp_path)
    assert postgres_record(settings) is None
    record_in_postgres(settings)
    given = EXAMPLE | COMPOSE["services"]["memory"]["environment"] | {"DAGSTER_POSTGRES_PASSWORD": "p@ss/word"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    record = postgres_record(settings)
    assert record and record.shown == "postgres:5432/dagster"
    assert record.url == "postgresql+psycopg2://memory:p%40ss%2Fword@postgres:5432/dagster?connect_timeout=5"


def test_compose_itself_takes_it(tmp_path: Path) -> None:
    docker = shutil.which("docker")
    if not docker or subprocess.run([docker, "compose", "version"], capture_output=True, check=False).returncode:
        pytest.skip("Docker Compose is not installed")
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    text = (DEPLOY / "env.example").read_text("utf-8")
    (tmp_path / "deploy" / ".env").write_text(re.sub(r"(PASSWORD|KEY)=$", r"\1=x", text, flags=re.M), "utf-8")
    done = subprocess.run(
        [docker, "compose", "-f", f"{tmp_path}/deploy/compose.yaml", "config", "--quiet"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
