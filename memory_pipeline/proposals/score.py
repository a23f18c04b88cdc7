"""Lines that must never be offered, and the score of the others, so that the best come first."""

from __future__ import annotations

from collections.abc import Sequence

from memory_pipeline.lake.rows import ReflectionRow, SourceRow
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.observations.answering import words_of
from memory_pipeline.observations.flags import DOUBTED
from memory_pipeline.redaction.forgotten import MARK
from memory_pipeline.redaction.spoken import names_password
from memory_pipeline.reflections.types import CHANGES, FITS_NONE, is_guidance
from memory_pipeline.text.kinds import RULES, is_momentary_request, is_question
from memory_pipeline.text.lines import guesses, is_list, orders, points, reports_success, supposes
from memory_pipeline.text.priorities import HIGH, LOW, MEDIUM
from memory_pipeline.text.specifics import specifics
from memory_pipeline.text.tokens import estimate

USER = "user"
TRUSTED = (USER, "assistant")
"""Speakers whose words may say what to do: the user, and the model that works for them. Results of tools, pastes and
what programs put into a message may hold a stranger's."""
ORDER, FLAGGED, EMPTY = "instruction_not_trusted", "flagged", "empty"
QUESTION, HYPOTHETICAL, SECRET, FORGOTTEN = "question", "hypothetical", "secret", "forgotten"


def why_left_out(text: str, observed: Sequence[SourceRow]) -> str | None:
    """The reason why a line is not offered, if there is one; ``observed`` are its observations, the one with the words
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
BY_USER, NORMATIVE_SCORE, SPECIFIC, SAID_AGAIN = 0.2, 0.5, 0.4, 0.3
"""Bonuses: for a user's words, for rules among them, for names and numbers, for each further session."""
PARAGRAPH, LISTED, STATUS, LEANING, GUESS, MOMENTARY = -0.4, -0.3, -0.3, -0.3, -0.3, -0.6
"""Penalties: for text that the user would have to cut, for a model's list of changes and its news that something works,
for "that" without a name, for a guess, and for a request of the moment. All ten were chosen on the labelled sessions
with their figures in view; a fitted model was no better on sessions left out. `benchmarks/promoted.py` prints what the
order is worth."""
NEXT_TIME, REPORTED = 1.0, -0.5
"""Corrections for a line that a model wrote: a bonus as large as for being high if it says what to do next time, and a
penalty if it reports a change. A model reports a change with the names of all that it touched, which count as
specifics, and marks nearly all of its work as high: such lines filled the first page, and rules came after them."""
FULL = 4
"""The number of names above which more of them do not count."""
LONG = 70
"""Tokens of a paragraph."""
MAX_SESSIONS = 4


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
    """The score of the purpose of a model's line; ``section`` is its position, ``observed`` are its observations, the
    lead first. Instructions from results, pastes and programs alone get no bonus."""
    kind = observed[0]["kind"] if observed and line["kind"] in FITS_NONE else line["kind"]
    if is_guidance(kind, section):
        return NEXT_TIME if any(o["trust"] in TRUSTED for o in observed) else 0.0
    return REPORTED if kind == CHANGES else 0.0


def with_sessions(value: float, sessions: int) -> float:
    """The score of a line that was said in this number of sessions."""
    return value + SAID_AGAIN * (min(max(sessions, 1), MAX_SESSIONS) - 1)
