"""The question of `memory run` at a terminal, if no model is set: whether to use one of this machine."""

from __future__ import annotations

import sys
from datetime import date, timedelta

from memory_pipeline.cli.console import say
from memory_pipeline.cli.setup import ask_which, set_up, show_choices
from memory_pipeline.llm.found import Choice, choices
from memory_pipeline.markdown.safe_write import write_atomically
from memory_pipeline.settings import Settings

FILE, NEVER = "model_offer", "never"
"""The file in the workspace with the answer: `never`, or the day of a "not now"."""
ASK_AGAIN = timedelta(days=30)
"""The time after which "not now" is asked again."""


def offer_model(settings: Settings, today: date) -> None:
    """Ask which of the available models to set; do nothing in a script, or if the question was answered."""
    if settings.observer.model or not _is_at_terminal() or not _is_due(settings, today):
        return
    offered = [choice for choice in choices() if not choice.missing]
    if not offered:
        return
    say("\nA model would also find facts that nobody stated explicitly. This machine has:", "bold")
    outlook = show_choices(settings, offered)
    question = f"Use one? Enter its number, press Enter for not now, or type `{NEVER}`"
    answer = ask_which(offered, question, NEVER)
    if isinstance(answer, Choice):
        set_up(settings, answer, outlook)
        return
    path = settings.workspace / FILE
    content = f"{answer or today.isoformat()}\n".encode()
    write_atomically(path, content, expected=path.read_bytes() if path.exists() else None, backups=None)
    say("`memory setup` sets one at any time.", "dim")


def _is_at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _is_due(settings: Settings, today: date) -> bool:
    path = settings.workspace / FILE
    answer = path.read_text("utf-8").strip() if path.exists() else ""
    if answer == NEVER:
        return False
    try:
        return today - date.fromisoformat(answer) >= ASK_AGAIN
    except ValueError:  # not answered yet, or edited by hand
        return True
