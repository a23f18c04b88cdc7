"""`memory team`: what two people have approved, each for themselves, offered to the memory of their team; and the runs
that make each person's memory on a server."""

from pathlib import Path
from typing import Annotated, Any

import typer
from filelock import Timeout

from memory_pipeline.cli.choosing import EVERYTHING
from memory_pipeline.cli.console import INTERRUPTED, MISUSED, fail, print_json, say
from memory_pipeline.cli.team_run import people_in, run_each, shared_lakes
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.lake.opening import storage_at
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.review import now_utc, reconcile
from memory_pipeline.proposals.team import MIN_PEOPLE, Agreed, Offered, agreed_lines, offer
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace

app = typer.Typer(invoke_without_command=True, add_completion=False, rich_markup_mode=None)
WAIT_SECONDS = 2.0
"""For a run that writes REVIEW.md just now; it has the lines all the same."""


@app.callback()
def team(
    context: typer.Context,
    people: Annotated[
        list[str] | None,
        typer.Option(
            "--person", metavar="NAME=LAKE", help="One of the people, with the folder or URL of their lake; repeat it."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be offered.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Propose to a team's memory what two people have approved.

    The workspace is the team's (MEMORY_WORKSPACE). Of each person only the table `promotions` is read: the lines that
    they let into their own MEMORY.md. What two of them have, in whatever words, becomes a proposal of the team, once;
    `memory review` decides.
    """
    if context.invoked_subcommand is not None:
        return
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
        say(f"  approved by {one.told}{_end(offered[number]) if offered else ''}")
    if any(one.made and not one.made.known for one in offered):
        say(f"To decide on: {settings.review_file} or `memory review`")


@app.command()
def run(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="With the workspace of each person.")],
    everything: EVERYTHING = False,
    workers: Annotated[int, typer.Option("--workers", min=1, help="How many people at a time.")] = 1,
) -> None:
    """Make the memory of each person, on a server that they push to.

    FOLDER has a folder for each person by name, their workspace here, with a file lake.env in it: lines NAME=VALUE with
    MEMORY_LAKE and the credentials for it. Each is a `memory run --no-review` of its own. Who fails stops nobody.
    """
    people = people_in(folder) if folder.is_dir() else []
    if not people:
        raise fail(f"There is nobody in {folder}: expected a folder of each person, with a file lake.env.", MISUSED)
    if shared := shared_lakes(people):
        raise fail(" ".join(shared), MISUSED)
    try:
        failed = run_each(people, everything, workers)
    except KeyboardInterrupt:
        raise fail("Stopped. The next call does the rest.", INTERRUPTED) from None
    if failed:
        told = "; ".join(f"{name}: {reason}" for name, reason in failed.items())
        raise fail(f"{len(failed)} of {len(people)} people could not be done. {told}")


def _lakes(settings: Settings, people: list[str]) -> dict[str, Lake]:
    """By name. Raises `typer.Exit` for what names no lake."""
    found: dict[str, Lake] = {}
    for person in people:
        name, _, place = person.partition("=")
        if not name.strip() or not place.strip():
            raise fail(
                f"{person!r} is not NAME=LAKE, as in ana=s3://bucket/ana or ben=/home/ben/.memory/lake.", MISUSED
            )
        if name in found:
            raise fail(f"{name} is named twice; each person has one lake.", MISUSED)
        lake = Lake(storage_at(place, settings))
        if "://" not in place and not Path(place).is_dir():
            raise fail(
                f"{place} is not there; {name}'s lake is the folder that their `memory status` calls tables.", MISUSED
            )
        found[name] = lake
    if len(found) < MIN_PEOPLE:
        raise fail(f"At least {MIN_PEOPLE} people are needed: what one approves is theirs.", MISUSED)
    return found


def _row(agreed: Agreed, offered: Offered | None) -> dict[str, Any]:
    told = {"text": agreed.text, "section": agreed.section, "owners": sorted(agreed.owners)}
    made = offered.made if offered else None
    end = {"proposal_id": made and made.proposal_id, "known": (made and made.known) or None}
    return told | end | {"reason": offered.reason or None if offered else None}


def _end(offered: Offered) -> str:
    made = offered.made
    if made is None:
        return f"; not offered: {offered.reason}"
    return f"; not added, since it is {made.known} already" if made.known else f"; offered as {made.proposal_id}"
