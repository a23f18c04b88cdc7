"""The three priorities, most important first."""

from __future__ import annotations

HIGH, MEDIUM, LOW = "high", "medium", "low"
PRIORITIES = (HIGH, MEDIUM, LOW)
EMOJI = {HIGH: "🔴", MEDIUM: "🟡", LOW: "🟢"}
MARKS = {
    "emoji": EMOJI,
    "brackets": {HIGH: "[!]", MEDIUM: "[?]", LOW: "[i]"},
    "words": {HIGH: "CRITICAL", MEDIUM: "IMPORTANT", LOW: "NOTE"},
}
"""The symbols of the priorities, by the setting `markers`."""
RANK = {name: rank for rank, name in enumerate(PRIORITIES)}
"""0 is the most important."""
