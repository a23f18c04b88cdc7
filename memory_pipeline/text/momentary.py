"""Requests of the moment, which mean nothing once they are done: "run the tests", "can you check …", "ok, continue".

One question in five places, and each asks it of other words: a sentence that was said, a step of the model's plan, the
offer that a short answer accepts, the question that a tool asks, and a line that would be offered for MEMORY.md.
"""

from __future__ import annotations

import re

from memory_pipeline.text import cues
from memory_pipeline.text.languages.cues import foreign_cues
from memory_pipeline.text.languages.roles import any_of

_INSTRUCTION = any_of(
    r"^\W*((ok(ay)?|good|great|yes|no|now|then|please|and|can you|could you|let'?s|just|also|first|next)[,.]?\s+)*"
    r"(commit|push|run|rerun|re-run|try|test|check|look|show|read|open|continue|restart|revert|undo|explain|"
    r"tell|give|list|"
    r"retry|fix|add|create|write|update|remove|delete|implement|make|find|search|analy[sz]e|review|think|help|"
    r"deploy|clone|"
    r"put|do|go|start|move|rename|drop|let|make sure|investigate|provide)\b",
    r"^\W*(i want you to|i need you to|how (can|do) i|(can|could|should) we)\b",
)
"""An instruction for this moment, done when it is done."""
_ADDRESSED = re.compile(r"^\W*((me|us|you|i|we|to|that|and|also)\W+)*", re.I)
"""What stands between "would you like" and what is offered."""
_AUXILIARY = re.compile(
    r"^\W*(?:should|shall|can|could|would|may|do) (?:i|we|you) (?:(?:want|like)(?: me| us)? to )?", re.I
)
_DO = re.compile(r"^\W*do\b", re.I)
"""Of a question that asks for facts: "Do old ones get it too?"."""
_REQUEST = re.compile(
    r"^(?:(?:ok|okay|and|also|now|please|just|hey|so|then)[, ]+)*(?:(?:can|could|would|will) (?:you|we)|read|look|check"
    r"|fix|show|tell|give|find|try|see|explain|summarize|continue|proceed)\b",
    re.IGNORECASE,
)
"""Narrower than an instruction: a line that begins with "use" or "run" may be a rule."""
_KINDS = ("statement", "state_change", "progress", "decision", "convention", "root_cause")


def is_momentary_claim(kind: str, words: str) -> bool:
    """An order for this moment; a decision ("let's go with Postgres"), or one with its reason, outlasts it."""
    if foreign_cues(words):
        return kind in _KINDS and kind != "decision" and is_momentary_step(words)
    decides = kind == "decision" and bool(cues.REASON.search(words) or cues.NORMATIVE_START.match(words))
    return kind in _KINDS and not decides and is_momentary_step(words)


def is_momentary_step(words: str) -> bool:
    """An instruction, whoever gives it: also a step of the model's plan."""
    foreign = foreign_cues(words)
    return bool((foreign.momentary if foreign else _INSTRUCTION).search(words))


def is_momentary_offer(words: str) -> bool:
    """An offer to do something right away: "Would you like me to commit this?"."""
    asked = words.rsplit(". ", 1)[-1]
    return asked.endswith("?") and bool(_INSTRUCTION.match(_ADDRESSED.sub("", cues.OFFER.sub("", asked))))


def is_momentary_question(words: str) -> bool:
    """A question of the model about the next step ("Do you want to push this?"), not about how things are to be."""
    asked = _AUXILIARY.sub("", words)
    return is_momentary_offer(asked) and not _DO.match(asked)


def is_momentary_request(line: str) -> bool:
    """A line in a user's words that asks for something to be done now."""
    foreign = foreign_cues(line)
    if foreign:
        return bool(foreign.momentary.search(line)) and not foreign.rule.search(line)
    return bool(_REQUEST.search(line))
