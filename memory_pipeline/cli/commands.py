"""The summaries of the commands, and the group that imports the module of a command when it is called.

Modules import polars or Dagster, so `memory --help`, `--version` and the completion of command names are fast only
without them.
"""

import gc
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from memory_pipeline.cli.console import FAILED, MISUSED, err, fail
from memory_pipeline.errors import MemoryPipelineError, MisuseError

SECTIONS = {
    "Every day": {
        "run": "Bring the latest days, or the given days, up to date.",
        "status": "Show what was read, what is out of date and what awaits review.",
        "open": "Review, search and read the memory in the browser.",
        "review": "Decide on the pending proposals, key by key.",
        "remember": "Propose a line for MEMORY.md in your own words.",
        "friction": "List recurring problems and the changes that would end them.",
        "proof": "Show how often you had to repeat what the memory already held.",
    },
    "Ask": {
        "recall": "Answer a question from past sessions, with citations.",
        "search": "List messages, observations and approved lines for a query.",
        "show": "Show the log of a day, a session, or the messages around one.",
        "why": "Trace a line back to the messages that it comes from.",
        "sql": "Query the tables with SQL.",
    },
    "Agents": {
        "agents": "List agents, connect them to the memory, install hooks.",
        "context": "Print the context of a new or compacted session.",
        "mcp": "Serve agents over MCP on stdin and stdout.",
    },
    "Set up and look after": {
        "setup": "Choose a model, examine it and set it.",
        "settings": "Show the settings with their sources, and change them.",
        "doctor": "Check the workspace and suggest fixes.",
        "backfill": "Bring all days of a range up to date, month by month.",
        "import": "Propose the memories of other tools for review.",
        "forget": "Permanently delete a session, line or phrase.",
        "ui": "Start Dagster's UI and daemon; Ctrl-C stops them.",
        "admin": "Upkeep and sharing: index, service, report, audit, push.",
    },
}
"""The sections of `memory --help`, each command with the first line of its docstring. The command is the function
`NAME` of its module, or the module's `app` if it has subcommands."""
COMMANDS = {name: summary for section in SECTIONS.values() for name, summary in section.items()}
AGENTS = {
    "connect": "Let an agent read the approved lines.",
    "disconnect": "Remove the lines from an agent's file.",
    "hooks": "Give sessions the brief, and hints on tool calls, by hooks.",
    "rules": "List the approved rules that code checks, and set how strictly.",
}
"""The commands of `memory agents`, except its own."""
ADMIN = {
    "index": "Show the search index and rebuild it.",
    "models": "List the embedding models on this machine and download others.",
    "archive": "Move old daily logs to memory/archive/.",
    "identity": "Check the identity files of your agents.",
    "service": "Run the UI, sensors and schedules while you are logged in.",
    "report": "Write the quality report and list failed checks.",
    "audit": "Check a memory file against the sessions.",
    "push": "Upload this machine's redacted sessions to a shared lake.",
}
"""The commands of `memory admin`."""
OLD_NAMES = {
    **{name: f"agents {name}" for name in AGENTS},
    **{name: f"admin {name}" for name in ADMIN},
    "brief": "context",
    "pack": "context --pack",
    "compaction": "context --compaction",
    "estimate": "run --estimate",
    "log": "show",
}
"""Commands of earlier versions, which work for one more release, with their replacements."""
CALLED_BY_PROGRAMS = ("brief", "pack", "compaction")
"""Old names that users' hooks and scripts call. A program gets no note about the new name."""
REMOVED = {
    "batch": "`memory admin batch` was removed; `memory run` sends the requests at once, at the ordinary price.",
    "team": "`memory admin team` was removed; `memory import` proposes the lines of another MEMORY.md.",
}
"""Commands of the last release that have no replacement, with the sentence that they answer for one more release."""
MODULES = {
    **{"backfill": "run", "recall": "search", "why": "show", "open": "ui", "disconnect": "connect"},
    **{"remember": "proposing", "import": "proposing", "archive": "admin", "identity": "admin", "report": "admin"},
}
"""Modules of commands that share one."""


class LazyGroup(TyperGroup):
    """A group that lists placeholders and imports the module of a command when it is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        if args[0] in REMOVED:
            raise fail(REMOVED[args[0]], MISUSED)
        name, command, rest = super().resolve_command(ctx, args)
        is_placeholder = name in (COMMANDS | AGENTS | ADMIN)
        return name, load_command(name) if name and command and is_placeholder else command, rest


class MainGroup(LazyGroup):
    """The commands of `memory` in sections; old names answer without being listed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        if new := OLD_NAMES.get(args[0]):
            if args[0] not in CALLED_BY_PROGRAMS or err.is_terminal:
                err.print(
                    f"`memory {args[0]}` is now `memory {new}`; the next release drops the old name.", style="dim"
                )
            args = [*new.split(), *args[1:]]
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Call the command. An error that a user can fix is printed as a sentence, without a traceback."""
        try:
            return super().invoke(ctx)
        except MemoryPipelineError as error:
            raise fail(f"{error}", MISUSED if isinstance(error, MisuseError) else FAILED) from None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{width}}", summary) for name, summary in commands.items()])


def function_of(name: str) -> Any:
    """The function that the command calls, or that has the help of its subcommands."""
    module = import_module(f"memory_pipeline.cli.{MODULES.get(name, name)}")
    return getattr(module, "import_" if name == "import" else name)


def load_command(name: str) -> Any:
    """The command with its options."""
    function = function_of(name)
    gc.enable()
    module = sys.modules[function.__module__]
    if name in MODULES or not hasattr(module, "app"):  # without subcommands
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        one.command(name)(function)
        return typer.main.get_command(one)
    group = typer.main.get_command(module.app)
    group.name = name
    return group


def add_placeholders(app: typer.Typer, commands: Mapping[str, str]) -> None:
    for name, summary in commands.items():
        app.command(name, help=summary)(lambda: None)
