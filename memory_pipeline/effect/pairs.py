"""Pairs of a need and an earlier line with the same meaning, chosen by the reflector's model among numbered ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Annotated

from pydantic import BeforeValidator, ValidationError

from memory_pipeline.effect.history import KnownLine
from memory_pipeline.effect.needs import Need
from memory_pipeline.friction.asking import Asking, Question
from memory_pipeline.llm.answers.cleaning import cleaned, without_thinking
from memory_pipeline.llm.answers.structured import Form, Number, json_values, only_valid
from memory_pipeline.llm.config import SMALL_CONTEXT, reflector_model
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.text.relation import CONTRADICTS, REPLACES, relation
from memory_pipeline.text.sentences import clip
from memory_pipeline.workspace.workspace import Workspace

MAX_NEEDS, MAX_LINES, MAX_TEXT = 40, 80, 200
"""Maximum number of needs and of lines in a request, and maximum characters of each: about 7,000 tokens."""
MAX_TOKENS = 1_000


# the schema has the names of these classes and the order of their fields, and is a part of a request's cache key


class PairForm(Form):
    remark: Number
    line: Number


class PairsForm(Form):
    pairs: Annotated[list[PairForm], BeforeValidator(only_valid(PairForm))]


PAIRS = Question("effect", "effect_turn", "effect_json", PairsForm)


class PairJudge:
    """Asks the reflector's model, if one with enough context is set."""

    def __init__(self, workspace: Workspace) -> None:
        self._asking = Asking(workspace, stage="effect")
        settings = workspace.settings
        self.is_set = reflector_model(settings) is not None and settings.effective_context > SMALL_CONTEXT

    @property
    def problems(self) -> list[str]:
        """The reasons why the model was not asked, or gave no answer."""
        return [f"{times}: {why}" for why, times in self._asking.refused.items()]

    def pairs(self, needs: Sequence[Need], lines: Sequence[KnownLine], day: date) -> Iterator[tuple[Need, KnownLine]]:
        """The pairs with the same meaning, each need at most once. A pair whose words contradict is dropped."""
        needs, lines = needs[:MAX_NEEDS], lines[:MAX_LINES]
        if not (self.is_set and needs and lines):
            return
        remarks = "\n".join(f"#{n} {_shown(need.text)}" for n, need in enumerate(needs, 1))
        noted = "\n".join(f"L{n} {_shown(line.text)}" for n, line in enumerate(lines, 1))
        mark = hashlib.sha256(f"{remarks}\n{noted}".encode()).hexdigest()[:8]
        values = {"fence": f"said-{mark}", "remarks": remarks, "lines": noted}
        answer = self._asking.answer(PAIRS, values, MAX_TOKENS, day)
        taken = set[int]()
        for n, m in read_pairs(answer or ""):
            if 1 <= n <= len(needs) and 1 <= m <= len(lines) and n not in taken:
                need, line = needs[n - 1], lines[m - 1]
                is_other = relation(need.text, line.words, cautious=True) in (REPLACES, CONTRADICTS)
                if not is_other and line.sessions != {need.session_id}:
                    taken.add(n)
                    yield need, line


def read_pairs(answer: str) -> list[tuple[int, int]]:
    """The numbers of remarks and lines in an answer."""
    text, _ = without_thinking(cleaned(answer))
    for value, _ in json_values(text):
        try:
            return [(pair.remark, pair.line) for pair in PairsForm.model_validate(value).pairs]
        except ValidationError:
            continue
    return []


def _shown(text: str) -> str:
    return clip(one_line(text), MAX_TEXT)
