"""Errors that somebody can do something about. Each message says what it is and what to do.

A module declares its own errors and derives each from the class that says what the caller can do about it. One that a
module raises and catches itself has a name with an underscore.
"""

from __future__ import annotations

from collections.abc import Iterator


class MemoryPipelineError(Exception):
    """The base class of all expected errors: catching it hides no bug."""


class MisuseError(MemoryPipelineError):
    """The call or a setting is wrong; the command exits with 2. The message says what was expected."""


class TryAgainLaterError(MemoryPipelineError):
    """Something else is in the way for now: a lock, a server. The message says what to do if it stays."""


class CannotGoOnError(MemoryPipelineError):
    """The same would happen on every other day, now and later: a setting is wrong. The message says which."""


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and the errors that led to it, the first one last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
