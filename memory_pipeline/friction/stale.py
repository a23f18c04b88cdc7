"""Outdated lines of MEMORY.md, AGENTS.md and CLAUDE.md: a user said later what replaces them."""

from __future__ import annotations

from collections.abc import Sequence

from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.friction.messages import age, bare, is_claim
from memory_pipeline.friction.patterns import MAX_LINE, MEMORY_FILE, MIN_SESSIONS, STALE_MEMORY, Pattern
from memory_pipeline.friction.rules import Rule
from memory_pipeline.text.relation import gives_up, replaces
from memory_pipeline.text.sentences import clip


def stale_lines(said: Sequence[FrictionEvent], rules: Sequence[Rule]) -> dict[Rule, list[FrictionEvent]]:
    """The lines that a remark replaces, even in a single session ("X instead of Y"), with these remarks, oldest first.
    Lines that are outdated in other words are found only by a model."""
    replacing = [e for e in sorted(said, key=age) if gives_up(e.text) and is_claim(e.text)]
    found = {rule: [e for e in replacing if rule.reaches(e) and replaces(e.text, rule.text)] for rule in rules}
    return {rule: members for rule, members in found.items() if members}


def over_since(rule: Rule, members: Sequence[FrictionEvent]) -> Pattern:
    """The pattern of an outdated line, with the replacement of its newest member."""
    newest = bare(members[-1].text)
    return Pattern(
        STALE_MEMORY,
        f"{rule.name} still says “{clip(rule.text, 70)}”; you said “{clip(newest, 60)}”",
        MEMORY_FILE if rule.name == MEMORY_FILE else rule.file,
        tuple(members),
        adds=clip(newest, MAX_LINE),
        replaces=rule.text,
        low_risk=rule.name == MEMORY_FILE and len({m.session_id for m in members}) >= MIN_SESSIONS,
    )
