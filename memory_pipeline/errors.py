"""What can go wrong, as far as somebody can do something about it. Each message says what it is and what to do.

::

    MemoryPipelineError
    ├─ TryAgainLater     something else is in the way for now: a lock, a server
    ├─ CannotGoOn        the same would happen on every other day, now and later: a setting is wrong
    ├─ SettingError           a setting cannot be used                                    settings.py
    ├─ DamagedTableError      a file of a table cannot be read                            lake/store.py
    ├─ ChangedMeanwhileError  somebody else wrote the file between reading and writing    markdown/safe_write.py
    ├─ EncoderUnavailableError  the embedding model is not there                          text/encoder.py
    ├─ UnknownProposalError   no pending proposal has that id                             proposals/review.py
    └─ ...                    those that a room raises and catches itself stand where they are raised
"""

from __future__ import annotations


class MemoryPipelineError(Exception):
    """The root of all of them: catching it catches nothing that is a mistake in the code."""


class TryAgainLater(MemoryPipelineError):
    """Something else is in the way for now: a lock, a server. The message says what to do if it stays."""


class CannotGoOn(MemoryPipelineError):
    """The same would happen on every other day, now and later: a setting is wrong. The message says which."""
