"""The narrative of a segment: one to three quoted sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memory_pipeline.harnesses.model import CHOICES
from memory_pipeline.observations.types import WindowMessage
from memory_pipeline.text.kinds import is_noise, length_of
from memory_pipeline.text.languages.cues import english
from memory_pipeline.text.sentences import clip, sentences, squeeze

VERSION = "2"
MAX_CLIP = 160
"""Maximum characters of each sentence."""
MIN_REQUEST, MIN_OUTCOME = 12, 20
"""Minimum characters of a text that states the request, and of one that states the outcome."""
SENTENCE_ENDS = tuple(".!?…:;。！？")
"""Characters that end a sentence; a full stop is added if there is none."""
ASKED, DONE, ENDED = "Asked: ", "Done: ", "Ended with: "


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
