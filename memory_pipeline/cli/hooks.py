"""`memory agents hooks`: hooks through which agents call the memory when a session starts or is compacted."""

from pathlib import Path
from typing import Annotated

import typer

from memory_pipeline.actions.files import remove_files
from memory_pipeline.actions.rules import RuleError
from memory_pipeline.agents.agents import CannotConnectError, agent_of, installed
from memory_pipeline.agents.files import bytes_of
from memory_pipeline.agents.hooks import has_hooks, hooked, hooks_file, removed, with_hooks
from memory_pipeline.agents.hooks import install as write_hooks
from memory_pipeline.agents.hooks import remove as remove_hooks
from memory_pipeline.cli.agent_files import show_change, unless_unwritable
from memory_pipeline.cli.connect import AgentName, Yes
from memory_pipeline.cli.console import MISUSED, confirm, one_sentence, say
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
    with one_sentence(CannotConnectError, code=MISUSED):
        named = agent_of(agent)
    with one_sentence(CannotConnectError, RuleError):
        path = hooks_file(installed(named))
        with unless_unwritable(path):
            old, known = bytes_of(path), hooked(settings).get(named.name)
            wanted = bool(known and known.actions) if actions is None else actions
            new = with_hooks(settings, named, old, actions=wanted)
            if new == old and known:
                say(f"{named.title} already has the hooks, in {path}.")
                return
            show_change(path, old, new)
            confirm("Apply this change?", yes)
            write_hooks(settings, named, actions=wanted)
            lake = Lake.from_settings(settings)
            if has_hooks(settings):
                write_hints(settings, lake)
            else:
                remove_files(settings)
    say(f"{named.title} calls the hooks from its next session on; `memory agents hooks remove {named.name}` undoes it.")
    say("A compaction summary mostly takes longer than the second that a hook has; the agent then writes its own.")
    if wanted:
        say("`memory agents rules` shows which approved rules code can check, and how strict to be.")
    if named.name == "codex":
        say(
            "Codex runs a hook only after you trust it: start `codex` and confirm, or enter /hooks.",
            "yellow",
        )


@app.command()
def remove(agent: AgentName, yes: Yes = False) -> None:
    """Remove the hooks; an unchanged file is restored byte for byte."""
    settings = settings_of_call()
    with one_sentence(CannotConnectError, code=MISUSED):
        named = agent_of(agent)
    with one_sentence(CannotConnectError):
        known = hooked(settings).get(named.name)
        path = Path(known.path) if known else hooks_file(named)
        with unless_unwritable(path):
            old = bytes_of(path)
            new = removed(settings, named, old)
            if new == old and known is None:
                say(f"{path} has no hooks of memory_pipeline.")
                return
            if new != old:
                show_change(path, old, new)
                confirm("Apply this change?", yes)
            remove_hooks(settings, named)
            if not has_hooks(settings):
                remove_files(settings)
    say(f"{named.title} no longer calls the hooks.")
