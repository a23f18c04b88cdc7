"""`memory agents rules`: the approved rules that code can check, and how strict each is."""

from typing import Annotated, Any

import typer

from memory_pipeline.actions.rules import MODES, BackTest, Rule, back_test, describe, past_calls, set_mode
from memory_pipeline.cli.console import MISUSED, AsJson, Yes, confirm, fail, print_json, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.shown_to_agents import approved_rules, refresh_agents
from memory_pipeline.settings import Settings

SHOWN = 10
"""Number of newest stopped calls that are printed."""
EFFECTS = {
    "hint": "an agent that breaks it is told the rule",
    "observe": "violations are recorded only",
    "ask": "the user is asked before such a call",
    "deny": "such a call is stopped",
}
"""The effect of each mode."""

app = typer.Typer(invoke_without_command=True, add_completion=False, rich_markup_mode=None)
RuleId = Annotated[str, typer.Argument(metavar="RULE", help="The id of the rule, as listed.")]


@app.callback()
def rules(context: typer.Context, as_json: AsJson = False) -> None:
    """List the approved rules that code checks, and set how strictly.

    For each line of MEMORY.md: the check, its mode, and how many past tool calls it would have stopped; or why code
    cannot check it.
    """
    if context.invoked_subcommand is not None:
        return
    settings = active_settings()
    lake = Lake.from_settings(settings)
    found = approved_rules(settings, lake)
    calls = list(past_calls(lake)) if any(rule.check for rule in found) else []
    tested = {rule.rule_id: back_test(rule.check, rule.project, calls) for rule in found if rule.check}
    if as_json:
        print_json([_data(rule, tested.get(rule.rule_id)) for rule in found])
        return
    if not found:
        say("MEMORY.md has no approved line yet; `memory review` decides on what is offered.")
        return
    for rule in sorted(found, key=lambda rule: rule.check is None):
        say(f"{rule.rule_id}  {rule.text}", "bold" if rule.check else "")
        if rule.check:
            test = tested[rule.rule_id]
            say(f"  {rule.mode}: {rule.check}; {_counted(test)}{'; too broad to stop calls' * test.is_too_broad}")
        else:
            say(f"  not checked: {rule.reason}", "dim")
    if tested:
        say("`memory agents rules set RULE deny` stops such calls; `show RULE` lists those of the past.", "dim")


@app.command()
def show(rule_id: RuleId) -> None:
    """Show a rule's check and the past calls that it would have stopped."""
    _show_test(active_settings(), rule_id)


@app.command(name="set")
def set_rule(
    rule_id: RuleId,
    mode: Annotated[str, typer.Argument(help=f"One of {', '.join(MODES)}.")],
    yes: Yes = False,
) -> None:
    """Set the mode of a rule: hint, observe, ask or deny.

    Shows what the check would have stopped in the past, and asks. `hint` undoes it.
    """
    if mode not in MODES:
        raise fail(f"{mode!r}: no such mode; expected one of {', '.join(MODES)}.", MISUSED)
    settings = active_settings()
    rule, test = _show_test(settings, rule_id)
    if mode in ("ask", "deny") and test.is_too_broad:
        raise fail(
            f"{rule_id} stays in mode {rule.mode}: the check would have stopped {len(test.stopped)} of "
            f"{test.calls} past calls, so it does not say what the rule means. `memory agents rules set {rule_id} "
            "observe` records such calls without stopping them."
        )
    say(f"From {rule.mode} to {mode}: {EFFECTS[mode]}.")
    confirm("Apply this change?", yes)
    set_mode(settings, rule, mode)
    for problem in refresh_agents(settings):
        say(problem, "yellow")


def _show_test(settings: Settings, rule_id: str) -> tuple[Rule, BackTest]:
    """Print the rule with its back-test, and return both. Raises typer.Exit for an unknown rule, or one that code
    cannot check."""
    lake = Lake.from_settings(settings)
    rule = next((rule for rule in approved_rules(settings, lake) if rule.rule_id == rule_id), None)
    if rule is None:
        raise fail(f"{rule_id!r}: no such rule; `memory agents rules` lists them.", MISUSED)
    if rule.check is None:
        raise fail(f"Code cannot check “{rule.text}”: {rule.reason}.", MISUSED)
    test = back_test(rule.check, rule.project, list(past_calls(lake)))
    say(rule.text, "bold")
    say(f"{rule.mode}: {rule.check}; {_counted(test)}.")
    for call in test.stopped[-SHOWN:]:
        say(f"  {call.day}  {call.session_id[:8]}  {describe(call)}")
    if len(test.stopped) > SHOWN:
        say(f"  and {len(test.stopped) - SHOWN} earlier ones", "dim")
    return rule, test


def _counted(test: BackTest) -> str:
    if not test.calls:
        return "no past call to test it on"
    return f"would have stopped {len(test.stopped)} of {test.calls} past calls"


def _data(rule: Rule, test: BackTest | None) -> dict[str, Any]:
    data = {"id": rule.rule_id, "text": rule.text, "project": rule.project, "since": rule.since}
    if rule.check is None or test is None:
        return data | dict.fromkeys(("mode", "check", "calls", "stopped")) | {"reason": rule.reason}
    stopped = [{"day": call.day, "session_id": call.session_id, "call": describe(call)} for call in test.stopped]
    return data | {"mode": rule.mode, "check": rule.check.data, "calls": test.calls, "stopped": stopped, "reason": None}
