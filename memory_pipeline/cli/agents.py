"""`memory agents`: the agents that read the memory, and how."""

from typing import Annotated

import typer

from memory_pipeline.agents.agents import AGENTS, CannotConnectError
from memory_pipeline.agents.connecting import describe, imported_file
from memory_pipeline.agents.files import tilde_path
from memory_pipeline.cli import commands
from memory_pipeline.cli.console import one_sentence, print_json, say_pair
from memory_pipeline.cli.workspace import settings_of_call

AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]
app = typer.Typer(cls=commands.LazyGroup, invoke_without_command=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def agents(context: typer.Context, as_json: AsJson = False) -> None:
    """List agents, connect them to the memory, install hooks.

    Without a command, the installed agents are listed with the file that each reads.
    """
    if context.invoked_subcommand is not None:
        return
    settings = settings_of_call()
    with one_sentence(CannotConnectError):
        connected = describe(settings)
    state = {a.name: connected.get(a.name, "not connected" if a.is_installed else "not installed") for a in AGENTS}
    if as_json:
        print_json({"agents": state, "imported_file": str(imported_file(settings))})
        return
    for agent in AGENTS:
        say_pair(agent.name, f"{state[agent.name]} ({tilde_path(agent.instructions())})")


commands.add_placeholders(app, commands.AGENTS)
