"""Selection of lines to offer, and the score by which they are sorted.

Without a model a line is a verbatim quote. It is offered only if the user stated it explicitly and it is understandable
on its own. All others stay observations, however often they were said. Of a model, notable lines are offered, but no
rule that only tells what happened: it does not say what to do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory_pipeline.lake.rows import ReflectionRow, SourceRow
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.observations.types import DOUBTED, EXTRACTIVE, words_of
from memory_pipeline.redaction.forgotten import MARK
from memory_pipeline.redaction.spoken import names_password
from memory_pipeline.reflections.types import CHANGES, FITS_NONE, UNFILED, is_guidance
from memory_pipeline.text.explicit import statements
from memory_pipeline.text.kinds import NORMATIVE, RULES, is_momentary_request, is_question
from memory_pipeline.text.lines import (
    guesses,
    is_list,
    narrates,
    orders,
    points,
    reports_success,
    stands_alone,
    supposes,
)
from memory_pipeline.text.priorities import HIGH, LOW, MEDIUM
from memory_pipeline.text.specifics import specifics
from memory_pipeline.text.tokens import estimate

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


USER = "user"
TRUSTED = (USER, "assistant")
"""Speakers who may give instructions: the user, and the model that works for them. Tool results, pastes and texts
inserted by programs may contain a stranger's."""
ORDER, FLAGGED, EMPTY = "instruction_not_trusted", "flagged", "empty"
QUESTION, HYPOTHETICAL, SECRET, FORGOTTEN = "question", "hypothetical", "secret", "forgotten"


def why_left_out(text: str, observed: Sequence[SourceRow]) -> str | None:
    """The reason why a line is not offered, or None; ``observed`` are its observations, the one with its words
    first."""
    visible = one_line(text)
    trust = {o["trust"] for o in observed}
    if not visible:
        return EMPTY
    if names_password(visible):
        return SECRET
    if MARK in visible:
        return FORGOTTEN
    if trust - set(TRUSTED) and USER not in trust and orders(visible):
        return ORDER
    if observed and set(observed[0]["flags"] or []) & set(DOUBTED):
        return FLAGGED
    if is_question(visible) or (observed and observed[0]["kind"] == "question"):
        return QUESTION
    return HYPOTHETICAL if supposes(words_of(visible)) else None


OF_PRIORITY = {HIGH: 1.0, MEDIUM: 0.0, LOW: -1.0}
BY_USER, NORMATIVE_SCORE, SPECIFIC = 0.2, 0.5, 0.4
"""Bonuses for a user's words, for rules among them, and for names and numbers."""
PARAGRAPH, LISTED, STATUS, LEANING, GUESS, MOMENTARY = -0.4, -0.3, -0.3, -0.3, -0.3, -0.6
"""Penalties for text that the user would have to cut, for a model's list of changes and its report of success, for
"that" without a name, for a guess, and for a momentary request. All ten values were chosen from the figures on the
labelled sessions; a fitted model was no better on sessions left out. `benchmarks/promoted.py` measures the order."""
NEXT_TIME, REPORTED = 1.0, -0.5
"""Corrections for a line that a model wrote: a bonus as large as that of high priority if it says what to do next time,
and a penalty if it reports a change. A model's report has the names of everything that it touched, which count as
specifics, and marks nearly all of its work as high; such lines filled the first page, before any rule."""
FULL = 4
"""Number of names at which their bonus reaches its maximum."""
LONG = 70
"""Minimum tokens of a paragraph."""


def line_score(text: str, kind: str, trust: str, priority: str) -> float:
    """The score of the words alone, from about -2.5 (worst) to 2.1; `trust` is the speaker."""
    named = specifics(text)
    value = OF_PRIORITY[priority] + SPECIFIC * min(FULL, len(named)) / FULL
    if trust == "user":
        value += BY_USER + NORMATIVE_SCORE * (kind in RULES) + MOMENTARY * is_momentary_request(text)
    else:
        value += LISTED * is_list(text) + STATUS * reports_success(text)
    value += GUESS * guesses(text) + LEANING * (not named and points(text))
    return round(value + PARAGRAPH * (estimate(text) > LONG), 3)


def use_score(line: ReflectionRow, section: int, observed: Sequence[SourceRow]) -> float:
    """The score for the purpose of a model's line; ``section`` is the index of its section, ``observed`` are its
    observations, the lead first. A line that only tells what happened counts as a report of a change. Instructions
    that come only from tool results, pastes and programs get no bonus."""
    if narrates(line["text"]):
        return REPORTED
    kind = observed[0]["kind"] if observed and line["kind"] in FITS_NONE else line["kind"]
    if is_guidance(kind, section):
        return NEXT_TIME if any(o["trust"] in TRUSTED for o in observed) else 0.0
    return REPORTED if kind == CHANGES else 0.0
