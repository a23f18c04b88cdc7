"""`memory review`: decisions without opening REVIEW.md, by keys at a terminal, else by options; and what is pending."""

import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, err, fail, one_sentence, print_json, say
from memory_pipeline.cli.keys import Keys
from memory_pipeline.cli.review_by_keys import Review
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.lake import Lake
from memory_pipeline.proposals.auto_promotion import HOW_TO_TAKE_BACK
from memory_pipeline.proposals.lifecycle import (
    COMMAND_SURFACE,
    Settled,
    UnknownProposal,
    as_offered,
    decide,
    now_utc,
    on_display,
    promote,
    settle_review,
)
from memory_pipeline.proposals.records import record_showings
from memory_pipeline.proposals.states import APPROVED, EXPIRED, INVALID, REJECTED, SUPERSEDED, pending
from memory_pipeline.settings import Settings


def review(
    approve: Annotated[
        list[str] | None, typer.Option("--approve", metavar="ID", help="Approve; may be repeated.")
    ] = None,
    reject: Annotated[list[str] | None, typer.Option("--reject", metavar="ID", help="Reject; may be repeated.")] = None,
    as_list: Annotated[bool, typer.Option("--list", help="List what is pending; ask nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Decide on the pending proposals, key by key.

    Marks made in REVIEW.md are read first. With an option, or where there is no terminal, it decides what is named and
    lists the rest.
    """
    settings = active_settings()
    lake, now = Lake(settings.lake_dir), now_utc()
    both = sorted(set(approve or []) & set(reject or []))
    if both:
        raise fail(f"{', '.join(both)} cannot be both approved and rejected.", MISUSED)
    settled = settle_review(settings, lake, now)
    _say_damaged(settled)
    decisions = dict.fromkeys(approve or [], APPROVED) | dict.fromkeys(reject or [], REJECTED)
    with one_sentence(UnknownProposal):
        invalid = decide(settings, lake, decisions, now)
    decided = decisions | dict.fromkeys(invalid, INVALID)
    settled.invalid |= invalid
    if decisions:
        settle_review(settings, lake, now)
    promoted = promote(settings, lake, now)
    if not (decisions or as_list or as_json) and sys.stdin.isatty() and sys.stdout.isatty():
        _by_keys(settings, lake, promoted, settled)
        return
    rows = pending(lake)
    offered = {p.proposal_id: p for p in as_offered(settings, lake, rows)}
    if as_json:
        names = ("proposal_id", "section", "priority", "support", "text")
        pending_rows = [
            {n: r[n] for n in names}
            | {"evidence": (line := offered[r["proposal_id"]]).evidence, "expires_on": line.expires_on}
            for r in rows
        ]
        print_json(
            {
                "promoted": promoted,
                "decided": decided,
                "invalid": settled.invalid,
                "not_understood": settled.ignored,
                "decided_before": settled.already,
                "pending": pending_rows,
            }
        )
        return
    settled.rejected += reject or []
    _say_done(settings, promoted, settled)
    shown: dict[str, str | None] = {row["proposal_id"]: None for row in on_display(settings, lake)}
    record_showings(settings, lake, shown, now, surface=COMMAND_SURFACE)
    for row in rows:
        say(f"\n{row['proposal_id']} {settings.marks[row['priority']]} {row['section']}", "bold")
        say(f"  {row['text']}")
        say(f"  {offered[row['proposal_id']].evidence_line}", "dim")
    say(f"\n{len(rows)} pending. `memory review --approve ID`, `--reject ID`, or edit {settings.review_file}")


def _say_damaged(settled: Settled) -> None:
    if settled.damaged:
        err.print(
            f"REVIEW.md was not read: {settled.damaged} A fresh one was written; the old one is in backups/.",
            style="yellow",
        )


def _say_done(settings: Settings, promoted: list[str], settled: Settled) -> None:
    for proposal_id in promoted:
        say(f"{proposal_id} is in {settings.memory_file}")
    for state in (REJECTED, EXPIRED, SUPERSEDED):
        for proposal_id in getattr(settled, state):
            say(f"{proposal_id} {state}")
    for proposal_id, reason in settled.invalid.items():
        say(f"{proposal_id} is not promoted: {reason}", "yellow")
    for proposal_id in settled.automatic:
        say(f"{proposal_id} is {HOW_TO_TAKE_BACK}")
    for proposal_id in settled.too_late:
        say(f"{proposal_id} was decided on too late: it is {HOW_TO_TAKE_BACK}", "yellow")
    for proposal_id, state in settled.late.items():
        say(f"{proposal_id} was {state} before it was approved; it is not promoted", "yellow")
    for state in (APPROVED, REJECTED):
        if before := [p for p, s in settled.already.items() if s == state]:
            say(f"{state} already, so its line in REVIEW.md was not read: {', '.join(before)}", "yellow")
    if settled.ignored:
        say(f"not understood, nothing is decided: {', '.join(settled.ignored)}", "yellow")


def _by_keys(settings: Settings, lake: Lake, promoted: list[str], settled: Settled) -> None:
    """Marks made in REVIEW.md are reported first, then the person decides; MEMORY.md follows at the end."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a locale that lacks a character must not end the review
    _say_done(settings, promoted, settled)
    if not pending(lake):
        say("Nothing is pending.")
        return
    with Keys() as keys:
        outcome = Review(settings, lake, keys).run()
        meanwhile = settle_review(settings, lake, now_utc())
        added = promote(settings, lake, now_utc())
        with suppress(OSError):  # nobody may be there to read it
            _say_damaged(meanwhile)
            _say_done(settings, [], meanwhile)
            not_promoted = f"{len(outcome.invalid)} invalid, " if outcome.invalid else ""
            done = f"{len(outcome.approved)} approved, {len(outcome.rejected)} rejected"
            say(f"\n{done}, {not_promoted}{len(pending(lake))} pending.")
            if added:
                say(f"{len(added)} new in {settings.memory_file}")
    if outcome.exit_code:
        raise typer.Exit(outcome.exit_code)
