"""`memory review`: what is pending, and decisions without opening REVIEW.md."""

from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, err, fail, one_sentence, print_json, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.lake import Lake
from memory_pipeline.proposals.lifecycle import (
    APPROVED,
    REJECTED,
    UnknownProposal,
    as_offered,
    decide,
    now_utc,
    pending,
    promote,
    settle_review,
)


def review(
    approve: Annotated[
        list[str] | None, typer.Option("--approve", metavar="ID", help="Approve; may be repeated.")
    ] = None,
    reject: Annotated[list[str] | None, typer.Option("--reject", metavar="ID", help="Reject; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the pending proposals, or decide some. Marks made in REVIEW.md are read first."""
    settings = active_settings()
    lake, now = Lake(settings.lake_dir), now_utc()
    both = sorted(set(approve or []) & set(reject or []))
    if both:
        raise fail(f"{', '.join(both)} cannot be both approved and rejected.", MISUSED)
    settled = settle_review(settings, lake, now)
    if settled.damaged:
        err.print(
            f"REVIEW.md was not read: {settled.damaged} A fresh one was written; the old one is in backups/.",
            style="yellow",
        )
    decisions = dict.fromkeys(approve or [], APPROVED) | dict.fromkeys(reject or [], REJECTED)
    with one_sentence(UnknownProposal):
        decide(settings, lake, decisions, now)
    if decisions:
        settle_review(settings, lake, now)
    promoted = promote(settings, lake, now)
    rows = pending(lake)
    offered = {p.proposal_id: p.evidence for p in as_offered(settings, lake, rows)}
    if as_json:
        names = ("proposal_id", "section", "priority", "support", "text")
        pending_rows = [{n: r[n] for n in names} | {"evidence": offered[r["proposal_id"]]} for r in rows]
        print_json(
            {"promoted": promoted, "decided": decisions, "not_understood": settled.ignored, "pending": pending_rows}
        )
        return
    for proposal_id in promoted:
        say(f"{proposal_id} is in {settings.memory_file}")
    for proposal_id in [*settled.rejected, *(reject or [])]:
        say(f"{proposal_id} rejected")
    if settled.ignored:
        say(f"not understood, still pending: {', '.join(settled.ignored)}", "yellow")
    for row in rows:
        say(f"\n{row['proposal_id']} {settings.marks[row['priority']]} {row['section']}", "bold")
        say(f"  {row['text']}")
        say(f"  {offered[row['proposal_id']]}", "dim")
    say(f"\n{len(rows)} pending. `memory review --approve ID`, `--reject ID`, or edit {settings.review_file}")
