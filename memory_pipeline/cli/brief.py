"""`memory brief`: what a new session should know. Hooks call it, so it fails open: whatever is the matter, the exit
code is 0, and what is not a briefing goes to stderr."""

from pathlib import Path
from typing import Annotated

import typer

from memory_pipeline.cli.console import err, print_json
from memory_pipeline.recall.kept_briefing import KeptBriefing, briefing_for
from memory_pipeline.recall.usage import log_use
from memory_pipeline.settings import Settings, load_settings


def brief(
    project: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder that the session begins in; without it this one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Print what a new session should know.

    What you approved, the last tasks of the project that the folder belongs to, what waits for review, and what was
    done before. As long as nothing changes, it prints the same.
    """
    try:
        settings = load_settings()
        found = briefing_for(settings, project or Path.cwd())
    except Exception as error:  # a session is never kept from starting
        err.print(f"No briefing: {error}", style="dim", soft_wrap=True)
        return
    _show(settings, found, as_json)
    if found.text:
        log_use(settings, "brief", project=found.project, shown=found.shown)


def _show(settings: Settings, found: KeptBriefing, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "project": found.project,
                "tokens": found.tokens,
                "budget": settings.brief.tokens,
                "left_out": found.left_out,
                "problems": found.problems,
                "sections": found.sections,
                "text": found.text,
            }
        )
    elif found.text:
        typer.echo(found.text, nl=False)
    for problem in found.problems:
        err.print(problem, style="dim", soft_wrap=True)
    if not found.text:
        of = f" of {found.project}" if found.project and settings.lake_dir.is_dir() else ""
        err.print(f"Nothing is remembered{of} yet; `memory run` reads your sessions.", style="dim", soft_wrap=True)
