"""`memory pack`: the memory that stands before the messages of a session, for whoever builds the context of one."""

from pathlib import Path
from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, err, one_sentence, print_json
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.harnesses.model import NotASessionError
from memory_pipeline.lake.opening import storage_of
from memory_pipeline.lake.store import Lake
from memory_pipeline.recall.compaction import session_file
from memory_pipeline.recall.context_pack import context_pack
from memory_pipeline.recall.folders import UnknownProjectError, place_asked_for
from memory_pipeline.recall.usage import log_use


def pack(
    project: Annotated[
        str | None,
        typer.Option(metavar="DIR|NAME", help="Folder that the session works in, or a project; without it this one."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(metavar="SESSION", help="A running session (file or id): its older messages too."),
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Rank anew; a prompt cache is lost by it.")] = False,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="Condense now what the working tier has no room for.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Print the context pack of a project or session.

    The same by the byte until it is rebuilt; stderr says when it is, and why.
    """
    settings = settings_of_call()
    with one_sentence(UnknownProjectError, code=MISUSED):
        where = Path.cwd() if project is None else place_asked_for(Lake.from_settings(settings), project)
    with one_sentence(NotASessionError):
        path = session_file(settings, session) if session else None
        found = context_pack(settings, where, path, rebuild=rebuild, catch_up=catch_up)
    if as_json:
        print_json(
            {
                "project": found.project,
                "text": found.text,
                "rebuilt": found.rebuilt,
                "shown": found.shown,
                "condensed_through_line": found.through,
                "raw_tokens": found.raw_tokens,
                "catch_up_is_due": found.is_due,
            }
        )
    else:
        typer.echo(found.text, nl=False)
        if found.rebuilt:
            err.print(f"Rebuilt: {found.rebuilt}.", style="dim", soft_wrap=True)
        if found.is_due:
            err.print(f"{found.raw_tokens:,} tokens of the session are not condensed; --catch-up does.", style="dim")
        if not found.text:
            of = f" of {found.project}" if found.project and storage_of(settings).is_begun() else ""
            err.print(f"Nothing is remembered{of} yet; `memory run` reads your sessions.", style="dim", soft_wrap=True)
    if found.text and found.rebuilt:  # what is only shown again was logged then
        log_use(settings, "pack", project=found.project, shown=found.shown)
