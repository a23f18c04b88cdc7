"""The `memory` command.

Its commands are known here by name and one line each; the module of one, and with it polars or Dagster, is imported
only when it is called. So `memory --help`, `--version` and completing a command's name are quick.
"""

import gc
import os
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from memory_pipeline import __version__
from memory_pipeline.cli.console import err, fail
from memory_pipeline.llm.own_sessions import is_inside

COMMANDS = {
    "run": "Bring the last days, or the days named, up to date.",
    "backfill": "Bring all days of a range up to date, month by month.",
    "setup": "Choose a model, try it and set it.",
    "estimate": "Show what `memory run` would ask of the models, and the cost.",
    "batch": "Ask the observer's model in batches, at half the price.",
    "status": "Show what is read, not readable, out of date and pending.",
    "doctor": "Look whether all is well, and say how to mend what is not.",
    "open": "Review, search and read the memory in the browser.",
    "review": "Decide on the pending proposals, key by key.",
    "connect": "Let an agent read the approved lines.",
    "disconnect": "Take the lines out of an agent's file again.",
    "hooks": "Have agents ask for the memory when a session starts.",
    "brief": "Print what a new session should know.",
    "compaction": "Print a summary of a session that is being compacted.",
    "pack": "Print the context pack of a project or session.",
    "recall": "Answer a question from what was said, with the places.",
    "search": "List what was said, observed and approved that fits a query.",
    "show": "Show the messages around one, or the messages of a session.",
    "why": "Show where a line comes from, back to the words that were said.",
    "friction": "List what keeps going wrong, and what would end it.",
    "remember": "Offer a line for MEMORY.md in your own words.",
    "import": "Offer what other tools remember of you for review.",
    "push": "Send what was said here, redacted, to a lake in a bucket.",
    "team": "Offer a team's memory what two of its people approved.",
    "forget": "Take a session, a line or words out of all that is kept.",
    "mcp": "Answer agents over MCP, on stdin and stdout.",
    "log": "Show the log of a day, memory/YYYY-MM-DD.md.",
    "report": "Write the quality report, and tell what failed.",
    "audit": "Check a memory file against what was said.",
    "sql": "Ask the tables anything, in SQL.",
    "archive": "Move old daily logs to memory/archive/.",
    "identity": "Check the files that say who your agents are.",
    "index": "Show what is searched, and make it anew.",
    "models": "Show the embedding models of this machine, and fetch others.",
    "settings": "Show what is set and where, and change it.",
    "service": "Run the UI, sensors and schedules whenever you are logged in.",
    "ui": "Start Dagster's UI and daemon; stop them with Ctrl-C.",
}
"""By name: the first line of its docstring. The command is the function `memory_pipeline.cli.NAME.NAME`, or the Typer
`memory_pipeline.cli.NAME.app` where it has commands of its own."""
MODULES = {"import": "importing"}
"""Of a name that Python keeps for itself, the one that is used in its place."""


ALLOCATIONS = 10_000
"""After how many objects Python looks for those that nothing holds. With its own 700 `memory status` after a year took
4.1 s of the processor, with this 3.6, and no more with fewer looks."""


class LazyGroup(TyperGroup):
    """Lists placeholders, which have all that a list shows, and imports the command that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, name and placeholder and load_command(name), rest


def load_command(name: str) -> Any:
    """The command with its options."""
    own = MODULES.get(name, name)
    module = import_module(f"memory_pipeline.cli.{own}")
    if not hasattr(module, "app"):  # without commands of its own
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        one.command(name)(getattr(module, own))
        return typer.main.get_command(one)
    group = typer.main.get_command(module.app)
    group.name = name
    return group


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
    cls=LazyGroup,
    callback=_main,
    help="Durable memory from the transcripts of your coding agents, reviewed by you.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: no boxes, no types of flags, and half the start-up time
    pretty_exceptions_show_locals=False,  # locals may hold what was said
)
for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(lambda: None)


def _expected_errors() -> tuple[type[Exception], ...]:
    """What a user can fix. A function, because the modules that define them are imported by what raises them."""
    from filelock import Timeout

    from memory_pipeline.errors import CannotGoOnError, TryAgainLaterError
    from memory_pipeline.lake.store import DamagedTableError
    from memory_pipeline.markdown.safe_write import ChangedMeanwhileError

    return DamagedTableError, TryAgainLaterError, CannotGoOnError, ChangedMeanwhileError, Timeout


def _of_a_full_disk(error: Exception) -> str | None:
    from memory_pipeline.settings import named_workspace
    from memory_pipeline.workspace.free_space import disk_full, is_disk_full

    workspace = named_workspace()
    return disk_full(workspace) if is_disk_full(error, workspace) else None


def main() -> None:
    """Run the command; what a user can fix is a sentence, everything else a traceback."""
    if is_inside():  # started by a hook of the harness that the pipeline itself has called
        err.print("Not started: a model command of the pipeline is above this one.", style="dim")
        return
    gc.set_threshold(ALLOCATIONS)
    os.umask(0o077)  # what was said is nobody else's to read, in whatever file it comes to lie
    try:
        app()
    except Exception as error:
        if isinstance(error, _expected_errors()):
            raise SystemExit(fail(str(error)).exit_code) from None
        if sentence := _of_a_full_disk(error):
            raise SystemExit(fail(sentence).exit_code) from None
        if not isinstance(error, OSError) or not error.filename:
            raise
        sentence = f"{error.filename}: {(error.strerror or 'cannot be used').lower()}. Fix that and run it again."
        raise SystemExit(fail(sentence).exit_code) from None


if __name__ == "__main__":
    main()
