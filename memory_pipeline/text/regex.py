"""Regular expressions that are compiled when they are first used.

Compiling takes milliseconds for a set of characters beyond ASCII and for a long list of phrases, which is most of the
time that a short command has; it loads many modules whose patterns it never matches.
"""

from __future__ import annotations

import re
from typing import Any, cast


class _Deferred:
    """Stands for a compiled pattern; each of its methods becomes an attribute at its first use."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._source = pattern, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._source), name)
        setattr(self, name, found)
        return found


def deferred(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """The pattern, for a module's constant; a wrong one raises `re.error` at its first use, not at import."""
    return cast("re.Pattern[str]", _Deferred(pattern, flags))
