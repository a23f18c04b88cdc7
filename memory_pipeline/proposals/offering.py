"""Selection of lines to offer: notable lines of a model, and quotes that are explicit statements of a user.

Without a model a line is a verbatim quote. It is offered only if the user stated it explicitly and it is understandable
on its own. All others stay observations, however often they were said. A model's rule that only tells what happened is
not offered: it does not say what to do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory_pipeline.lake.rows import ReflectionRow, SourceRow
from memory_pipeline.observations.types import EXTRACTIVE, words_of
from memory_pipeline.reflections.types import UNFILED, is_guidance
from memory_pipeline.text.explicit import statements
from memory_pipeline.text.kinds import NORMATIVE
from memory_pipeline.text.lines import narrates, stands_alone
from memory_pipeline.text.priorities import HIGH, MEDIUM

_QUESTION_END = re.compile(r"[?？]\s*")
LASTING = ("rule", "preference", "decision", "correction", "root_cause", "convention")
NOTABLE_SESSIONS = 2
"""Minimum number of sessions from which a model's line of medium priority is offered, whatever its kind."""
MAX_OF_SESSION = 5
"""Maximum lines of a model that are offered per session and day, the best ones: nobody reads more. Quotes are not
limited: they are few, and each is a user's rule that would be lost."""


def is_offered(line: ReflectionRow, sources: Sequence[SourceRow]) -> bool:
    """Whether the line may become a proposal; ``sources`` are its observations, the one with its words first."""
    if is_quoted(line, sources):
        is_explicit = line["priority"] == HIGH and line["kind"] in NORMATIVE and sources[0]["trust"] == "user"
        return is_explicit and _is_clear(line["text"])
    if is_guidance(line["kind"], UNFILED) and narrates(line["text"]):
        return False
    is_notable = line["kind"] in LASTING or line["sessions"] >= NOTABLE_SESSIONS
    return line["priority"] == HIGH or (line["priority"] == MEDIUM and is_notable)


def _is_clear(text: str) -> bool:
    """Whether the words prescribe something lasting. A choice among an agent's options is usually about its task: of
    seven such lines read by hand, none was worth keeping."""
    words = words_of(text)
    answer = _QUESTION_END.split(words)[-1]
    return stands_alone(words) and (answer == text or any(statements(answer)))


def is_quoted(line: ReflectionRow, sources: Sequence[SourceRow]) -> bool:
    """Whether no model was involved, neither in the words nor in merging them."""
    observer = str(sources[0].get("observer") or "") if sources else ""  # the user's notes have none
    return line["reflector"].startswith(EXTRACTIVE) and observer.startswith(EXTRACTIVE)
