"""`memory agents`: the agents that read the memory, and how."""

from collections import Counter

import typer

from memory_pipeline.actions.outcomes import describe as describe_outcomes
from memory_pipeline.actions.outcomes import outcomes, unheeded
from memory_pipeline.actions.rules import RuleError
from memory_pipeline.agents.agents import AGENTS, tilde_path
from memory_pipeline.agents.connecting import describe, imported_file
from memory_pipeline.agents.hooks import describe as describe_hooks
from memory_pipeline.cli import commands
from memory_pipeline.cli.console import AsJson, print_json, say_pair
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.shown_to_agents import approved_rules

SHOWN = 5
"""Number of last lines shown of the hooks' log."""
app = typer.Typer(cls=commands.LazyGroup, invoke_without_command=True, add_completion=False, rich_markup_mode=None)


@app.callback()
def agents(context: typer.Context, as_json: AsJson = False) -> None:
    """List agents, connect them to the memory, install hooks.

    Without a command, lists each agent with its file, and whether it reads the approved lines and has hooks; then what
    became of hints on tool calls, and the last problems of hooks.
    """
    if context.invoked_subcommand is not None:
        return
    settings = settings_of_call()
    connected, hooked = describe(settings), describe_hooks(settings)
    state = {a.name: connected.get(a.name, "not connected" if a.is_installed else "not installed") for a in AGENTS}
    log, lake = settings.workspace / "connections" / "hooks.log", Lake.from_settings(settings)
    problems = log.read_text("utf-8", "replace").splitlines()[-SHOWN:] if log.exists() else []
    try:
        hints = outcomes(settings, lake, approved_rules(settings, lake))
    except RuleError as error:
        hints, problems = [], [*problems, f"{error}"]
    times, again = Counter[str](hint.outcome for hint in hints), {i: len(own) for i, own in unheeded(hints).items()}
    if as_json:
        found = {"agents": state, "imported_file": str(imported_file(settings)), "hooks": hooked}
        print_json(found | {"last_problems": problems, "hints": times, "unheeded": again})
        return
    for agent in AGENTS:
        how = f"{state[agent.name]}, {hooked.get(agent.name, 'no hooks')}"
        say_pair(agent.name, f"{how} ({tilde_path(agent.instructions())})")
    if hints:
        say_pair("hints on tool calls", describe_outcomes(times))
    for line_id, number in again.items():
        say_pair("not heeded", f"{line_id}, {number} times; `memory why {line_id}` shows it, to change or strike it")
    for line in problems:
        say_pair("problem of a hook", line)


commands.add_placeholders(app, commands.AGENTS)
