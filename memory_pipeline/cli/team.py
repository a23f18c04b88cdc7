"""`memory admin team`: proposes lines that two people approved independently to their team's memory."""

from pathlib import Path
from typing import Annotated, Any

import typer
from filelock import Timeout

from memory_pipeline.cli.console import MISUSED, fail, print_json, say
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.lake.opening import storage_at
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.review import now_utc, reconcile
from memory_pipeline.proposals.team import MIN_PEOPLE, Agreed, Offered, agreed_lines, offer
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace

WAIT_SECONDS = 2.0
"""Seconds to wait for a run that is writing REVIEW.md, which then includes the lines."""


def team(
    people: Annotated[
        list[str] | None,
        typer.Option(
            "--person",
            metavar="NAME=LAKE",
            help=("A person with the folder or URL of their lake; repeat for each person."),
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be offered.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Propose lines that two people have approved to a team's memory.

    The workspace is the team's (MEMORY_WORKSPACE). Only promotions are read: the lines that each person
    approved for their own MEMORY.md. A line that two people have, even in other words, becomes a proposal of the team
    once; `memory review` decides.
    """
    settings = settings_of_call()
    lakes = _lakes(settings, people or [])
    workspace, now = Workspace.open(settings), now_utc()
    agreed = agreed_lines(workspace, lakes)
    offered = [] if dry_run else [offer(workspace, one, now) for one in agreed]
    if any(one.made and not one.made.known for one in offered):
        try:
            reconcile(workspace, now, wait=WAIT_SECONDS)
        except Timeout:
            say("REVIEW.md is being written; the next run puts the lines into it.")
    if as_json:
        data = [_row(one, offered[number] if offered else None) for number, one in enumerate(agreed)]
        print_json({"people": sorted(lakes), "lines": data})
        return
    if not agreed:
        say(f"No line is approved by {MIN_PEOPLE} of {', '.join(sorted(lakes))}.")
    for number, one in enumerate(agreed):
        say(one.text, "bold")
        say(f"  approved by {one.owner_names}{_outcome(offered[number]) if offered else ''}")
    if any(one.made and not one.made.known for one in offered):
        say(f"To decide on: {settings.review_file} or `memory review`")


def _lakes(settings: Settings, people: list[str]) -> dict[str, Lake]:
    """The lakes by name. Raises `typer.Exit` for a value that names no lake."""
    found: dict[str, Lake] = {}
    for person in people:
        name, _, place = person.partition("=")
        if not name.strip() or not place.strip():
            raise fail(
                f"{person!r} is not NAME=LAKE, such as ana=s3://bucket/ana or ben=/home/ben/.memory/lake.", MISUSED
            )
        if name in found:
            raise fail(f"{name} is named twice; each person has one lake.", MISUSED)
        lake = Lake(storage_at(place, settings))
        if "://" not in place and not Path(place).is_dir():
            raise fail(
                f"{place} does not exist; {name}'s lake is the folder that their `memory status` calls tables.", MISUSED
            )
        if lake.storage.files("promotions"):
            raise fail(
                f"{name}'s lake was written by an earlier version: run `memory status` of this one there.", MISUSED
            )
        found[name] = lake
    if len(found) < MIN_PEOPLE:
        raise fail(f"At least {MIN_PEOPLE} people are needed.", MISUSED)
    return found


def _row(agreed: Agreed, offered: Offered | None) -> dict[str, Any]:
    told = {"text": agreed.text, "section": agreed.section, "owners": sorted(agreed.owners)}
    made = offered.made if offered else None
    end = {"proposal_id": made and made.proposal_id, "known": (made and made.known) or None}
    return told | end | {"reason": offered.reason or None if offered else None}


def _outcome(offered: Offered) -> str:
    made = offered.made
    if made is None:
        return f"; not offered: {offered.reason}"
    return f"; not added, because it is already {made.known}" if made.known else f"; offered as {made.proposal_id}"
