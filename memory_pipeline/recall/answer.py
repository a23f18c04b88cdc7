"""Answers to questions, every part with its source.

Without a language model the answer consists of quotes. With one it is written, and a sentence is kept only if it cites
a passage and has no names or numbers that its passages lack.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from memory_pipeline.days import day_of
from memory_pipeline.llm.config import reflector_model
from memory_pipeline.llm.errors import (
    BudgetReachedError,
    ModelMisconfiguredError,
    ModelUnavailableError,
    RequestRefusedError,
)
from memory_pipeline.recall.search import MEMORY_LINE, Found, Results
from memory_pipeline.text.sentences import clip, sentences
from memory_pipeline.text.specifics import Words, missing_specifics
from memory_pipeline.text.terms import query_terms

if TYPE_CHECKING:
    from memory_pipeline.workspace.workspace import Workspace

MAX_QUOTE = 400
"""Maximum characters of a quote, which is the sentence that covers most of the question with the text after it."""
AS_GOOD = 0.7
"""Minimum coverage, as a share of the best quote's, of a quote that answers equally well. The newest of these comes
first."""
_CITED = re.compile(r"\[(\d{1,2})\]")
_NOTHING = re.compile(r"\s*NOTHING FOUND\W*\s*", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=\])\s*(?:[.;]\s*)?(?=[^\s\[.;])|\n+")


@dataclass(frozen=True)
class Quote:
    """A hit with the part of it that answers the question best."""

    hit: Found
    text: str


@dataclass(frozen=True)
class Answer:
    """An answer. `written` are a model's sentences, with numbers of quotes in brackets, counted from 1; empty without a
    model."""

    query: str
    quotes: tuple[Quote, ...]
    written: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def cited(self) -> tuple[str, ...]:
        """Ids of the sources of the answer."""
        numbers = {int(n) for sentence in self.written for n in _CITED.findall(sentence)}
        chosen = [q for i, q in enumerate(self.quotes, 1) if i in numbers] if self.written else self.quotes
        return tuple(quote.hit.source_id for quote in chosen)


def extractive_answer(results: Results) -> Answer:
    """The hits as quotes, the newest first among equally good ones; empty if nothing was found."""
    if not results.is_likely:
        return Answer(results.query, (), notes=results.notes)
    return Answer(results.query, tuple(newest_first(results)), notes=results.notes)


def newest_first(results: Results) -> list[Quote]:
    """The quotes in order. A line of MEMORY.md, which a user approved, comes before other quotes with the same
    meaning."""
    quotes = [Quote(hit, _quote(hit.text, results.weights)) for hit in results.hits]
    covered = {id(q): _coverage(q.hit.text, results.weights) for q in quotes}
    best = max(covered.values(), default=0.0)
    good = [q for q in quotes if covered[id(q)] >= AS_GOOD * best]
    ordered = sorted(good, key=lambda q: q.hit.timestamp or q.hit.day, reverse=True)
    ordered += [q for q in quotes if q not in good]
    return sorted(ordered, key=lambda q: q.hit.record != MEMORY_LINE)


def written_answer(workspace: Workspace, answer: Answer) -> Answer:
    """The answer written by the reflector's model; unchanged, with a note, if that fails."""
    config = reflector_model(workspace.settings)
    if config is None or not answer.quotes:
        return answer
    from memory_pipeline.llm.client import client_of
    from memory_pipeline.llm.prompts import filled, text_of
    from memory_pipeline.llm.request import Request
    from memory_pipeline.redaction.redactor import redactor_of

    client = client_of(
        config, workspace.settings.reflector, workspace, redactor_of(workspace.settings).redact, "recall"
    )
    passages = "\n\n".join(f"[{i}] {describe_source(q.hit)}\n{q.hit.text}" for i, q in enumerate(answer.quotes, 1))
    fence = f"passages-{hashlib.sha256(passages.encode()).hexdigest()[:8]}"
    prompt = filled("recall_turn", {"fence": fence, "passages": passages, "question": answer.query})
    request = Request(client.model, text_of("recall"), prompt, max_output_tokens=1_000)
    try:
        reply = client.complete(request, day_of(datetime.now(UTC), workspace.settings.zone))
    except (BudgetReachedError, ModelMisconfiguredError, ModelUnavailableError, RequestRefusedError) as error:
        return replace(answer, notes=(*answer.notes, f"Quotes only, because no model answered: {error}"))
    if _NOTHING.fullmatch(reply.text):
        return replace(answer, quotes=())
    written, dropped = checked(reply.text, answer.quotes)
    notes = [f"{dropped} sentence(s) of the model were left out: no passage supports them."] if dropped else []
    return replace(answer, written=tuple(written), notes=(*answer.notes, *notes))


def checked(text: str, quotes: Sequence[Quote]) -> tuple[list[str], int]:
    """The sentences that cite existing passages containing all of their names and numbers, and the number of the
    others."""
    kept, dropped = [], 0
    for sentence in filter(None, (part.strip() for part in _SENTENCE_END.split(text))):
        numbers = [int(n) for n in _CITED.findall(sentence)]
        bare = _CITED.sub("", sentence).strip()
        if not any(c.isalnum() for c in bare):
            continue
        there = [quotes[n - 1] for n in numbers if 1 <= n <= len(quotes)]
        said = Words([f"{q.hit.text} {q.hit.day} {q.hit.project}" for q in there])
        if there and len(there) == len(numbers) and not missing_specifics(bare, said):
            kept.append(sentence)
        else:
            dropped += 1
    return kept, dropped


def describe_source(hit: Found) -> str:
    """The time, place and speaker of a hit on one line."""
    if hit.record == MEMORY_LINE:
        return " · ".join(filter(None, ("MEMORY.md", hit.kind, hit.day)))
    who = {"user": "you", "assistant": "the agent", "injected": "a program"}.get(hit.role, hit.record)
    name = f"“{clip(hit.session_name, 50)}”" if hit.session_name else hit.session_id
    return " · ".join(filter(None, (hit.day, hit.project, who, f"in {name}" if name else "")))


def _quote(text: str, weights: Mapping[str, float]) -> str:
    found = list(sentences(text))
    if not found:
        return clip(" ".join(text.split()), MAX_QUOTE)
    best = max(found, key=lambda s: (_coverage(text[s.start : s.end], weights), -s.start))
    return clip(" ".join(text[best.start :].split()), MAX_QUOTE)


def _coverage(text: str, weights: Mapping[str, float]) -> float:
    return sum(weights[term] for term in weights.keys() & query_terms(text))
