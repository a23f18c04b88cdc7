"""A window in a few words, and facts about it, for tests of what is made of a model's answer.

::

    messages = talk("user: Never use npm.", "assistant: I removed package-lock.json.", "tool!: exit 1")
    fact = parsed("The person forbids npm.", "high", refs=(1,), clock="09:00")
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from memory_pipeline.observations.model.fact_check import FactCheck
from memory_pipeline.observations.model.facts import ParsedFact
from memory_pipeline.observations.types import EvidenceSpan, Fact, WindowMessage

START = datetime(2025, 3, 5, 9, tzinfo=UTC)
LONDON = ZoneInfo("Europe/London")


def talk(*turns: str) -> list[WindowMessage]:
    """Messages m1, m2 … a minute apart from nine, each as `role: text`; `tool!` is one that failed.

    `<<…>>` in a person's text is what they pasted.
    """
    return [_said(number, *turn.split(": ", 1)) for number, turn in enumerate(turns, 1)]


def _said(number: int, role: str, text: str) -> WindowMessage:
    before, _, rest = text.partition("<<")
    paste, mark, after = rest.partition(">>")
    quoted = ((len(before), len(before) + len(paste)),) if mark else ()
    words = before + paste + after if mark else text
    moment = START + timedelta(minutes=number - 1)
    name = "Bash" if role.startswith("tool") else None
    return WindowMessage(f"m{number}", role.rstrip("!"), moment, words, role.endswith("!"), quoted, name)


def parsed(
    text: str, priority: str = "high", *, refs: Sequence[int] = (), clock: str | None = None, kind: str = "rule"
) -> ParsedFact:
    """A fact as a model wrote it."""
    return ParsedFact(text=text, priority=priority, kind=kind, clock=clock, refs=tuple(refs))


def checked(messages: Sequence[WindowMessage], fact: ParsedFact, zone: ZoneInfo = LONDON) -> Fact:
    """The fact as it may be stored, when the model was shown the whole window."""
    return FactCheck(messages, zone).check(fact, range(len(messages)))


def quotes(messages: Sequence[WindowMessage], spans: Sequence[EvidenceSpan]) -> list[str]:
    """The words of the spans, as `m1: text`."""
    texts = {m.message_id: m.text for m in messages}
    return [f"{s.message_id}: {texts[s.message_id][s.start : s.end]}" for s in spans]


def fact(text: str, priority: str = "medium", *spans: EvidenceSpan, minutes: int = 0, **other: object) -> Fact:
    """A fact that may be stored; without spans it is as if nothing carried it."""
    moment = START + timedelta(minutes=minutes)
    return Fact(text, priority, "statement", moment, "user", spans, **other)  # type: ignore[arg-type]
