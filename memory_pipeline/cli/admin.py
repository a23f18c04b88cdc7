"""`memory admin`: maintenance and sharing of a workspace; its shorter commands, and the names of the others."""

import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

from memory_pipeline.cli import commands
from memory_pipeline.cli.console import FAILED, MISUSED, AsJson, fail, print_json, say, say_pair
from memory_pipeline.cli.workspace import active_settings, settings_of_call
from memory_pipeline.days import today

if TYPE_CHECKING:
    from memory_pipeline.quality.report import Report

NAMED = 8
"""Maximum number of days listed for a failed check."""
app = typer.Typer(cls=commands.LazyGroup, no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def admin() -> None:
    """Upkeep and sharing: index, service, report, audit, push."""


commands.add_placeholders(app, commands.ADMIN)


def archive(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be moved.")] = False,
    as_json: AsJson = False,
) -> None:
    """Move old daily logs to memory/archive/.

    Only logs whose day is reflected on are moved, unchanged.
    """
    from memory_pipeline.reflections.stage import ReflectionsStage, why_not_reflected
    from memory_pipeline.workspace.daily_log.archive import archive_logs
    from memory_pipeline.workspace.workspace import Workspace

    settings = active_settings()
    if not settings.archive_after_days:
        raise fail("Archiving is off; MEMORY_ARCHIVE_AFTER_DAYS=30 archives logs that are 30 days old.", MISUSED)
    stage = ReflectionsStage.from_workspace(Workspace.open(settings))
    done = archive_logs(settings, today(settings.zone), lambda day: why_not_reflected(stage, day), dry_run=dry_run)
    if as_json:
        left = {name: {f"{d}": why for d, why in getattr(done, name).items()} for name in ("waiting", "stuck")}
        print_json({"dry_run": dry_run, "moved": [f"{day}" for day in done.moved], **left})
    else:
        for day in done.moved:
            say(f"{day} {'would be' if dry_run else 'is'} archived as {settings.archived_log(day)}")
        for day, reason in sorted((done.waiting | done.stuck).items()):
            say(f"{day} stays: {reason}", "red" if day in done.stuck else "yellow")
        if not (done.moved or done.waiting or done.stuck):
            say(f"No log in {settings.log_dir} is {settings.archive_after_days} days old.", "dim")
    if done.stuck:
        raise typer.Exit(FAILED)


def identity(as_json: AsJson = False) -> None:
    """Check the identity files of your agents.

    Lists the files in the order in which they are read, with their links. The exit code is 1 if one is broken.
    """
    from memory_pipeline.operations.identity import NOT_SET, look_at_identity

    settings = settings_of_call()
    found = look_at_identity(settings, today(settings.zone))
    files, links = (found.files, found.links) if found else ((), ())
    if as_json:
        names = ("path", "state", "is_broken", "detail", "remedy")
        rows = ([{name: getattr(looked, name) for name in names} for looked in part] for part in (files, links))
        print_json({"is_set": found is not None, **dict(zip(("files", "links"), rows, strict=True))})
    elif found is None:
        say(NOT_SET, "dim")
    else:
        numbered = [(f"{number}.", looked) for number, looked in enumerate(files, 1)]
        for mark, looked in [*numbered, *(("->", looked) for looked in links)]:
            say(f"{mark} {looked.line}", "red" if looked.is_broken else "")
        if not links:
            say("No links are checked; MEMORY_IDENTITY_LINKS names them.", "dim")
    if found and found.broken:
        raise typer.Exit(FAILED)


def report(
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON; the page is also written.")] = False,
    in_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Write the quality report and list failed checks.

    An HTML page that needs no network, with a JSON file beside it: every check by day, figures over time, the worst
    days with their text, changes since last week and fixes.
    """
    from memory_pipeline.defs.runs import instance_of, quality_report_of
    from memory_pipeline.quality.page import write_report
    from memory_pipeline.quality.report import as_json as fields_of

    settings = active_settings()
    with instance_of(settings) as instance:
        made = quality_report_of(settings, instance)
    page = write_report(made, settings.report_dir)
    if as_json:
        print_json(fields_of(made))
    else:
        _print_report(made)
        say_pair("report", page)
    if in_browser:
        webbrowser.open(page.as_uri())


def _print_report(made: "Report") -> None:
    say(made.sentence)
    for check in made.checked:
        if check.failed:
            days = [f"{result.day}" for result in check.failed if result.day]
            more = f" and {len(days) - NAMED} more days" if len(days) > NAMED else ""
            say(f"{check.name}: failed on {', '.join(days[:NAMED]) or 'all that is stored'}{more}", "yellow")
            say(f"  {check.advice}")
    if made.changes:
        say("Since last week:")
    for line in made.changes:
        say(f"  {line}")
