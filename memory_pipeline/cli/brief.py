"""`memory brief`: what a new session should know. Hooks call it, so it fails open: whatever is the matter, the exit
code is 0, and what is not a briefing goes to stderr."""

from pathlib import Path
from typing import Annotated

import typer

from memory_pipeline.cli.console import err, print_json
from memory_pipeline.lake.opening import storage_of
from memory_pipeline.recall.folders import existing_folder, place_asked_for
from memory_pipeline.recall.kept_briefing import KeptBriefing, briefing_for
from memory_pipeline.recall.usage import log_use
from memory_pipeline.sessions.projects import Place
from memory_pipeline.settings import Settings, load_settings


def brief(
    project: Annotated[
        str | None,
        typer.Option(metavar="DIR|NAME", help="Folder that the session begins in, or a project; without it this one."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Print what a new session should know.

    What you approved, the last tasks of the project that the folder belongs to, what waits for review, and what was
    done before. As long as nothing changes, it prints the same.
    """
    try:
        settings = load_settings()
        found = briefing_for(settings, _asked_for(settings, project))
    except Exception as error:  # a session is never kept from starting
        err.print(f"No briefing: {error}", style="dim", soft_wrap=True)
        return
    _show(settings, found, as_json)
    if found.text:
        log_use(settings, "brief", project=found.project, shown=found.shown)


def _asked_for(settings: Settings, project: str | None) -> Path | Place:
    """A folder is told without the tables, whose reading takes as long as all the rest of a hook."""
    if project is None:
        return Path.cwd()
    if folder := existing_folder(project):
        return folder
    from memory_pipeline.lake.store import Lake

    return place_asked_for(Lake.from_settings(settings), project)


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
        of = f" of {found.project}" if found.project and storage_of(settings).is_begun() else ""
        err.print(f"Nothing is remembered{of} yet; `memory run` reads your sessions.", style="dim", soft_wrap=True)
