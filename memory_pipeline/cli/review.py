"""`memory review`: decisions by keys at a terminal or by options, and the list of pending proposals.

At a terminal one card with quotes is shown at a time. The last step is stored only with the next one, so that it can be
undone, or when the review ends in any way.
"""

import sys
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from io import TextIOWrapper
from typing import Annotated

import typer
from rich.text import Text

from memory_pipeline.cli.console import MISUSED, AsJson, fail, out, print_json, say
from memory_pipeline.cli.keys import ENTER, LOST, Keys, can_prefill
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.lake.store import Lake
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.applying import left_to_the_user
from memory_pipeline.proposals.cards import QUOTE_LENGTH, Card, as_offered, cards_of
from memory_pipeline.proposals.context import text_before
from memory_pipeline.proposals.events import APPROVED, COMMAND_SURFACE, INVALID, REJECTED, OpenLog, ProposalLog
from memory_pipeline.proposals.quoted_change import shown_lines, visible
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
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

LATER = "later"
KEYS = {
    "a": "approve: the line goes to MEMORY.md, a fix to its target file",
    "e": "edit the line, then approve it",
    "r": "reject: it is not proposed again",
    "l": "later: it stays pending",
    "u": "undo the last step",
    "q": "quit; decisions are kept",
    "?": "this list",
}
_HINT = "a approve  e edit  r reject  l later  u undo  q quit  ? help"
NOTHING_PENDING = "`memory run` reads new sessions, `memory remember` proposes a line in your own words."


def review(
    approve: Annotated[
        list[str] | None, typer.Option("--approve", metavar="ID", help="Approve; may be repeated.")
    ] = None,
    reject: Annotated[list[str] | None, typer.Option("--reject", metavar="ID", help="Reject; may be repeated.")] = None,
    as_list: Annotated[bool, typer.Option("--list", help="List the pending proposals and exit.")] = False,
    as_json: AsJson = False,
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


@dataclass(frozen=True)
class _Step:
    """A user's action on a card: `approved`, `rejected` or `later`, with the text as edited."""

    card: Card
    done: str
    text: str | None = None


class Review:
    """One pass over the pending proposals: those in REVIEW.md first, then the others, each group by expiry."""

    def __init__(self, workspace: Workspace, keys: Keys) -> None:
        self.workspace, self.keys = workspace, keys
        self.decided: Counter[str] = Counter()
        self._held: _Step | None = None
        self._seen: dict[str, str | None] = {}

    def run(self) -> int:
        """Run until the user has seen all, quits or is gone. Decisions are stored in any case. Returns the exit
        code."""
        try:
            self._loop()
        except SystemExit as stop:
            return int(stop.code or 0)
        finally:
            self._record()
            with OpenLog.open(self.workspace) as log:
                log.record_shown(self._seen, now_utc(), surface=COMMAND_SURFACE)
        return 0

    def _loop(self) -> None:
        log, limit = ProposalLog(self.workspace.lake), self.workspace.settings.pending_limit
        rows = {row["proposal_id"]: row for row in [*on_display(self.workspace, log), *log.pending()]}
        cards: list[Card] = []
        at = 0
        while True:
            if at == len(cards) < len(rows):
                page = cards_of(self.workspace, list(rows.values())[at : at + limit])
                cards += sorted(page, key=lambda card: card.expires_on or date.max)
            if at == len(rows):
                show("\nThere are no more proposals.", "bold")
                show("u undo  q quit", "dim")
                move = -1 if self.keys.key() == "u" and self._undo() else None
            else:
                show_card(cards[at], f"{at + 1} of {len(rows)}")
                self._seen[cards[at].proposal_id] = None
                move = self._answer(cards[at])
            if move is None:
                return
            at += move

    def _answer(self, card: Card) -> int | None:
        """The number of cards to advance, 0 to show this one again; None to quit."""
        show(_HINT, "dim")
        while True:
            match self.keys.key():
                case "a":
                    return self._hold(_Step(card, APPROVED))
                case "r":
                    return self._hold(_Step(card, REJECTED))
                case "l":
                    return self._hold(_Step(card, LATER))
                case "e":
                    text = self._edited(card)
                    return self._hold(_Step(card, APPROVED, text)) if text else 0
                case "u":
                    if self._undo():
                        return -1
                case "q":
                    return None
                case key:
                    _help(key)

    def _hold(self, step: _Step) -> int:
        """Make this the step that can be undone; the one before is recorded."""
        self._record()
        self._held = step
        show(f"approved as: {step.text}" if step.text else step.done, "cyan")
        return 1

    def _undo(self) -> bool:
        if self._held is None:
            show("Nothing to undo: earlier decisions are recorded.", "yellow")
            return False
        show(f"undone: {self._held.card.proposal_id} is pending", "cyan")
        self._held = None
        return True

    def _record(self) -> None:
        """Record the held decision, as edited, and report if it is not valid."""
        if (step := self._held) is None or step.done == LATER:
            self._held = None
            return
        p = step.card.proposal_id
        texts = {p: step.text} if step.text else {}
        message = step.card.to_make if step.done == APPROVED else ""
        try:
            reasons = decide(self.workspace, {p: step.done}, now_utc(), surface=COMMAND_SURFACE, texts=texts)
            self.decided[INVALID if p in reasons else step.done] += 1
            message = f"{p} is not promoted: {reasons[p]}" if p in reasons else message
        except UnknownProposalError as error:  # decided elsewhere meanwhile
            message = str(error)
        self._held = None
        for line in message.splitlines():
            show(line, "yellow")

    def _edited(self, card: Card) -> str | None:
        if card.change and not card.change.is_editable:
            show("Only an added line can be edited.", "yellow")
            return None
        show("Edit the line" if can_prefill(card.text) else "Type the whole line", "cyan")
        show("Enter approves it, Ctrl-C leaves it unchanged.", "dim")
        text = self.keys.line(card.text)
        if text is None or text == one_line(card.text):
            show("Unchanged; still pending.", "yellow")
            return None
        return text


def show_card(card: Card, progress: str) -> None:
    """Print a card, wrapped to the window except for file positions, which must be copyable."""
    show(f"\n{progress} · {card.proposal_id} · {card.mark} {card.section}", "bold")
    if card.expires_on:
        show(f"expires on {card.expires_on}", "yellow")
    if card.change:
        show(card.change.headline, "bold", indent=2)
    for line in shown_lines(card.change) if card.change else [card.text]:
        show(line, "bold green", indent=2)
    show(card.evidence, "dim", indent=2)
    for words, place in card.quotes:
        show(words, indent=2)
        if place:
            show(place, "dim", indent=4, wrap=False)
    for context in card.contexts:
        if before := text_before(context, QUOTE_LENGTH):
            show(f"{'answers' if context.is_answer else 'before'}: {before}", "dim", indent=2)
        if after := clip(context.after, QUOTE_LENGTH):
            show(f"after: {after}", "dim", indent=2)
    if (more := card.places - len(card.quotes)) > 0:
        show(f"and {more} more: `memory why {card.proposal_id}`", "dim", indent=2)


def show(text: str, style: str = "", *, indent: int = 0, wrap: bool = True) -> None:
    """Print a paragraph in the terminal's width."""
    words = Text(text, style)
    try:
        for line in words.wrap(out, max(out.width - indent, 10)) if wrap else [words]:
            line.rstrip()
            out.print(Text(" " * indent) + line, soft_wrap=not wrap)
    except OSError:  # the terminal is gone
        raise SystemExit(LOST) from None


def _help(key: str) -> None:
    if key == ENTER:  # pressed by habit, and harmless
        return
    if key != "?":
        show("Unknown key. The keys are:", "yellow")
    for name, meaning in KEYS.items():
        show(f"{name}  {meaning}", indent=2)
