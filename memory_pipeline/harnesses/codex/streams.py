"""Deduplication of events and items of a rollout, after reading all of it.

Prompts are `user_message` events (until 2026), `UserMessage` items of `item_completed` (since then) and `response_item`
of the role user, which also contains text inserted by the program; the same holds for answers.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from memory_pipeline.harnesses.content import images_in, without_marks
from memory_pipeline.harnesses.model import Role
from memory_pipeline.harnesses.speakers import Passage
from memory_pipeline.harnesses.transcript import Place


class Prompt(NamedTuple):
    """The contents of a record of a prompt."""

    parts: list[Passage]
    place: Place

    @property
    def bare(self) -> str:
        return "\n".join(without_marks(text) for _, text in self.parts)


class Utterance(NamedTuple):
    """A deduplicated message."""

    role: Role
    text: str
    place: Place


class Streams:
    """A collector of possibly repeated messages."""

    def __init__(self) -> None:
        self.event_prompts: list[Prompt] = []
        self.item_prompts: list[Prompt] = []
        self.response_prompts: list[Prompt] = []
        self.event_answers: list[tuple[str, Place]] = []
        self.item_answers: list[tuple[str, Place]] = []
        self.response_answers: Counter[str] = Counter()
        """The number of occurrences of each answer, by its text."""

    def prompts(self) -> list[Prompt]:
        """The prompts of the older events, and those of newer ones that do not repeat one, as some versions write
        both."""
        left = Counter(prompt.bare for prompt in self.event_prompts)
        prompts = list(self.event_prompts)
        for prompt in self.item_prompts:
            if left[prompt.bare] > 0:
                left[prompt.bare] -= 1
            else:
                prompts.append(prompt)
        return prompts

    def prompts_once(self, typed: Role) -> Iterator[Utterance]:
        """The prompts, whose typed words get the role `typed`, and text inserted by the program.

        If there is an event stream, a `response_item` without a corresponding event comes from the program.
        """
        prompts = self.prompts()
        used = set()
        pictured: dict[str, list[str]] = {}
        for prompt in self.response_prompts:
            for _, text in prompt.parts:
                if images_in(text):
                    pictured.setdefault(without_marks(text), []).append(text)
        for prompt in prompts:
            for speaker, text in prompt.parts:
                used.add(without_marks(text))
                # the event may only have the file name of an image whose bytes are in the item
                same = pictured.get(without_marks(text)) if images_in(text) else None
                written = same.pop(0) if same else text
                yield Utterance(typed if speaker == "user" else speaker, written, prompt.place)
        for prompt in self.response_prompts:
            for speaker, text in prompt.parts:
                if without_marks(text) not in used:
                    role: Role = "injected" if prompts or speaker != "user" else typed
                    yield Utterance(role, text, prompt.place)

    def answers_once(self) -> Iterator[Utterance]:
        """The answers that no `response_item` repeats."""
        known = self.response_answers.copy()
        for answers in (self.event_answers, self.item_answers):
            left = known.copy()
            for text, place in answers:
                if left[without_marks(text)] > 0:
                    left[without_marks(text)] -= 1
                else:
                    known[without_marks(text)] += 1
                    yield Utterance("assistant", text, place)

    def rolled_back(self, rollbacks: list[tuple[int, int]]) -> set[int]:
        """Records of turns that were voided, for each (record of the rollback, number of turns): the last prompts and
        everything after each."""
        if not rollbacks:
            return set()
        waiting = deque(sorted(prompt.place.record for prompt in (self.prompts() or self.response_prompts)))
        items = {item.place.record for item in self.response_prompts}
        active: list[int] = []
        voided: list[range] = []
        for at, turns in rollbacks:
            while waiting and waiting[0] < at:
                active.append(waiting.popleft())
            if active and turns > 0:
                prompt = active[-min(turns, len(active))]
                # the prompt's `response_item` is the last one before its event
                start = next((record for record in range(prompt - 1, prompt - 4, -1) if record in items), prompt)
                while active and active[-1] >= start:
                    active.pop()
                while voided and voided[-1].stop >= start:
                    start = min(start, voided.pop().start)
                voided.append(range(start, at))
        return set(chain.from_iterable(voided))


def essence(text: str) -> str:
    """A short substitute for a text in an identity: for a long one its length, beginning and end, as hashing a whole
    log takes longer than everything else."""
    return text if len(text) <= 2000 else f"{len(text)}\x1f{text[:1000]}\x1f{text[-1000:]}"
