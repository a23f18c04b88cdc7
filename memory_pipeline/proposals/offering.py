"""Which lines are offered: of a model's the notable ones, and of quotes few, those that can be told for sure.

Without a model a line is somebody's words as they fell, and cues are all that is known of it. Read by eye, a person
kept six to twelve of thirty such lines. So only what a user stated themselves, as a rule, preference, decision or
correction that stands alone, is offered, and what was said in two sessions. All else stays an observation.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_pipeline.lake.rows import ReflectionRow, SourceRow
from memory_pipeline.observations.answering import words_of
from memory_pipeline.observations.types import EXTRACTIVE
from memory_pipeline.text.kinds import NORMATIVE
from memory_pipeline.text.priorities import HIGH, MEDIUM
from memory_pipeline.text.standing import stands_alone, tells_what

LASTING = ("rule", "preference", "decision", "correction", "root_cause", "convention")
NOTABLE_SESSIONS = 2
"""Sessions that a line must have been said in to be offered, where it is not offered by itself."""
MAX_OF_SESSION = 5
"""Lines that a model made of one session and day that are offered, the best: more are not read. What is quoted is few
by itself, and each of it a rule of the user's that would be lost."""


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
    return stands_alone(words, kind) and (words == text or tells_what(words))


def is_quoted(line: ReflectionRow, sources: Sequence[SourceRow]) -> bool:
    """Whether no model had a part in it: neither in the words nor in what was made of them."""
    observer = str(sources[0].get("observer") or "") if sources else ""  # notes of the user's have none
    return line["reflector"].startswith(EXTRACTIVE) and observer.startswith(EXTRACTIVE)
