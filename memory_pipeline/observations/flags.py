"""Flags of observations: what is known against one, or of how it was made. Stored in `observations.flags`."""

from __future__ import annotations

UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED, ENDED = "ungrounded", "ungrounded_specifics", "unparsed", "ended"
"""Flags of observations: no evidence in the window; names or numbers that nobody said; taken from an answer in an
invalid format; settled or made untrue by a later statement."""
DOUBTED = (UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED, ENDED)
"""Flags with which an observation is never offered, gives a line neither its words nor a high priority, and is not
distilled."""
COMPLETED = "completed"
"""A model marked it as done: what it tells of is not open any more."""
TIME_REMOVED = "time_removed"
"""A model gave it a clock time that its window does not have."""
NO_CUES = "no_cues"
"""There were no cues for the speaker's language, so kind and priority come from structure alone."""
