"""What a kind of fact is for: its section of MEMORY.md, and the type of the item."""

from __future__ import annotations

USER, RULES, ARCHITECTURE, PATTERNS = range(4)
SECTION_OF = {
    "preference": USER,
    "rule": RULES,
    "decision": ARCHITECTURE,
    "state_change": ARCHITECTURE,
}
"""Every other kind belongs to the patterns."""
BEHAVIOUR, KNOWLEDGE, SKILL, EVENT = "behaviour", "knowledge", "skill", "event"
ITEM_TYPES = {
    "rule": BEHAVIOUR,
    "preference": BEHAVIOUR,
    "correction": BEHAVIOUR,
    "decision": KNOWLEDGE,
    "state_change": KNOWLEDGE,
    "root_cause": KNOWLEDGE,
    "statement": KNOWLEDGE,
    "convention": SKILL,
    "progress": EVENT,
}
"""How to behave, how things are, how things are done, what happened. A question is none of them."""
