"""Conversations that are no work on code: what is worth keeping there shows in rare words, not in the cues of work.

The weights of the observer were fitted on coding sessions. In a talk between people, or with a model about anything
else, they do no better than chance; the rarest words do (`benchmarks/answer_words.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_pipeline.observations.extractive import cues
from memory_pipeline.observations.extractive.features import Window
from memory_pipeline.observations.extractive.kinds import is_passing, is_prose
from memory_pipeline.observations.extractive.units import Unit
from memory_pipeline.text.condense import condense
from memory_pipeline.text.sentences import sentences, squeeze
from memory_pipeline.text.tokens import estimate

LEAST_SAID = 10
"""Messages below which nobody can tell what kind of conversation it is."""
MOST_WORK = 0.2
"""Share of the messages that may name files, identifiers or options, or announce what is done next. Between people it
is below .05, in coding sessions mostly above .3."""
_CODE = re.compile(
    r"`|\b[\w.-]+/[\w./-]+\w|\b\w+\.(?:py|ts|js|go|rs|md|json|sh|ya?ml|toml)\b|\b\w+_\w+\b|\b[a-z]+[A-Z]\w+|--\w+"
)


def is_talk(window: Window) -> bool:
    """Whether no tool was used, hardly anything of code was named and hardly any step of work announced."""
    said = [m.text for m in window.messages if m.role in ("user", "assistant")]
    if len(said) < LEAST_SAID or any(m.role == "tool" for m in window.messages):
        return False
    return sum(bool(_CODE.search(text) or cues.PLAN.search(text)) for text in said) < MOST_WORK * len(said)


def rarest(window: Window, tokens: int) -> list[Unit]:
    """The sentences that say most with rare words, in order, within so many tokens."""
    found = list(_sentences(window))
    total = sum(estimate(unit.text) for unit in found)
    return [found[i] for i in condense([unit.text for unit in found], tokens / total)] if total else []


def _sentences(window: Window) -> Iterator[Unit]:
    for position, message in enumerate(window.messages):
        if message.role in ("user", "assistant"):
            form = "whole" if message.role == "user" else "said"
            for sentence in sentences(message.own):
                words = squeeze(message.text[sentence.start : sentence.end])
                if is_prose(words) and not is_passing(words):
                    yield Unit(position, sentence.start, sentence.end, words, form, (words,))
