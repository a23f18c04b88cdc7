"""Selection of lines to offer: the notable ones of a model, and of quotes only certain ones.

Without a model a line is somebody's words as they were typed, and cues are its only features. Of thirty such lines a
reader kept six to twelve. So only the user's own rules, preferences, decisions and corrections that stand alone are
offered, and what was said in two sessions. All else stays an observation.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_pipeline.lake.rows import ReflectionRow, SourceRow
from memory_pipeline.observations.answering import words_of
from memory_pipeline.observations.types import EXTRACTIVE
from memory_pipeline.text.kinds import NORMATIVE
from memory_pipeline.text.lines import is_self_contained, tells_what
from memory_pipeline.text.priorities import HIGH, MEDIUM

LASTING = ("rule", "preference", "decision", "correction", "root_cause", "convention")
NOTABLE_SESSIONS = 2
"""Sessions that a line must have been said in to be offered, where it is not offered by itself."""
MAX_OF_SESSION = 5
"""Maximum lines of a model per session and day that are offered, the best: more are not read. Quotes are few by
themselves, and each is a rule of the user's that would be lost."""


def is_offered(line: ReflectionRow, sources: Sequence[SourceRow]) -> bool:
    """Whether the line may become a proposal; ``sources`` are what it rests on, the one with the words first."""
    if line["priority"] not in (HIGH, MEDIUM):
        return False
    if is_quoted(line, sources):
        is_own = sources[0]["trust"] == "user" and line["kind"] in NORMATIVE and _is_clear(line["text"], line["kind"])
        return is_own or line["sessions"] >= NOTABLE_SESSIONS
    return line["priority"] == HIGH or line["kind"] in LASTING or line["sessions"] >= NOTABLE_SESSIONS


def _is_clear(text: str, kind: str) -> bool:
    """Whether the user's words say what is to hold. What they chose of the answers that an agent offered was for its
    task, as a rule: read by eye, none of seven such lines was worth keeping as it stood."""
    words = words_of(text)
    return is_self_contained(words, kind) and (words == text or tells_what(words))


def is_quoted(line: ReflectionRow, sources: Sequence[SourceRow]) -> bool:
    """Whether no model had a part in it, neither in the words nor in their condensation."""
    observer = str(sources[0].get("observer") or "") if sources else ""  # notes of the user's have none
    return line["reflector"].startswith(EXTRACTIVE) and observer.startswith(EXTRACTIVE)
