"""For a person who has switched redaction off, and for measuring what it costs."""

from __future__ import annotations

from memory_pipeline.sessions.redaction.redactor import Redactor


class Unredacted(Redactor):
    """Leaves every text as it is; excerpts are cut all the same."""

    def __init__(self) -> None:
        super().__init__(b"")

    def redact(self, text: str) -> str:
        return text
