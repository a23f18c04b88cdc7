"""`memory ui` and `memory open`: Dagster's UI and daemon with sensors and schedules on, and the page for review."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memory_pipeline.cli.choosing import keep_first_session_day
from memory_pipeline.cli.console import err
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.defs.runs import instance_of, only_one, quality_report_of
from memory_pipeline.defs.under_way import close_dead_runs
from memory_pipeline.settings import Settings

if TYPE_CHECKING:
    from memory_pipeline.quality.report import Report


def ui(
    port: Annotated[int, typer.Option(metavar="PORT", min=1, max=65_535, help="Port on 127.0.0.1.")] = 3000,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="Address to listen on; change it only in a container whose port is published on 127.0.0.1.",
        ),
    ] = "127.0.0.1",
) -> None:
    """Start Dagster's UI and daemon; Ctrl-C stops them."""
    settings = active_settings()
    with only_one(settings, "ui", f"The UI of {settings.workspace} is already open; use that one, or stop it first."):
        from memory_pipeline.defs.web_server import serve
        from memory_pipeline.web.server import listening

        keep_first_session_day(settings)
        with instance_of(settings) as instance:  # creates the databases before several processes need them
            close_dead_runs(instance)
        _change_folder(settings)
        listening(port).close()  # raises PortTakenError
        err.print(f"Workspace {settings.workspace}; the UI will be at http://127.0.0.1:{port}", soft_wrap=True)
        serve(settings, port, host)


def open(
    port: Annotated[
        int, typer.Option(metavar="PORT", help="Port on 127.0.0.1; by default a free one.", min=0, max=65_535)
    ] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
) -> None:
    """Review, search and read the memory in the browser.

    The page is served on this machine only, to the browser that opens the address first. It stops with Ctrl-C, or
    after an hour without a request.
    """
    from memory_pipeline.web.server import PageServer

    settings = active_settings()

    def report() -> "Report":
        with instance_of(settings) as instance:
            made: Report = quality_report_of(settings, instance)
            return made

    server = PageServer(settings, report, port=port)
    with server:
        if browser and webbrowser.open(server.first_address):
            err.print("The page is open in your browser; Ctrl-C stops it.")
        else:
            message = f"Open {server.first_address} in your browser; the address works once. Ctrl-C stops it."
            err.print(message, soft_wrap=True)
        was_silent = server.run()
    err.print("The page was unused for an hour and is closed." if was_silent else "The page is closed.")


def _change_folder(settings: Settings) -> None:
    """Change to another folder: Dagster would read the current one's `.env`, and Python would import modules from
    it."""
    os.environ["MEMORY_WORKSPACE"] = str(settings.workspace)
    if "MEMORY_SESSION_DIRS" in os.environ:
        os.environ["MEMORY_SESSION_DIRS"] = os.pathsep.join(map(str, settings.session_dirs))
    os.environ["DAGSTER_HOME"] = str(settings.dagster_home)
    os.environ["PYTHONSAFEPATH"] = "1"
    here = Path.cwd()
    sys.path[:] = [path for path in sys.path if path and Path(path) != here]
    os.chdir(settings.dagster_home)
