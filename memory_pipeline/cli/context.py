"""`memory context`: the briefing, the context pack and the summary of a compaction, for hooks and for programs that
build the context of a session.

Hooks request the briefing and the summary, which therefore fail open: on any error the exit code is 0 and the reason
goes to stderr.
"""

from pathlib import Path
from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, err, fail, print_json
from memory_pipeline.cli.workspace import EXAMPLE_PROJECT, active_settings, migrated, settings_of_call
from memory_pipeline.lake.storage import storage_of
from memory_pipeline.recall.briefing_cache import briefing_for
from memory_pipeline.recall.folders import existing_folder, place_asked_for
from memory_pipeline.recall.usage import log_use
from memory_pipeline.sessions.projects import Place
from memory_pipeline.settings import Settings, load_settings


def context(
    session: Annotated[
        str | None,
        typer.Argument(metavar="SESSION", help="A session's file or id, for --compaction or --pack."),
    ] = None,
    pack: Annotated[
        bool, typer.Option("--pack", help="Print the context pack: what precedes the messages of a session.")
    ] = False,
    compaction: Annotated[
        bool, typer.Option("--compaction", help="Print a summary of SESSION, which is being compacted.")
    ] = False,
    project: Annotated[
        str | None,
        typer.Option(metavar="DIR|NAME", help="Folder or name of the project; the current folder's by default."),
    ] = None,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="With --pack: build a new pack; prompt caches of the old one are lost.")
    ] = False,
    catch_up: Annotated[
        bool, typer.Option("--catch-up", help="With --pack: condense the messages that exceed the working tier.")
    ] = False,
    first_kept: Annotated[
        str | None,
        typer.Option(metavar="ID", help="With --compaction: the first entry that stays; earlier ones are summarised."),
    ] = None,
    tokens_before: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="With --compaction: size of the context as the agent counts it."),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=60, help="With --compaction: time limit; partial results are used after it.")
    ] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON; a summary as pi's hook expects it.")] = False,
    session_option: Annotated[str | None, typer.Option("--session", hidden=True)] = None,
) -> None:
    """Print the context of a new or compacted session.

    By default the brief: approved lines, the last task of the project, what awaits review, and recent statements.
    It stays the same until something changes. --pack prints a longer text that is the same to the byte until it is
    rebuilt; stderr says when and why. --compaction summarises one session from its file alone, without a model.
    """
    named = session or session_option
    # hooks name a folder, and programs have no terminal: an agent must not follow the rules of the examples
    may_be_examples = err.is_terminal if project is None else existing_folder(project) is None
    if not named and may_be_examples and active_settings().shows_examples:
        project = project or EXAMPLE_PROJECT
    if pack and compaction:
        raise fail("--pack and --compaction exclude each other.", MISUSED)
    if compaction:
        if not named:
            raise fail("--compaction needs the session's file or its id.", MISUSED)
        _compaction(named, first_kept, tokens_before, seconds, as_json)
    elif pack:
        _pack(project, named, rebuild, catch_up, as_json)
    elif named:
        raise fail("SESSION is for --pack and --compaction; --project names the folder of a brief.", MISUSED)
    else:
        _brief(project, as_json)


def _brief(project: str | None, as_json: bool) -> None:
    try:
        settings = migrated(load_settings())
        found = briefing_for(settings, _folder_or_place(settings, project))
    except Exception as error:  # a failure must not prevent a session from starting
        err.print(f"No briefing: {error}", style="dim", soft_wrap=True)
        return
    if as_json:
        names = ("project", "tokens", "left_out", "problems", "sections", "text")
        print_json({"budget": settings.brief_tokens} | {name: getattr(found, name) for name in names})
    elif found.text:
        typer.echo(found.text, nl=False)
    for problem in found.problems:
        err.print(problem, style="dim", soft_wrap=True)
    if found.text:
        log_use(settings, "brief", project=found.project, shown=found.shown)
    else:
        _print_nothing_yet(settings, found.project)


def _folder_or_place(settings: Settings, project: str | None) -> Path | Place:
    """The folder or the place of the project. Tables are read only for a name, as that doubles the time of a hook."""
    if project is None:
        return Path.cwd()
    if folder := existing_folder(project):
        return folder
    from memory_pipeline.lake.store import Lake

    return place_asked_for(Lake.from_settings(settings), project)


def _print_nothing_yet(settings: Settings, project: str | None) -> None:
    of = f" about {project}" if project and storage_of(settings).is_begun() else ""
    err.print(f"Nothing is remembered{of} yet; `memory run` reads your sessions.", style="dim", soft_wrap=True)


def _pack(project: str | None, session: str | None, rebuild: bool, catch_up: bool, as_json: bool) -> None:
    from memory_pipeline.lake.store import Lake
    from memory_pipeline.recall.compaction import session_source
    from memory_pipeline.recall.context_pack import context_pack

    settings = settings_of_call()
    where = Path.cwd() if project is None else place_asked_for(Lake.from_settings(settings), project)
    path = Path(session_source(settings, session).path) if session else None
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
            err.print(
                f"{found.raw_tokens:,} tokens of the session are not condensed; --catch-up condenses them.", style="dim"
            )
        if not found.text:
            _print_nothing_yet(settings, found.project)
    if found.text and found.rebuilt:  # a repeated pack is already logged
        log_use(settings, "pack", project=found.project, shown=found.shown)


def _compaction(session: str, first_kept: str | None, tokens_before: int | None, seconds: float, as_json: bool) -> None:
    try:
        from memory_pipeline.recall.compaction import compaction_summary, session_source

        settings = migrated(load_settings())
        source = session_source(settings, session)
        found = compaction_summary(
            settings, source, first_kept=first_kept, tokens_before=tokens_before, seconds=seconds
        )
    except Exception as error:  # the agent then makes its own summary
        err.print(f"No summary: {error}", style="dim", soft_wrap=True)
        return
    if found is None:
        err.print(f"No summary: nothing was observed within {seconds:g} s.", style="dim", soft_wrap=True)
        return
    if as_json:
        print_json(found.as_json())
    else:
        typer.echo(found.summary, nl=False)
    log_use(settings, "compaction", shown=found.shown)
