"""`memory review`: decisions by keys at a terminal or by options, and the list of pending proposals."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from io import TextIOWrapper
from typing import Annotated

import typer

from memory_pipeline.cli.console import MISUSED, fail, one_sentence, print_json, say
from memory_pipeline.cli.keys import Keys
from memory_pipeline.cli.review_by_keys import Review
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.applying import left_to_the_user
from memory_pipeline.proposals.cards import as_offered
from memory_pipeline.proposals.events import (
    APPROVED,
    COMMAND_SURFACE,
    INVALID,
    REJECTED,
    OpenLog,
    ProposalLog,
)
from memory_pipeline.proposals.quoted_change import visible
from memory_pipeline.proposals.review import (
    Reconciled,
    UnknownProposalError,
    decide,
    now_utc,
    on_display,
    reconcile,
)
from memory_pipeline.recall.briefing_cache import refresh_kept
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace

NOTHING_PENDING = "`memory run` reads new sessions, `memory remember` proposes a line in your own words."


def review(
    approve: Annotated[
        list[str] | None, typer.Option("--approve", metavar="ID", help="Approve; may be repeated.")
    ] = None,
    reject: Annotated[list[str] | None, typer.Option("--reject", metavar="ID", help="Reject; may be repeated.")] = None,
    as_list: Annotated[bool, typer.Option("--list", help="List the pending proposals and exit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Decide on the pending proposals, key by key.

    Marks in REVIEW.md are read first. With --approve or --reject it decides only these; without a terminal it lists the
    pending ones.
    """
    settings, now = active_settings(), now_utc()
    both = sorted(set(approve or []) & set(reject or []))
    if both:
        raise fail(f"{', '.join(both)} cannot be both approved and rejected.", MISUSED)
    decisions = dict.fromkeys(approve or [], APPROVED) | dict.fromkeys(reject or [], REJECTED)
    workspace = Workspace(settings, Lake.from_settings(settings))
    reconciled = reconcile(workspace, now)
    decided = _decide(workspace, decisions, reconciled) if decisions else {}
    if as_json:
        _print_json(workspace, reconciled, decided)
    elif not (decisions or as_list) and sys.stdin.isatty() and sys.stdout.isatty():
        _by_keys(workspace, reconciled)
    else:
        _print_done(settings, reconciled)
        for proposal_id in reject or ():
            say(f"{proposal_id} is rejected.")
        _print_pending(workspace, in_full=as_list or not decisions)
    refresh_kept(settings)


def _decide(workspace: Workspace, decisions: dict[str, str], reconciled: Reconciled) -> dict[str, str]:
    """Record the decisions, carry them out, and add their results; returns each decision or that it is invalid."""
    with one_sentence(UnknownProposalError):
        reasons = decide(workspace, decisions, now_utc())
    then = reconcile(workspace, now_utc())
    reconciled.invalid |= reasons
    reconciled.promoted += then.promoted
    reconciled.applied += then.applied
    reconciled.to_make |= {p: how for p, how in left_to_the_user(ProposalLog(workspace.lake)).items() if p in decisions}
    return decisions | dict.fromkeys(reasons, INVALID)


def _print_json(workspace: Workspace, reconciled: Reconciled, decided: Mapping[str, str]) -> None:
    log = ProposalLog(workspace.lake)
    rows = log.pending()
    print_json(
        {
            "promoted": reconciled.promoted,
            "decided": dict(decided),
            "applied": reconciled.applied,
            "to_make": reconciled.to_make,
            "invalid": reconciled.invalid,
            "withdrawn": reconciled.withdrawn,
            "not_understood": reconciled.ignored,
            "decided_before": reconciled.already,
            "pending": [
                {
                    **{name: row[name] for name in ("proposal_id", "section", "priority", "support", "text")},
                    "evidence": offered.evidence,
                    "expires_on": offered.expires_on,
                    **({"title": change.headline, "change": list(change.lines)} if (change := offered.change) else {}),
                }
                for row, offered in zip(rows, as_offered(workspace, log, rows), strict=True)
            ],
        }
    )


def _print_pending(workspace: Workspace, *, in_full: bool) -> None:
    """Print the number of pending proposals, and each of them `in_full`, which is recorded as shown."""
    settings, log = workspace.settings, ProposalLog(workspace.lake)
    rows = log.pending()
    if in_full:
        shown = [row["proposal_id"] for row in on_display(workspace, log)]
        with OpenLog.open(workspace) as opened:
            opened.record_shown(shown, now_utc(), surface=COMMAND_SURFACE)
        for row, offered in zip(rows, as_offered(workspace, log, rows), strict=True):
            say(f"\n{row['proposal_id']} {settings.marks[row['priority']]} {row['section']}", "bold")
            change = offered.change
            for line in (change.headline, *change.lines) if change else (row["text"],):
                say(f"  {visible(line)}")
            say(f"  {offered.evidence_line}", "dim")
    how = f"`memory review --approve ID`, `--reject ID`, or edit {settings.review_file}" if rows else NOTHING_PENDING
    say(f"\n{len(rows)} pending. {how}")


def _print_done(settings: Settings, reconciled: Reconciled) -> None:
    for proposal_id in reconciled.promoted:
        say(f"{proposal_id} is in {settings.memory_file}.")
    for proposal_id in reconciled.applied:
        say(f"{proposal_id} is applied; `memory why {proposal_id}` shows it.")
    for sentence in reconciled.news:
        say(sentence, "cyan")


def _by_keys(workspace: Workspace, reconciled: Reconciled) -> None:
    """Report marks from REVIEW.md, let the user decide, and update MEMORY.md at the end."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a character that the locale lacks must not end the review
    _print_done(workspace.settings, reconciled)
    if not reconciled.pending:
        say(f"Nothing is pending. {NOTHING_PENDING}")
        return
    with Keys() as keys:
        review = Review(workspace, keys)
        exit_code = review.run()
        meanwhile = reconcile(workspace, now_utc())
        with suppress(OSError):  # the terminal may be gone
            _print_done(workspace.settings, replace(meanwhile, promoted=[]))
            states = [APPROVED, REJECTED, *([INVALID] if review.decided[INVALID] else [])]
            counts = ", ".join(f"{review.decided[state]} {state}" for state in states)
            say(f"\n{counts}, {meanwhile.pending} pending.")
            if meanwhile.promoted:
                say(f"{len(meanwhile.promoted)} new in {workspace.settings.memory_file}")
    if exit_code:
        raise typer.Exit(exit_code)
