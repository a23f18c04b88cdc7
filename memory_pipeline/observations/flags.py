"""Flags of observations: what is known against one, or of how it was made. Stored in `observations.flags`."""

from __future__ import annotations

UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED, ENDED = "ungrounded", "ungrounded_specifics", "unparsed", "ended"
"""Nothing in its window carries it; it has names or numbers that nobody said; it was saved from an answer that was not
in the format asked for; what was said later settled it or made it untrue."""
DOUBTED = (UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED, ENDED)
"""Flags with which an observation is never offered, gives a line neither its words nor a high priority, and is not
distilled."""
COMPLETED = "completed"
"""A model marked it as done: what it tells of is not open any more."""
TIME_REMOVED = "time_removed"
"""A model gave it a clock time that its window does not have."""
NO_CUES = "no_cues"
"""There were no cues for the speaker's language, so kind and priority come from structure alone."""
