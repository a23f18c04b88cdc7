"""`memory agents disconnect`: removes from an agent's file what `memory agents connect` added."""

from pathlib import Path
from typing import Annotated

import typer

from memory_pipeline.agents.agents import Agent, CannotConnectError, agent_of, bytes_of
from memory_pipeline.agents.connecting import Connection, connections, disconnected_text, is_shared
from memory_pipeline.agents.connecting import disconnect as remove_connection
from memory_pipeline.cli.agent_files import show_change, unless_unwritable
from memory_pipeline.cli.connect import AgentName, Yes, resolve_project
from memory_pipeline.cli.console import MISUSED, confirm, one_sentence, say
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.settings import Settings


def disconnect(
    agent: AgentName,
    project: Annotated[
        str | None, typer.Option("--project", metavar="DIR|NAME", help="Disconnect the file of this project.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Remove the lines from an agent's file.

    Restores the file as it was before `memory agents connect`; text written around the block since is kept. Without
    --project, only the file for all projects is changed.
    """
    settings = settings_of_call()
    with one_sentence(CannotConnectError, code=MISUSED):
        named = agent_of(agent)
    with one_sentence(CannotConnectError):
        for connection in _connections_to_remove(settings, named, resolve_project(settings, project)):
            _disconnect(settings, named, connection, yes)


def _connections_to_remove(settings: Settings, agent: Agent, place: tuple[Path, str] | None) -> list[Connection]:
    """The connections of the agent, or the expected one if the list is lost."""
    new = Connection.new(agent, place)
    known = [c for c in connections(settings) if c.agent == agent.name and c.project == new.project]
    here = [c for c in known if place is None or Path(c.path).parent == place[0]]
    return here or [new]


def _disconnect(settings: Settings, agent: Agent, connection: Connection, yes: bool) -> None:
    path = Path(connection.path)
    known = connections(settings)
    with unless_unwritable(path):
        old = bytes_of(path)
        new = old if old is None else disconnected_text(connection, old)
        if new == old and connection not in known:
            say(f"{agent.title} is not connected: {path} has no lines of memory_pipeline.")
            return
        if is_shared(known, connection):
            others = ", ".join(c.agent for c in known if c.path == connection.path and c.agent != agent.name)
            say(f"{path} is unchanged, because {others} also reads it.")
        elif new != old:
            show_change(path, old, new)
            confirm("Apply this change?", yes)
        remove_connection(settings, connection)
    say(f"{agent.title} is no longer connected.")
