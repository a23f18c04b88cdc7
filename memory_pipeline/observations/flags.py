"""Flags of observations: reasons to doubt one, and how it was made. Stored in `observations.flags`."""

from __future__ import annotations

UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED, ENDED = "ungrounded", "ungrounded_specifics", "unparsed", "ended"
"""Flags of observations: no evidence in the window; names or numbers that nobody said; taken from an answer in an
invalid format; settled or made untrue by a later statement."""
DOUBTED = (UNGROUNDED, UNGROUNDED_SPECIFICS, UNPARSED, ENDED)
"""Flags that exclude an observation from proposals and distillations, and from the wording and high priority of a
reflected line."""
COMPLETED = "completed"
"""The model marked the fact as done: the matter is closed."""
TIME_REMOVED = "time_removed"
"""A clock time that does not occur in the window was removed from a model's fact."""
NO_CUES = "no_cues"
"""There were no cues for the speaker's language, so kind and priority come from structure alone."""
