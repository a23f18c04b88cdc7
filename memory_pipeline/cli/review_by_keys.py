"""The review by keys: one proposal at a time with the words that were said, decided by a single key.

A decision is recorded when the next step is taken, so that the last one can be taken back. Leaving, however it comes
about, records it too.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import date

import typer

from memory_pipeline.cli.console import out
from memory_pipeline.cli.keys import ENTER, LOST, Keys, NoMoreKeysError, can_prefill
from memory_pipeline.cli.review_cards import show, show_card, show_context
from memory_pipeline.cli.why import why
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.proposals.cards import Card, cards_of
from memory_pipeline.proposals.events import APPROVED, COMMAND_SURFACE, REJECTED, OpenLog, ProposalLog
from memory_pipeline.proposals.review import UnknownProposalError, decide, now_utc, on_display
from memory_pipeline.workspace.workspace import Workspace

KEYS = {
    "a": "approve: the line goes to MEMORY.md, or a fix where its target says",
    "e": "edit the line, then approve it",
    "r": "reject: it is not proposed again",
    "l": "later: it stays pending",
    "c": "context: what was said before and after",
    "s": "section: where in MEMORY.md the line goes when it is approved",
    "w": "why: everything that was said about it",
    "u": "undo the last step",
    "q": "quit: what is decided stays decided",
    "?": "this list",
}
_HINT = "a approve  e edit  r reject  l later  c context  s section  w why  u undo  q quit  ? help"
_SHORT_HINT = "a e r l c s w u q, ? explains"


@dataclass(frozen=True)
class _Step:
    """What was done with one card. Without a decision it was put off."""

    card: Card
    decision: str | None = None
    text: str | None = None
    section: str | None = None


@dataclass
class Outcome:
    """What a review came to. An `exit_code` other than 0 says how it was broken off."""

    approved: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    exit_code: int = 0


class Review:
    """A page of proposals and the keys that decide them; then the next page, while there is one."""

    def __init__(self, workspace: Workspace, keys: Keys) -> None:
        self.workspace = workspace
        self.settings, self.lake, self.keys = workspace.settings, workspace.lake, keys
        self.outcome = Outcome()
        self._last: _Step | None = None
        """Not recorded yet."""
        self._paged: set[str] = set()
        self._seen: dict[str, str | None] = {}
        self._sections: dict[str, str] = {}
        """By proposal, where the user has chosen another one."""

    def run(self) -> Outcome:
        """Until the user has seen all, quits or is gone. What was decided is recorded in each case."""
        try:
            while (page := self._next_page()) and self._go_through(page):
                self._record_last()
        except NoMoreKeysError as end:
            self.outcome.exit_code = end.code
        finally:
            self._record_last()
            with OpenLog.open(self.workspace) as log:
                log.record_shown(self._seen, now_utc(), surface=COMMAND_SURFACE)
        return self.outcome

    def _next_page(self) -> list[Card]:
        """First what is in REVIEW.md, then as many of the others; what expires soon leads."""
        log = ProposalLog(self.lake)
        rows = log.pending() if self._paged else on_display(self.workspace, log)
        page = [row for row in rows if row["proposal_id"] not in self._paged][: self.settings.pending_limit]
        self._paged.update(row["proposal_id"] for row in page)
        return sorted(cards_of(self.workspace, page), key=lambda card: card.expires_on or date.max)

    def _go_through(self, page: Sequence[Card]) -> bool:
        """Whether the user wants another page."""
        at = 0
        while True:
            if at == len(page):
                answer = self._at_the_end()
                if answer != "u":
                    return answer == "n"
            else:
                self._show(page[at], f"{at + 1} of {len(page)}")
                answer = self._answer(page[at])
            if answer == "q":
                return False
            at += {"done": 1, "u": -1}.get(answer, 0)

    def _show(self, card: Card, progress: str) -> None:
        with _printing():
            show_card(replace(card, section=self._sections.get(card.proposal_id, card.section)), progress)
            self._seen[card.proposal_id] = None
            show(_HINT if out.width > len(_HINT) else _SHORT_HINT, "dim")

    def _answer(self, card: Card) -> str:
        """`done`, `u` for the step before that is undone, `q`, or `again` where the card must be shown once more."""
        while True:
            match self.keys.key():
                case "a":
                    return self._take(_Step(card, APPROVED))
                case "r":
                    return self._take(_Step(card, REJECTED))
                case "l":
                    return self._take(_Step(card))
                case "e":
                    if text := self._edited(card):
                        return self._take(_Step(card, APPROVED, text))
                    return "again"
                case "w":
                    self._explain(card)
                    return "again"
                case "c":
                    with _printing():
                        show_context(card)
                case "s":
                    self._choose_section(card)
                    return "again"
                case "u":
                    if self._undo():
                        return "u"
                case "q":
                    return "q"
                case key:
                    self._help(key)

    def _at_the_end(self) -> str:
        """`u` (undone), `n` for another page, or `q`."""
        waiting = sum(row["proposal_id"] not in self._paged for row in ProposalLog(self.lake).pending())
        hint = f"n next {min(waiting, self.settings.pending_limit)}  u undo  q quit" if waiting else "u undo  q quit"
        with _printing():
            show("")
            show(f"That was all; {waiting} more are waiting." if waiting else "That was all.", "bold")
            show(hint, "dim")
        while True:
            match self.keys.key():
                case "u":
                    if self._undo():
                        return "u"
                case "n" if waiting:
                    return "n"
                case "q":
                    return "q"
                case key if key != ENTER:
                    with _printing():
                        show(f"That key does nothing here: {hint}", "yellow")

    def _take(self, step: _Step) -> str:
        """The step before can no longer be undone; this one can."""
        self._record_last()
        if step.decision == APPROVED:
            step = replace(step, section=self._sections.get(step.card.proposal_id))
        self._last = step
        with _printing():
            show(f"approved as: {step.text}" if step.text else step.decision or "later", "cyan")
        return "done"

    def _undo(self) -> bool:
        with _printing():
            if self._last is None:
                show("Nothing to undo: what came before is recorded.", "yellow")
                return False
            show(f"undone: {self._last.card.proposal_id} is pending", "cyan")
        self._last = None
        return True

    def _record_last(self) -> None:
        step, self._last = self._last, None
        if step is None or step.decision is None:
            return
        try:
            problem = self._record(step)
        except Exception:
            with suppress(NoMoreKeysError), _printing():
                show(f"{step.card.proposal_id} could not be recorded and is still pending.", "red")
            raise
        if problem:
            with suppress(NoMoreKeysError), _printing():
                for line in problem.split("\n"):
                    show(line, "yellow")

    def _record(self, step: _Step) -> str | None:
        """One decision, with the text as edited and the section as chosen; a sentence when it does not hold."""
        proposal_id, decision = step.card.proposal_id, step.decision or ""
        texts = {} if step.text is None else {proposal_id: step.text}
        sections = {} if step.section is None else {proposal_id: step.section}
        taken = {proposal_id: decision}
        try:
            reasons = decide(self.workspace, taken, now_utc(), surface=COMMAND_SURFACE, texts=texts, sections=sections)
        except UnknownProposalError as error:  # decided in REVIEW.md or elsewhere meanwhile
            return str(error)
        if proposal_id in reasons:
            self.outcome.invalid.append(proposal_id)
            return f"{proposal_id} is not promoted: {reasons[proposal_id]}"
        (self.outcome.approved if decision == APPROVED else self.outcome.rejected).append(proposal_id)
        return step.card.to_make or None if decision == APPROVED else None

    def _edited(self, card: Card) -> str | None:
        if card.change and card.change.edits != "line":
            with _printing():
                show("A change of this kind is edited in REVIEW.md, below its line.", "yellow")
            return None
        with _printing():
            filled = can_prefill(card.text)
            show("Edit the line; Enter approves it" if filled else "Type the whole line; Enter approves it", "cyan")
            show("Ctrl-C leaves it as it was.", "dim")
        text = self.keys.line(card.text)
        if text is None or text == one_line(card.text):
            with _printing():
                show("Not changed, not decided.", "yellow")
            return None
        return text

    def _choose_section(self, card: Card) -> None:
        """By its number; any other key leaves it as it is."""
        if card.change and card.change.edits != "line":
            with _printing():
                show("It goes where its target says.", "yellow")
            return
        with _printing():
            for number, name in enumerate(self.settings.sections, 1):
                show(f"{number}  {one_line(name)}", indent=2)
            show("The number of the section; another key leaves it as it is.", "dim")
        key = self.keys.key()
        with _printing():
            if key.isdecimal() and 1 <= int(key) <= len(self.settings.sections):
                self._sections[card.proposal_id] = self.settings.sections[int(key) - 1]
                show(f"to {one_line(self._sections[card.proposal_id])}, once it is approved", "cyan")
            else:
                show("The section stays.", "yellow")

    def _explain(self, card: Card) -> None:
        with _printing(), suppress(typer.Exit):
            why(card.proposal_id)

    def _help(self, key: str) -> None:
        if key == ENTER:  # a habit, and harmless
            return
        with _printing():
            if key != "?":
                show("That key does nothing here. These do:", "yellow")
            for name, meaning in KEYS.items():
                show(f"{name}  {meaning}", indent=2)


@contextmanager
def _printing() -> Iterator[None]:
    """A terminal that went away ends the keys, as it does while one is waited for."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EIO, errno.EPIPE, errno.EBADF):
            raise
        raise NoMoreKeysError(LOST) from None
