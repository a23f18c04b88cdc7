"""Sentences in which a person lays something down in explicit words: a rule, a preference, a decision, a request to
remember.

The words are roles in `languages/*.toml`. One of four must be in the sentence (`sets_rule`, `sets_preference`,
`sets_decision`, `remembers`), and nothing that takes it out again: a question, a doubt, a supposition, a complaint, a
restriction to the moment. Without such words a sentence is never a rule here, however often it is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from memory_pipeline.text.kinds import is_momentary_question, is_prose, is_question
from memory_pipeline.text.languages.cues import cues_of
from memory_pipeline.text.phrases import Cues
from memory_pipeline.text.sentences import Sentence, sentences, squeeze
from memory_pipeline.text.similarity import content_words

_SETS = (
    ("sets_rule", "rule"),
    ("sets_preference", "preference"),
    ("sets_decision", "decision"),
    ("remembers", "rule"),
)
"""Roles in the order in which they are looked for, each with the kind of what it lays down."""
_TAKES_OUT = ("open", "doubt", "guess", "supposes", "for_now", "complaint", "offer", "unsettled")
MAX_STATEMENT = 600
"""Maximum characters of a statement with what qualifies it."""


@dataclass(frozen=True)
class Statement:
    """`text[start:end]` of a message, in which something is laid down."""

    start: int
    end: int
    kind: str
    """`rule`, `preference` or `decision`."""


def explicit_kind(sentence: str) -> str | None:
    """The kind of what this sentence lays down; None if it lays nothing down."""
    cues = cues_of(sentence)
    kind = next((kind for role, kind in _SETS if getattr(cues, role).search(sentence)), None)
    return None if kind is None or leaves_open(sentence) else kind


def statements(text: str) -> Iterator[Statement]:
    """Everything that a message lays down, in order, each with the sentences behind it that qualify it."""
    found: Statement | None = None
    last: Sentence | None = None
    for sentence in sentences(text):
        words = squeeze(text[sentence.start : sentence.end])
        kind = explicit_kind(words) if sentence.kind != "heading" and is_prose(words) else None
        if found and last and _goes_on(found, last, sentence, words, kind):
            found = Statement(found.start, sentence.end, found.kind)
        else:
            if found:
                yield found
            found = Statement(sentence.start, sentence.end, kind) if kind else None
        last = sentence
    if found:
        yield found


def answers_question(question: str, answer: str) -> bool:
    """Whether an answer says what is to hold, to a question about how things are to be: one that offers things to
    choose from, or asks which. A question about the agent's next step asks for leave."""
    asking = cues_of(question)
    if asking.offer.search(question) or is_momentary_question(question) or not asking.chooses.search(question):
        return False
    cues = cues_of(answer)
    if leaves_open(answer) or cues.acceptance.match(answer) or cues.momentary.search(answer):
        return False
    return bool(content_words(answer)) or answer.strip(" .").isdigit()


def leaves_open(words: str) -> bool:
    """Whether the words leave open what they say."""
    cues = cues_of(words)
    return is_question(words) or any(getattr(cues, role).search(words) for role in _TAKES_OUT)


def _goes_on(found: Statement, last: Sentence, sentence: Sentence, words: str, kind: str | None) -> bool:
    """Whether a sentence qualifies the statement before it: in its paragraph, and no question."""
    if sentence.paragraph != last.paragraph or sentence.end - found.start > MAX_STATEMENT or is_question(words):
        return False
    cues: Cues = cues_of(words)
    return bool(cues.qualifies.search(words)) and (kind is not None or not cues.momentary.search(words))
