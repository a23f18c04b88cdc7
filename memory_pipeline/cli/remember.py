"""`memory remember`: proposes a line in the user's own words."""

from pathlib import Path
from typing import Annotated

import typer
from filelock import Timeout

from memory_pipeline.cli.console import MISUSED, fail, one_sentence, print_json, say
from memory_pipeline.cli.workspace import settings_of_call
from memory_pipeline.lake.storage import storage_of
from memory_pipeline.proposals.events import REVIEW_SURFACE, ProposalLog
from memory_pipeline.proposals.remembering import NotRememberedError
from memory_pipeline.proposals.remembering import remember as store
from memory_pipeline.proposals.review import now_utc, reconcile
from memory_pipeline.recall.briefing_cache import refresh_kept
from memory_pipeline.recall.folders import UnknownProjectError, place_of_folder, project_named, project_of_place
from memory_pipeline.workspace.workspace import Workspace

WAIT_SECONDS = 2.0
"""Seconds to wait for a run that is writing REVIEW.md, which then includes the line."""


def remember(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The rule or fact, in a sentence.")],
    section: Annotated[
        str | None, typer.Option(metavar="NAME", help="Section of MEMORY.md; by default chosen by the words.")
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Project that it applies to; by default that of this folder, '' for all."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Propose a line for MEMORY.md in your own words.

    It becomes a proposal like any other: `memory review` decides. A line with a secret is refused, and one that is
    pending or approved already is not added again.
    """
    settings = settings_of_call()
    if not storage_of(settings).is_begun():
        raise fail("There is no workspace yet: run `memory run` first, then repeat this command.")
    workspace, now = Workspace.open(settings), now_utc()
    with one_sentence(NotRememberedError, UnknownProjectError, code=MISUSED):
        place = place_of_folder(Path.cwd())
        name = project_of_place(workspace.lake, place) if project is None else project_named(workspace.lake, project)
        made = store(workspace, text, now, section=section, project=name, cwd=place.cwd)
    is_in_review = False
    if not made.known:
        try:
            reconcile(workspace, now, wait=WAIT_SECONDS)
            is_in_review = made.proposal_id in ProposalLog(workspace.lake).standing_on(REVIEW_SURFACE)
        except Timeout:
            pass
        refresh_kept(settings)
    if as_json:
        print_json(vars(made) | {"project": name, "is_in_review": is_in_review})
        return
    if made.known:
        own = f" ({made.proposal_id})" if made.proposal_id else ""
        say(f"Not added, because it is already {made.known}{own}: {made.text}")
        return
    say(f"{made.proposal_id} {made.section}{f' (project: {name})' if name else ''}", "bold")
    say(f"  {made.text}")
    there = f"It is in {settings.review_file}" if is_in_review else "The next run puts it into REVIEW.md"
    say(f"{there}; `memory review --approve {made.proposal_id}` approves it now.")
