"""The `memory` command; `commands` lists its subcommands."""

import atexit
import gc
import os
from typing import Annotated

import typer

from memory_pipeline import __version__
from memory_pipeline.cli.commands import COMMANDS, MainGroup, add_placeholders
from memory_pipeline.cli.console import err, fail
from memory_pipeline.llm.prompts import is_inside

ALLOCATIONS = 10_000
"""Allocations between garbage collections. With Python's default of 700, `memory status` after a year took 4.1 s of
CPU, with this value 3.6, and no less with a higher one."""


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memory-pipeline {__version__}")
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


app = typer.Typer(
    cls=MainGroup,
    callback=_main,
    help="Durable memory from the transcripts of your coding agents, reviewed by you.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: no boxes, no types of flags, and half the start-up time
    pretty_exceptions_show_locals=False,  # locals may contain text of sessions
)
add_placeholders(app, COMMANDS)


def _sentence_for(error: Exception) -> str | None:
    """A sentence on what to do about an error of the machine; None if the error is a bug."""
    from filelock import Timeout

    from memory_pipeline.settings import named_workspace
    from memory_pipeline.workspace.free_space import disk_full, is_disk_full

    workspace = named_workspace()
    if isinstance(error, Timeout):
        return f"{error}"
    if is_disk_full(error, workspace):
        return disk_full(workspace)
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {(error.strerror or 'cannot be used').lower()}. Fix that and run it again."
    return None


def main() -> None:
    """Run the command; an error that a user can fix is printed as a sentence, any other as a traceback."""
    if is_inside():  # started by a hook of a harness that the pipeline itself called
        err.print("Not started: a model command of the pipeline started this process.", style="dim")
        return
    gc.set_threshold(ALLOCATIONS)
    gc.disable()  # until the modules are loaded, which leaves no garbage
    # or pydantic looks for plugins in the metadata of every installed package
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    atexit.register(gc.freeze)  # or the end of the process, which frees its memory anyway, looks for garbage in it
    os.umask(0o077)  # files with text of sessions are private to the user
    try:
        app()
    except Exception as error:
        if sentence := _sentence_for(error):
            raise SystemExit(fail(sentence).exit_code) from None
        raise


if __name__ == "__main__":
    main()
