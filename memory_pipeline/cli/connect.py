"""`memory connect`: let an agent read the approved lines in each of its sessions."""

from pathlib import Path
from typing import Annotated

import typer

from memory_pipeline.cli.agent_files import confirm, show_change, unless_unwritable
from memory_pipeline.cli.console import MISUSED, fail, one_sentence, print_json, say, say_pair
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.connections.agents import AGENTS, BY_NAME, Agent, CannotConnectError, agent_of, installed
from memory_pipeline.connections.connecting import (
    IMPORT,
    Connection,
    connected_text,
    connections,
    imported_file,
    told,
)
from memory_pipeline.connections.connecting import connect as write_connection
from memory_pipeline.connections.files import bytes_of, told_path
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.shown_to_agents import lines_for_agents
from memory_pipeline.recall.folders import place_of_folder, project_of_place
from memory_pipeline.settings import Settings

Project = Annotated[
    Path | None, typer.Option("--project", metavar="DIR", help="The file of this project, for its lines alone.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
AgentName = Annotated[str, typer.Argument(metavar="AGENT", help=f"One of {', '.join(BY_NAME)}.")]


def connect(
    agent: Annotated[str | None, typer.Argument(metavar="[AGENT]", help=f"One of {', '.join(BY_NAME)}.")] = None,
    project: Project = None,
    yes: Yes = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what is connected as JSON.")] = False,
) -> None:
    """Let an agent read the approved lines.

    Shows what it would change, and asks. The lines that hold in every project go into the file that the agent reads in
    every session, and follow MEMORY.md. Those of one project go nowhere else than into the file of that project, and
    only with --project. Without AGENT: what is connected.
    """
    settings = settings_of_call()
    if agent is None:
        _list(settings, as_json)
        return
    with one_sentence(CannotConnectError, code=MISUSED):
        named = agent_of(agent)
    with one_sentence(CannotConnectError):
        place = place_of(settings, project)
        _connect(settings, installed(named), place, yes)


def place_of(settings: Settings, project: Path | None) -> tuple[Path, str] | None:
    """The folder and the name of the project."""
    if project is None:
        return None
    folder = project.expanduser().absolute()
    if not folder.is_dir():
        raise CannotConnectError(f"{folder}: expected the folder of a project, and there is none.")
    return folder, project_of_place(Lake(settings.lake_dir), place_of_folder(folder)) or folder.name


def _connect(settings: Settings, agent: Agent, place: tuple[Path, str] | None, yes: bool) -> None:
    connection = Connection.new(agent, place)
    path = Path(connection.path)
    with unless_unwritable(path):
        try:
            lines = lines_for_agents(settings)
        except FileNotFoundError:
            raise fail(
                f"{settings.memory_file} is not there yet, so there is nothing to show an agent: `memory run` finds "
                "lines, and `memory review` approves them."
            ) from None
        old = bytes_of(path)
        new = connected_text(settings, connection, lines, old)
        known = connections(settings)
        if new == old and connection in known:
            say(f"{agent.title} reads the lines already, in {path}.")
            return
        show_change(path, old, new)
        if connection.key == IMPORT:
            mine = sum(line.project is None for line in lines)
            say(f"{imported_file(settings)}: {mine} lines of MEMORY.md, without those of single projects.", "dim")
        if place and (place[0] / ".git").exists() and path.parent == place[0]:
            say(
                f"It lies in a repository: do not commit {path.name} if the lines are nobody else's business.", "yellow"
            )
        confirm(yes)
        write_connection(settings, connection, lines)
    of_projects = sorted({line.project for line in lines if line.project})
    say(f"{agent.title} reads the lines from its next session on; `memory disconnect {agent.name}` undoes it.")
    if of_projects and not place:
        say(
            f"Not among them: lines of {', '.join(of_projects)}. "
            + (f"`memory hooks install {agent.name}` shows each session those of its project; " if agent.hooks else "")
            + f"`memory connect {agent.name} --project DIR` writes them into the project's own file."
        )


def _list(settings: Settings, as_json: bool) -> None:
    with one_sentence(CannotConnectError):
        connected = told(settings)
    state = {a.name: connected.get(a.name, "not connected" if a.is_installed else "not installed") for a in AGENTS}
    if as_json:
        print_json({"agents": state, "imported_file": str(imported_file(settings))})
        return
    for agent in AGENTS:
        say_pair(agent.name, f"{state[agent.name]} ({told_path(agent.instructions())})")
