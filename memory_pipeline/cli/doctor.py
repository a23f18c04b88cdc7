"""`memory doctor`: check the workspace and suggest fixes."""

from typing import Annotated

import typer

from memory_pipeline.cli.console import FAILED, AsJson, err, print_json, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.operations.doctor import OK, PROBLEM, WARNING, Automation, Finding, examine, mend
from memory_pipeline.settings import Settings, named_workspace
from memory_pipeline.settings.marks import stored_format

STYLES = {OK: "green", WARNING: "yellow", PROBLEM: "red"}


def doctor(
    fix: Annotated[bool, typer.Option("--fix", help="Apply the fixes that are safe, then check again.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check the workspace and suggest fixes.

    Checks paths, permissions, disk, time zone, session files, locks, tables, index, models, agents and Dagster.
    The exit code is 1 if there is a problem, 0 if there are only warnings.
    """
    named = named_workspace()
    before = stored_format(named)
    settings = active_settings()
    if settings.workspace == named and before < stored_format(named):
        sentence = f"This workspace of an earlier version was converted; copies are in {settings.backups}."
        err.print(sentence, style="dim", soft_wrap=True)
    found = _examined(settings)
    mended = mend(found) if fix else []
    if mended:
        found = _examined(settings)
    if as_json:
        rows = [{name: getattr(f, name) for name in ("about", "level", "said", "fix")} for f in found]
        print_json({"findings": rows, "mended": [f"{f.about}: {f.said}" for f in mended]})
    else:
        for finding in mended:
            say(f"fixed    {finding.about}: {finding.said}", "green")
        for finding in found:
            _print(finding)
    if any(finding.level == PROBLEM for finding in found):
        raise typer.Exit(FAILED)


def _print(finding: Finding) -> None:
    say(f"{finding.level:<8} {finding.about}: {finding.said}", STYLES[finding.level] if finding.level != OK else "")
    if finding.fix:
        by_itself = "; `memory doctor --fix` applies it" if finding.mend else ""
        say(f"         fix: {finding.fix}{by_itself}", "dim")


def _examined(settings: Settings) -> list[Finding]:
    return examine(settings, lambda: _known_automation(settings), lambda: _close_dead(settings))


def _known_automation(settings: Settings) -> Automation | None:
    """The state of automation from Dagster's instance; it is not created if missing."""
    if not (settings.dagster_home / "dagster.yaml").exists():
        return None
    from memory_pipeline.defs.runs import automation_of, instance_of

    with instance_of(settings) as instance:
        return automation_of(settings, instance)


def _close_dead(settings: Settings) -> None:
    from memory_pipeline.defs.runs import instance_of
    from memory_pipeline.defs.under_way import close_dead_runs

    with instance_of(settings) as instance:
        close_dead_runs(instance)
