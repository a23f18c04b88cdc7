"""`memory admin archive`: moves complete daily logs away."""

from typing import Annotated

import typer

from memory_pipeline.cli.console import FAILED, MISUSED, fail, print_json, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.days import today
from memory_pipeline.reflections.stage import ReflectionsStage, why_not_reflected
from memory_pipeline.workspace.daily_log.archive import archive_logs
from memory_pipeline.workspace.workspace import Workspace


def archive(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be moved.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Move old daily logs to memory/archive/.

    Only logs whose day is reflected on are moved, unchanged.
    """
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
