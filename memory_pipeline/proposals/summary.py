"""A summary of a day's reflection in one or two sentences for the log, for days without a model's summary.

The sentences quote the most important lines, so nothing in them is guessed.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_pipeline.text.sentences import clip

MAX_NAMED = 2
"""Maximum number of lines that a sentence quotes."""
MAX_LINE = 160
"""Maximum characters of each quoted line."""


def plain_summary(offered: Sequence[str], said_again: Sequence[str], lines: Sequence[str]) -> str:
    """The summary of new and repeated proposals or, if there are none, of all other lines; the most important first."""
    groups = [("New", offered), ("Said again", said_again)]
    sentences = [f"{words}: {_named(some)}." for words, some in groups if some]
    if not sentences:
        return f"Nothing new was offered; what mattered most: {_named(lines)}." if lines else "Nothing was offered."
    return " ".join(sentences)


def _named(lines: Sequence[str]) -> str:
    named = [f"“{clip(line, MAX_LINE)}”" for line in lines[:MAX_NAMED]]
    more = len(lines) - len(named)
    return f"{', '.join(named)} and {more} more" if more else " and ".join(named)
