"""A card of the review by keys on a terminal."""

from __future__ import annotations

from rich.text import Text

from memory_pipeline.cli.console import out
from memory_pipeline.proposals.cards import QUOTE_LENGTH, Card
from memory_pipeline.proposals.context import told_before
from memory_pipeline.proposals.quoted_change import shown_lines
from memory_pipeline.text.sentences import clip

_PLAIN = str.maketrans({"“": '"', "”": '"', "’": "'", "·": "-", "…": "...", "🔴": "[!]", "🟡": "[?]", "🟢": "[i]"})


def show_card(card: Card, progress: str) -> None:
    """Wrapped to the window; only a file's place is one line, so that it can be copied."""
    show("")
    show(f"{progress} · {card.proposal_id} · {card.mark} {card.section}", "bold")
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
    more = card.places - len(card.quotes)
    if more > 0:
        show(f"and {more} more: w", "dim", indent=2)


def show_context(card: Card) -> None:
    """The turn before and the one after each quote."""
    if not card.contexts:
        show("The messages are no longer in the tables.", "yellow", indent=2)
    for context in card.contexts:
        before = told_before(context, QUOTE_LENGTH) or "nothing was said before"
        show(f"{'answers' if context.is_answer else 'before'}: {before}", indent=2)
        show(f"after: {clip(context.after, QUOTE_LENGTH) or 'nothing was said after'}", indent=2)


def show(text: str, style: str = "", *, indent: int = 0, wrap: bool = True) -> None:
    """A paragraph in the terminal's width and encoding: our own marks in ASCII, other characters as question marks."""
    try:
        text.encode(out.encoding)
    except UnicodeEncodeError:
        text = text.translate(_PLAIN).encode(out.encoding, "replace").decode(out.encoding)
    words = Text(text, style)
    for line in words.wrap(out, max(out.width - indent, 10)) if wrap else [words]:
        line.rstrip()
        out.print(Text(" " * indent) + line, soft_wrap=not wrap)
