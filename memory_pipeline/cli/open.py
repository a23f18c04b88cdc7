"""`memory open`: review, memory, search and quality in the browser."""

import webbrowser
from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, err, one_sentence
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.quality.report import Report
from memory_pipeline.web.server import PageServer, PortTakenError


def open(
    port: Annotated[int, typer.Option(metavar="PORT", help="Port on 127.0.0.1; by default a free one.", min=0)] = 0,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the browser.")] = True,
) -> None:
    """Review, search and read the memory in the browser.

    The page is served on this machine only, to the browser that opens the address first. It stops with Ctrl-C, or
    after an hour without a request.
    """
    settings = active_settings()

    def report() -> Report:
        from memory_pipeline.defs.runs import instance_of, quality_report_of  # takes seconds, needed by one screen only

        with instance_of(settings) as instance:
            made: Report = quality_report_of(settings, instance)
            return made

    with one_sentence(PortTakenError, code=MISUSED):
        server = PageServer(settings, report, port=port)
    with server:
        if browser and webbrowser.open(server.first_address):
            err.print("The page is open in your browser; Ctrl-C stops it.")
        else:
            message = f"Open {server.first_address} in your browser; the address works once. Ctrl-C stops it."
            err.print(message, soft_wrap=True)
        was_silent = server.run()
    err.print("The page was unused for an hour and is closed." if was_silent else "The page is closed.")
