"""The segments of a conversation: where they begin, and the narrative of each in quoted sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

from memory_pipeline.harnesses.model import CHOICES
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.text.kinds import is_noise, length_of
from memory_pipeline.text.languages.identify import english
from memory_pipeline.text.sentences import clip, sentences, squeeze
from memory_pipeline.text.similarity import content_words

SPEAKERS = ("user", "assistant")
MIN_MESSAGES, MAX_MESSAGES = 10, 50
"""Minimum messages of a topic that a change of words ends, and maximum after which the user's next message ends it."""
MAX_WINDOW = 2 * MAX_MESSAGES
"""Maximum messages of a segment, whoever speaks."""
AFTER_BREAKPOINT = 4
"""Minimum messages of a topic that a natural end, like a commit, ends."""
GAP = timedelta(minutes=30)
COHESION = 0.2
"""Share of common words before and after a user's message below which it begins a new topic."""
MIN_WISH = 12
"""Minimum characters of a user's message that may begin a topic."""
LOOKED_AT = 3000
"""Characters of a message that are searched for a natural end."""
_FINISHING = re.compile(r"\bgit (commit|push|merge)\b|\btests? pass|\b[1-9]\d* passed\b", re.I)
"""Commands and output of a tool that finish a piece of work."""
NARRATIVE_VERSION = "2"
MAX_CLIP = 160
"""Maximum characters of each sentence of a narrative."""
MIN_REQUEST, MIN_OUTCOME = 12, 20
"""Minimum characters of a text that states the request, and of one that states the outcome."""
SENTENCE_ENDS = tuple(".!?…:;。！？")
"""Characters that end a sentence; a full stop is added if there is none."""
ASKED, DONE, ENDED = "Asked: ", "Done: ", "Ended with: "


def segment_starts(messages: Sequence[WindowMessage]) -> list[int]:
    """The positions at which a segment begins; the first is 0.

    A segment begins with a message of the user that is more than consent: after a pause, after something was finished,
    when the user turns to the next task, or where the words change. Only an overlong segment is cut at any speaker. The
    numbers were set with the labelled sessions in view.
    """
    starts = [0] if messages else []
    vocabulary = [content_words(m.own) if m.role in SPEAKERS else frozenset() for m in messages]
    is_finished = False
    for i in range(1, len(messages)):
        is_finished = is_finished or _finishes(messages[i - 1])
        length = i - starts[-1]
        if length >= MAX_WINDOW or (_is_wish(messages[i]) and _opens(messages, i, length, is_finished, vocabulary)):
            starts.append(i)
            is_finished = False
    return starts


def _is_wish(message: WindowMessage) -> bool:
    own = message.own.strip() if message.role == "user" and message.answer_to not in CHOICES else ""
    return len(own) >= MIN_WISH and bool(english().next_thing.match(own) or not english().accepting.match(own))


def _opens(
    messages: Sequence[WindowMessage], i: int, length: int, is_finished: bool, vocabulary: Sequence[frozenset[str]]
) -> bool:
    if messages[i].said_at - messages[i - 1].said_at >= GAP or length >= MAX_MESSAGES:
        return True
    if length >= AFTER_BREAKPOINT and (is_finished or english().next_thing.match(messages[i].own)):
        return True
    return length >= MIN_MESSAGES and _cohesion(vocabulary, i) < COHESION


def _finishes(message: WindowMessage) -> bool:
    """Whether the message finishes something: a commit, or tests that pass."""
    if message.role == "tool":
        return not message.is_error and bool(_FINISHING.search(message.text, 0, LOOKED_AT))
    return message.role == "assistant" and bool(english().finished.search(message.text, 0, LOOKED_AT))


def _cohesion(vocabulary: Sequence[frozenset[str]], i: int) -> float:
    """Words shared by the messages of a short topic before and after position i, divided by the words of the smaller
    side."""
    before = frozenset().union(*vocabulary[max(0, i - MIN_MESSAGES) : i])
    after = frozenset().union(*vocabulary[i : i + MIN_MESSAGES])
    smaller = min(len(before), len(after))
    return len(before & after) / smaller if smaller else 1.0


def narrative(messages: Sequence[WindowMessage]) -> str:
    """The request, the work and the outcome, in quoted words."""
    wishes = (m.own for m in messages if m.role == "user" and m.answer_to not in CHOICES)
    asked = next((own for own in wishes if length_of(own.strip()) >= MIN_REQUEST), None)
    ending = next(_reported(reversed(messages)), None)
    done = next((w for w in _reported(reversed(messages)) if w != ending and english().state_change.search(w)), None)
    reported = ((ASKED, squeeze(asked) if asked else None), (DONE, done), (ENDED, ending))
    parts = [f"{label}{clip(words, MAX_CLIP)}" for label, words in reported if words]
    stopped = [part if part.endswith(SENTENCE_ENDS) else f"{part}." for part in parts[:-1]]
    return " ".join([*stopped, *parts[-1:]]) or "Only tools and injected text."


def title(narrative: str) -> str:
    """The request, shortened if possible."""
    asked = narrative.removeprefix(ASKED)
    return min(asked.split(DONE)[0], asked.split(ENDED)[0], key=len) or narrative


def _reported(messages: Iterator[WindowMessage]) -> Iterator[str]:
    """The model's words without plans, offers and praise."""
    for message in messages:
        if message.role == "assistant":
            for sentence in sentences(message.text):
                words = squeeze(message.text[sentence.start : sentence.end])
                if length_of(words) >= MIN_OUTCOME and not words.endswith(":") and not is_noise(words):
                    yield words
