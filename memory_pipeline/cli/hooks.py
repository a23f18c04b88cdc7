"""`memory agents hooks`: hooks through which agents call the memory when a session starts or is compacted."""

from pathlib import Path
from typing import Annotated

import typer

from memory_pipeline.actions.files import remove_files
from memory_pipeline.agents import hooks as agent_hooks
from memory_pipeline.agents.agents import bytes_of, installed
from memory_pipeline.agents.hooks import has_hooks, hooked, hooks_file
from memory_pipeline.cli.connect import AgentName
from memory_pipeline.cli.console import Yes, confirm, say, show_change, unless_unwritable
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.shown_to_agents import write_hints

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def hooks() -> None:
    """Give sessions the brief, and hints on tool calls, by hooks."""


@app.command()
def install(
    agent: AgentName,
    actions: Annotated[
        bool | None,
        typer.Option(
            "--actions/--no-actions",
            help="Also call the memory before and after tool calls. Without either, this stays as it is.",
        ),
    ] = None,
    yes: Yes = False,
) -> None:
    """Install the hooks of an agent.

    Shows the change and asks. Every session that starts then gets the briefing of its project, and one that is
    compacted a summary from the memory. With --actions, the agent is told in one line when a command is known to fail
    here, how the same failure was cured before, and which approved rule a call breaks. A hook takes less than a second
    in any case, and prints nothing if it fails.
    """
    settings = settings_of_call()
    path = hooks_file(installed(agent))
    with unless_unwritable(path):
        old, known = bytes_of(path), hooked(settings).get(agent.name)
        wanted = bool(known and known.actions) if actions is None else actions
        new = agent_hooks.with_hooks(settings, agent, old, actions=wanted)
        if new == old and known:
            say(f"{agent.title} already has the hooks, in {path}.")
            return
        show_change(path, old, new)
        confirm("Apply this change?", yes)
        agent_hooks.install(settings, agent, actions=wanted)
        lake = Lake.from_settings(settings)
        if has_hooks(settings):
            write_hints(settings, lake)
        else:
            remove_files(settings)
    say(f"{agent.title} calls the hooks from its next session on; `memory agents hooks remove {agent.name}` undoes it.")
    say("A compaction summary mostly takes longer than the second that a hook has; the agent then writes its own.")
    if wanted:
        say("`memory agents rules` shows which approved rules code can check, and how strict to be.")
    if agent.name == "codex":
        say("Codex runs a hook only after you trust it: start `codex` and confirm, or enter /hooks.", "yellow")


@app.command()
def remove(agent: AgentName, yes: Yes = False) -> None:
    """Remove the hooks; an unchanged file is restored byte for byte."""
    settings = settings_of_call()
    known = hooked(settings).get(agent.name)
    path = Path(known.path) if known else hooks_file(agent)
    with unless_unwritable(path):
        old = bytes_of(path)
        new = agent_hooks.removed(settings, agent, old)
        if new == old and known is None:
            say(f"{path} has no hooks of memory_pipeline.")
            return
        if new != old:
            show_change(path, old, new)
            confirm("Apply this change?", yes)
        agent_hooks.remove(settings, agent)
        if not has_hooks(settings):
            remove_files(settings)
    say(f"{agent.title} no longer calls the hooks.")
