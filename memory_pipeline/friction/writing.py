"""The text of a new pattern, written by the reflector's model from the evidence and checked against it.

A text with a name or number that is neither in the evidence nor in the template, or that reverses what the user said,
is rejected, and the template is used. It is also used without a model or an answer.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from datetime import date

from memory_pipeline.friction.active import KINDS
from memory_pipeline.friction.answers import TEXT, read_text
from memory_pipeline.friction.asking import Asking
from memory_pipeline.friction.patterns import (
    MAX_LINE,
    MAX_TITLE,
    REPEATED_CORRECTION,
    RULE_VIOLATED,
    STALE_MEMORY,
    Pattern,
)
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.scope import without_note
from memory_pipeline.text.relation import differs
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.specifics import CAPITALISED, Words, missing_specifics

_USER_KINDS = (REPEATED_CORRECTION, STALE_MEMORY)
"""Kinds whose line has the user's words."""
MAX_PLACES, MAX_PLACE = 8, 300
"""Maximum number of latest occurrences that a model is shown, and maximum characters of each."""
MAX_TOKENS = 1_000


def written(pattern: Pattern, asking: Asking, day: date) -> Pattern | None:
    """The pattern with the model's text; None if the template is used. The model is asked once per pattern."""
    if asking.model is None:
        return None
    shown = _shown_pattern(pattern)
    of_turn = {
        "fence": f"places-{hashlib.sha256(shown.encode()).hexdigest()[:8]}",
        "kind": KINDS[pattern.kind],
        "places": shown,
        "title": pattern.title,
        "line": _line_of(pattern) or "(none is asked for)",
    }
    text = asking.answer(TEXT, {"target": pattern.target_file}, of_turn, MAX_TOKENS, day)
    if text is None:
        return None
    made, why_not = checked(pattern, text)
    asking.refused.update([why_not] if why_not else [])
    return made


def checked(pattern: Pattern, text: str) -> tuple[Pattern | None, str | None]:
    """The pattern with the text of this answer, or the reason for rejecting it."""
    title, line = map(one_line, read_text(text))
    wanted = _line_of(pattern)
    if not title or (wanted and not line):
        return None, "it has no title, or no line"
    if len(title) > MAX_TITLE or (wanted and len(line) > MAX_LINE):
        return None, "it is too long"
    beside = (value for m in pattern.members for value in (m.project, f"{m.day}") if value)
    known = Words([*(m.text for m in pattern.members), pattern.title, pattern.change, *beside])
    for written in (title, *([line] if wanted else [])):
        names = [name for name in CAPITALISED.findall(written) if not known.has(name)]
        if invented := [*missing_specifics(written, known), *names]:
            return None, f"not in the session: {clip(invented[0], 40)}"
    if not wanted:
        return replace(pattern, title=title), None
    if pattern.adds is None:
        return replace(pattern, title=title, note=line), None
    own = without_note(pattern.adds)
    if pattern.kind in _USER_KINDS and differs(line, own):
        return None, "it reverses the meaning"
    note = pattern.adds.removeprefix(own) if pattern.adds.startswith(own) else ""
    # only the user's own words are applied automatically
    return replace(pattern, title=title, adds=line + note, low_risk=False), None


def _line_of(pattern: Pattern) -> str | None:
    """The line that the model may rewrite; None for an existing rule, whose words are kept."""
    if pattern.kind == RULE_VIOLATED or not (pattern.adds or pattern.note):
        return None
    return without_note(pattern.adds) if pattern.adds else pattern.note


def _shown_pattern(pattern: Pattern) -> str:
    newest = pattern.members[-MAX_PLACES:]
    return "\n".join(f"- {m.day}: {clip(one_line(m.text), MAX_PLACE)}" for m in newest)
