"""`memory admin report`: the results of checks and quality figures as a page."""

import webbrowser
from datetime import date
from typing import Annotated

import typer

from memory_pipeline.cli.console import print_json, say, say_pair
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.defs.runs import instance_of, quality_report_of
from memory_pipeline.quality.page import write_report
from memory_pipeline.quality.report import Report, as_json
from memory_pipeline.quality.results import Checked

NAMED = 8
"""Maximum number of days listed for a failed check."""


def report(
    as_json_: Annotated[bool, typer.Option("--json", help="Print as JSON; the page is also written.")] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write the quality report and list failed checks.

    An HTML page that needs no network, with a JSON file beside it: every check by day, figures over time, the worst
    days with their text, changes since last week and fixes.
    """
    settings = active_settings()
    with instance_of(settings) as instance:
        made = quality_report_of(settings, instance)
    page = write_report(made, settings.report_dir)
    if as_json_:
        print_json(as_json(made))
    else:
        _print(made)
        say_pair("report", f"{page}")
    if open_:
        webbrowser.open(page.as_uri())


def _print(made: Report) -> None:
    say(made.sentence)
    for check in made.checked:
        if check.failed:
            say(f"{check.name}: failed on {_days(check)}", "yellow")
            say(f"  {check.advice}")
    if made.changes:
        say("Since last week:")
    for line in made.changes:
        say(f"  {line}")


def _days(check: Checked) -> str:
    days: list[date] = [result.day for result in check.failed if result.day]
    if not days:
        return "all that is stored"
    more = len(days) - NAMED
    return ", ".join(f"{day}" for day in days[:NAMED]) + (f" and {more} more days" if more > 0 else "")
