"""The roles that a language has words for. The English words are older and stand in `text/cues.py`, `text/momentary.py`
and `text/wording.py`, under the same names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_NEVER = re.compile(r"(?!)")


def any_of(*patterns: str) -> re.Pattern[str]:
    """One of these, whatever the case, and with either apostrophe."""
    return re.compile("|".join(patterns).replace("'", "['’]"), re.I)


@dataclass(frozen=True)
class Cues:
    """Of one language. What it has no word for is silent."""

    rule: re.Pattern[str]
    """Says what is to hold from now on."""
    preference: re.Pattern[str]
    decision: re.Pattern[str]
    correction: re.Pattern[str]
    """Says that something was wrong: mostly how the sentence begins."""
    asking: re.Pattern[str]
    """A question that does without its mark."""
    momentary: re.Pattern[str]
    """An instruction for this moment, done when it is done."""
    accepting: re.Pattern[str]
    """Begins with consent, whatever follows."""
    acceptance: re.Pattern[str]
    """Nothing but consent, thanks or "go on"."""
    correcting_question: re.Pattern[str] = _NEVER
    contrast: re.Pattern[str] = _NEVER
    """One thing and not another: a correction, unless it is a rule or a decision."""
    open: re.Pattern[str] = _NEVER
    """Something that nobody knows yet."""
    root_cause: re.Pattern[str] = _NEVER
    state_change: re.Pattern[str] = _NEVER
    convention: re.Pattern[str] = _NEVER
    progress: re.Pattern[str] = _NEVER
    reason: re.Pattern[str] = _NEVER
    plan: re.Pattern[str] = _NEVER
    """The model says what it does next."""
    offer: re.Pattern[str] = _NEVER
    praise: re.Pattern[str] = _NEVER
    doubt: re.Pattern[str] = _NEVER
    for_now: re.Pattern[str] = _NEVER
    proposal: re.Pattern[str] = _NEVER
    """The model's idea of what to do, which nothing has become of yet."""
    supposes: re.Pattern[str] = _NEVER
    """A line that weighs what could be."""
    replaces: tuple[re.Pattern[str], ...] = ()
    """What is used no more, as the group `old`."""
    denies: re.Pattern[str] = _NEVER
    """What is refused, as the group `words`."""
