"""`memory agents connect` and `disconnect`: an agent reads the approved lines in each of its sessions, or no more."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from memory_pipeline.agents import connecting
from memory_pipeline.agents.agents import BY_NAME, Agent, CannotConnectError, agent_of, bytes_of, installed
from memory_pipeline.agents.connecting import IMPORT, Connection, Line, connections, imported_file
from memory_pipeline.cli.console import MISUSED, Yes, confirm, fail, say, show_change, unless_unwritable
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.shown_to_agents import lines_for_agents
from memory_pipeline.recall.folders import existing_folder, place_of_folder, places_of_project, project_of_place
from memory_pipeline.settings import Settings


def _agent_named(name: str) -> Agent:
    try:
        return agent_of(name)
    except CannotConnectError as error:
        raise fail(f"{error}", MISUSED) from None


AgentName = Annotated[Agent, typer.Argument(metavar="AGENT", help=f"One of {', '.join(BY_NAME)}.", parser=_agent_named)]


def connect(
    agent: AgentName,
    project: Annotated[
        str | None,
        typer.Option(
            "--project", metavar="DIR|NAME", help="Connect the file of this project, for lines of this project only."
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Let an agent read the approved lines.

    Shows the change and asks for confirmation. Lines that apply to every project go into the file that the agent reads
    in every session, and follow MEMORY.md. Lines of one project only go into the file of that project, with --project.
    """
    settings = settings_of_call()
    _connect(settings, installed(agent), _named_project(settings, project), yes)


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
    place = _named_project(settings, project)
    expected = Connection.new(agent, place)
    known = [c for c in connections(settings) if c.agent == agent.name and c.project == expected.project]
    here = [c for c in known if place is None or Path(c.path).parent == place[0]]
    for connection in here or [expected]:  # also if the list of connections is lost
        _disconnect(settings, agent, connection, yes)


def _named_project(settings: Settings, project: str | None) -> tuple[Path, str] | None:
    """The folder and the name of the project, given one of them. Raises `CannotConnectError`, and typer.Exit if it is
    neither."""
    if project is None:
        return None
    lake = Lake.from_settings(settings)
    folder = existing_folder(project) or _project_folder(lake, project)
    folder = folder.absolute()
    return folder, project_of_place(lake, place_of_folder(folder)) or folder.name


def _project_folder(lake: Lake, name: str) -> Path:
    """The only folder of the project on this machine."""
    worked_in = (folder for place in places_of_project(lake, name) if (folder := existing_folder(place.cwd)))
    found = list(dict.fromkeys(place_of_folder(folder).cwd for folder in worked_in))
    if len(found) != 1:
        parts = f"its sessions worked in {', '.join(found)}" if found else "none of its folders is on this machine"
        raise CannotConnectError(f"The project {name!r}: {parts}; name the folder, `--project DIR`.")
    return Path(found[0])


def _connect(settings: Settings, agent: Agent, place: tuple[Path, str] | None, yes: bool) -> None:
    connection = Connection.new(agent, place)
    path = Path(connection.path)
    with unless_unwritable(path):
        try:
            lines = lines_for_agents(settings)
        except FileNotFoundError:
            raise fail(
                f"{settings.memory_file} does not exist yet, so there is nothing to show an agent: `memory run` finds "
                "lines, and `memory review` approves them."
            ) from None
        old = bytes_of(path)
        new = connecting.connected_text(settings, connection, lines, old)
        known = connections(settings)
        _print_line_counts(settings, agent, connection, lines)
        if new == old and connection in known:
            say(f"{agent.title} already reads the lines, in {path}.")
            return
        show_change(path, old, new)
        if place and (place[0] / ".git").exists() and path.parent == place[0]:
            say(f"It is in a repository: do not commit {path.name} if the lines are private.", "yellow")
        confirm("Apply this change?", yes)
        connecting.connect(settings, connection, lines)
    say(f"{agent.title} reads the lines from its next session on; `memory agents disconnect {agent.name}` undoes it.")


def _print_line_counts(settings: Settings, agent: Agent, connection: Connection, lines: Sequence[Line]) -> None:
    """Print how many of the approved lines go into the file, and how the others reach the agent."""
    mine = sum(line.project == connection.project for line in lines)
    where = (
        f"{imported_file(settings)}, which {connection.path} imports" if connection.key == IMPORT else connection.path
    )
    say(f"{mine} of {len(lines)} approved lines go into {where}.", "" if mine else "yellow")
    if other := len(lines) - mine:
        say(
            f"{other} apply elsewhere: `memory agents connect {agent.name}` is for lines of every project, `--project "
            f"DIR` for those of one; `memory agents hooks install {agent.name}` gives each session its own."
        )


def _disconnect(settings: Settings, agent: Agent, connection: Connection, yes: bool) -> None:
    path = Path(connection.path)
    known = connections(settings)
    with unless_unwritable(path):
        old = bytes_of(path)
        new = old if old is None else connecting.disconnected_text(connection, old)
        if new == old and connection not in known:
            say(f"{agent.title} is not connected: {path} has no lines of memory_pipeline.")
            return
        if connecting.is_shared(known, connection):
            others = ", ".join(c.agent for c in known if c.path == connection.path and c.agent != agent.name)
            say(f"{path} is unchanged, because {others} also reads it.")
        elif new != old:
            show_change(path, old, new)
            confirm("Apply this change?", yes)
        connecting.disconnect(settings, connection)
    say(f"{agent.title} is no longer connected.")
