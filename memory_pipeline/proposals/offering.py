"""Selection of lines to offer: the notable ones of a model, and of quotes only what a person laid down.

Without a model a line is somebody's words as they were typed. Only what is explicit is offered: what the user laid down
in words that say so, and that stand alone. All else stays an observation, however often it was said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory_pipeline.lake.rows import ReflectionRow, SourceRow
from memory_pipeline.observations.answering import words_of
from memory_pipeline.observations.types import EXTRACTIVE
from memory_pipeline.text.explicit import statements
from memory_pipeline.text.kinds import NORMATIVE
from memory_pipeline.text.lines import stands_alone
from memory_pipeline.text.priorities import HIGH, MEDIUM

_QUESTION_END = re.compile(r"[?？]\s*")
LASTING = ("rule", "preference", "decision", "correction", "root_cause", "convention")
NOTABLE_SESSIONS = 2
"""Sessions from which a model's line of medium priority is offered whatever its kind."""
MAX_OF_SESSION = 5
"""Maximum lines of a model per session and day that are offered, the best: more are not read. Quotes are few by
themselves, and each is a rule of the user's that would be lost."""


def is_offered(line: ReflectionRow, sources: Sequence[SourceRow]) -> bool:
    """Whether the line may become a proposal; ``sources`` are what it rests on, the one with the words first."""
    if is_quoted(line, sources):
        is_explicit = line["priority"] == HIGH and line["kind"] in NORMATIVE and sources[0]["trust"] == "user"
        return is_explicit and _is_clear(line["text"])
    is_notable = line["kind"] in LASTING or line["sessions"] >= NOTABLE_SESSIONS
    return line["priority"] == HIGH or (line["priority"] == MEDIUM and is_notable)


def _is_clear(text: str) -> bool:
    """Whether the words say what is to hold. What a user chose of an agent's answers was for its task, as a rule: read
    by eye, none of seven such lines was worth keeping as it stood."""
    words = words_of(text)
    answer = _QUESTION_END.split(words)[-1]
    return stands_alone(words) and (answer == text or any(statements(answer)))


def is_quoted(line: ReflectionRow, sources: Sequence[SourceRow]) -> bool:
    """Whether no model had a part in it, neither in the words nor in their condensation."""
    observer = str(sources[0].get("observer") or "") if sources else ""  # notes of the user's have none
    return line["reflector"].startswith(EXTRACTIVE) and observer.startswith(EXTRACTIVE)
