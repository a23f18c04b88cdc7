"""Verification of a model's lines: unsupported ones are dropped, and each gets no more weight than its observations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from memory_pipeline.llm.answers.cleaning import without_markup
from memory_pipeline.observations.model.alignment import SPEAKER_NAMES, Rarity, stems
from memory_pipeline.reflections.model.answer import ParsedLine
from memory_pipeline.reflections.types import Observation, ReflectionLine, best_priority, best_trust, section_of
from memory_pipeline.scope import may_end
from memory_pipeline.text.dates import clock_times
from memory_pipeline.text.kinds import RULES
from memory_pipeline.text.priorities import MEDIUM, RANK
from memory_pipeline.text.sentences import clip, sentences
from memory_pipeline.text.specifics import Words, missing_specifics

MAX_SENTENCES, MAX_SUMMARY = 2, 400
MIN_SUPPORT = 0.4
"""Minimum share of a model's line, weighted by rarity, in the words of its observations; the rest is wording. Of facts
that two careful readers wrote about the same session in their own words, 97 % pass compared with the other's, and less
than 1 % compared with another fact."""
MIN_SOURCE_SHARE = 0.15
"""Minimum share of a model's line in one observation that counts as its source."""


class Checker:
    """The observations that a model was shown, indexed by words. Number n is `observed[n - 1]`.

    `memory` are the lines of MEMORY.md by their ids.
    """

    def __init__(self, observed: Sequence[Observation], memory: Mapping[str, str] | None = None) -> None:
        self.observed = observed
        self._memory = memory or {}
        self._stems = [stems(o.said) for o in observed]
        self._rarity = Rarity(self._stems)

    def check(self, parsed: ParsedLine) -> ReflectionLine | None:
        """The verified line, ready to be stored; None if its observations do not exist or do not support it.

        A line that MEMORY.md already says has its words there.
        """
        if parsed.known:
            lines = (self.check(replace(parsed, text=text, known=())) for text in self._existing_lines(parsed.known))
            return next((line for line in lines if line), None)
        parsed = replace(parsed, text=without_markup(parsed.text, [o.said for o in self.observed]))
        named, replaced = self._valid_numbers(parsed.sources), self._valid_numbers(parsed.replaced)
        if not any(self.observed[i].may_lead for i in named) or not self._is_supported(
            parsed.text, [*named, *replaced]
        ):
            return None
        shares = {i: self._share(parsed.text, [i]) for i in named}
        saying = [i for i in named if shares[i] >= MIN_SOURCE_SHARE]
        leading = [i for i in saying if self.observed[i].may_lead]
        if not leading:
            return None
        lead = max(leading, key=lambda i: (shares[i], self.observed[i].observed_at, -i))
        sources = [self.observed[i] for i in (lead, *(i for i in saying if i != lead))]
        kind = _kind(parsed.kind, sources)
        section = next((s for s in (parsed.section, sources[0].section) if s is not None), None)
        if section is None:
            section = section_of(kind)
        return ReflectionLine(
            section=section,
            text=parsed.text,
            priority=max(parsed.priority or MEDIUM, best_priority(sources), key=RANK.__getitem__),
            kind=kind,
            sources=tuple(o.observation_id for o in sources),
            sessions=len({o.session_id for o in sources}),
            first_seen=min(o.observed_at for o in sources),
            last_seen=max(o.observed_at for o in sources),
            trust=best_trust(sources),
            superseded=tuple(self._replaced_sources(replaced, sources)),
            tags=parsed.tags,
            contradicts=tuple(
                line
                for line in self._existing_lines(parsed.contradicted)
                if not (stems(line) - SPEAKER_NAMES).isdisjoint(stems(parsed.text))
            ),
        )

    def _existing_lines(self, ids: Sequence[str]) -> list[str]:
        return [self._memory[i] for i in ids if i in self._memory]

    def summary(self, text: str | None) -> str | None:
        """The first sentences of a summary, without those with an unsupported name, number or time."""
        texts = [o.said for o in self.observed]
        said, times = Words(texts), set().union(*map(clock_times, texts))
        words = without_markup(text or "", texts)
        found = (words[s.start : s.end].strip() for s in sentences(words))
        kept = [s for s in found if s and clock_times(s) <= times and not missing_specifics(s, said)]
        return clip(" ".join(kept[:MAX_SENTENCES]), MAX_SUMMARY) or None

    def _valid_numbers(self, numbers: Sequence[int]) -> list[int]:
        return [n - 1 for n in numbers if 1 <= n <= len(self.observed)]

    def _is_supported(self, text: str, positions: Sequence[int]) -> bool:
        texts = [self.observed[i].said for i in positions]
        if not clock_times(text) <= set().union(*map(clock_times, texts)):
            return False
        return not missing_specifics(text, Words(texts)) and self._share(text, positions) >= MIN_SUPPORT

    def _share(self, text: str, positions: Sequence[int]) -> float:
        """Share of the text's words, weighted by rarity, in these observations."""
        return self._rarity.share(text, set().union(*(self._stems[i] for i in positions)))

    def _replaced_sources(self, replaced: Sequence[int], sources: Sequence[Observation]) -> list[str]:
        """The observations that the model calls replaced, if they are older than the line's newest source."""
        newest = max(o.observed_at for o in sources)
        ids = {o.observation_id for o in sources}
        projects = {project for o in sources for project in o.projects}
        older = (self.observed[i] for i in replaced if self.observed[i].observed_at < newest)
        return [o.observation_id for o in older if o.observation_id not in ids and may_end(projects, o.projects)]


def _kind(reported: str | None, sources: Sequence[Observation]) -> str:
    """The kind that the model gives, if its sources allow it; else that of the source with its words."""
    lead = sources[0]
    if all(o.kind == "question" for o in sources):
        return "question"
    of_person = any(o.trust == "user" and o.kind in (*RULES, "decision", "convention") for o in sources)
    if reported and (reported not in RULES or of_person):
        return reported
    if lead.kind in RULES and lead.trust != "user":
        return "statement"
    return next(o.kind for o in sources if o.kind != "question") if lead.kind == "question" else lead.kind
