"""`memory ui`: Dagster's UI and daemon on this workspace, with sensors and schedules on."""

import os
import sys
from typing import Annotated, Any

import typer

from memory_pipeline.cli.choosing import look_before_dagster
from memory_pipeline.cli.console import err
from memory_pipeline.cli.dagster_runs import close_dead_runs, instance_of
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.workspace import Workspace


def _report_empty_partitions(instance: Any) -> None:
    """So that the catalogue counts no day without a session as missing; of later days the schedule at five does it."""
    from memory_pipeline.automation.empty_partitions import report_empty_partitions

    workspace = Workspace.open(active_settings())  # with the first day that has just been kept
    report_empty_partitions(instance, workspace, Catalogue(workspace.lake, workspace.settings))


def ui(port: Annotated[int, typer.Option(metavar="PORT", help="Port on 127.0.0.1.")] = 3000) -> None:
    """Start Dagster's UI and daemon; stop them with Ctrl-C."""
    settings = active_settings()
    look_before_dagster(settings)
    with instance_of(settings) as instance:  # makes the databases before several processes ask for them
        close_dead_runs(instance)
        _report_empty_partitions(instance)
    os.environ["DAGSTER_HOME"] = str(settings.dagster_home)
    os.environ["PYTHONSAFEPATH"] = "1"  # what lies in the current directory is not to be imported
    err.print(f"Workspace {settings.workspace}; the UI will be at http://127.0.0.1:{port}", soft_wrap=True)
    command = [
        "dagster",
        "dev",
        "--module-name",
        "memory_pipeline.definitions",
        "--host",
        "127.0.0.1",
        "--port",
        f"{port}",
    ]
    os.execv(sys.executable, [sys.executable, "-m", *command])
