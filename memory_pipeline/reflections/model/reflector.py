"""The reflector that asks a language model, batch by batch, and keeps the lines that their observations support.

Repeated lines, within an answer or across batches, are merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from itertools import accumulate
from typing import Self

from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.llm.backends.provider import takes_schema
from memory_pipeline.llm.client import Client, client_of
from memory_pipeline.llm.config import SMALL_CONTEXT, ModelConfig, observations_budget, token_budget
from memory_pipeline.llm.errors import RequestRefusedError
from memory_pipeline.llm.prompts import filled, hash_of, text_of
from memory_pipeline.llm.request import Answer, Request
from memory_pipeline.redaction import redactor_of
from memory_pipeline.reflections.evaluation import GUIDANCE, is_too_little
from memory_pipeline.reflections.model.answer import parse_reflection, schema
from memory_pipeline.reflections.model.checking import Checker
from memory_pipeline.reflections.model.rendering import Batch, ContextFiles, batches
from memory_pipeline.reflections.types import Observation, Reflection, ReflectionLine, UnusableAnswerError, best_trust
from memory_pipeline.text.priorities import RANK
from memory_pipeline.text.relation import WRITTEN_TWICE_BY_REFLECTOR, is_same
from memory_pipeline.text.tokens import PROSE, estimate
from memory_pipeline.workspace.workspace import Workspace


def merged(lines: Iterable[ReflectionLine]) -> list[ReflectionLine]:
    """The lines without repetitions, each with the newest wording and all sources."""
    found: list[ReflectionLine] = []
    for line in sorted(lines, key=lambda line: (-line.last_seen.timestamp(), RANK[line.priority], line.text)):
        in_section = ((i, other.text) for i, other in enumerate(found) if other.section == line.section)
        same = (i for i, text in in_section if is_same(text, line.text, WRITTEN_TWICE_BY_REFLECTOR))
        place = next(same, None)
        if place is None:
            found.append(line)
        else:
            found[place] = _joined(found[place], line)
    return found


def _joined(one: ReflectionLine, other: ReflectionLine) -> ReflectionLine:
    return replace(
        one,
        priority=min(one.priority, other.priority, key=RANK.__getitem__),
        sources=tuple(dict.fromkeys((*one.sources, *other.sources))),
        sessions=max(one.sessions, other.sessions),  # a lower bound: some may be in both
        first_seen=min(one.first_seen, other.first_seen),
        last_seen=max(one.last_seen, other.last_seen),
        trust=best_trust((one, other)),
        superseded=tuple(dict.fromkeys((*one.superseded, *other.superseded))),
        tags=tuple(dict.fromkeys((*one.tags, *other.tags))),
        contradicts=tuple(dict.fromkeys((*one.contradicts, *other.contradicts))),
    )


FILES_SHARE = 0.8
"""Share of the remaining context for MEMORY.md and the identity files, after instructions, observations and answer."""
LINES, JSON = "reflector_lines", "reflector_json"
"""The format of an answer for models without and with a JSON schema. Sizes are computed for lines, so that both give
the same batches."""
PROMPTS = (
    *("reflector", "reflector_context", "reflector_turn", "reflector_shorter", "reflector_again"),
    LINES,
    *("observer", "priorities", "format_tags"),  # explain to the reflector how observations are made
)
SMALL_PROMPTS = ("reflector_small", *PROMPTS[1:5])
"""Prompts for a model with a small context: short instructions, without those of the observer."""
POOL_INTRODUCTION = "All of this is more than three days old. "
GOOD, POOR, TOO_LONG, UNUSABLE = 3, 2, 1, 0
"""The quality of an answer: within the band, truncated or mostly unsupported, too long, or unusable."""


@dataclass(frozen=True)
class Attempt:
    """The result of one answer."""

    lines: tuple[ReflectionLine, ...]
    dropped: int
    quality: int
    problem: str = ""
    summary: str | None = None
    instead: str = ""
    """The reason why the fallback answered instead of the first model."""

    @property
    def score(self) -> tuple[int, int]:
        """A score that is higher for a better attempt: within the band the one with more sources, else the shorter
        one."""
        if self.quality == TOO_LONG:
            return self.quality, -sum(estimate(line.text) for line in self.lines)
        return self.quality, len({source for line in self.lines for source in line.sources})


@dataclass(frozen=True)
class LanguageModelReflector:
    """A reflector that asks a language model; `sections` are the names of the sections of MEMORY.md, with the user's
    own first.

    The context files are shown with observations, not with the lines of a pool, and do not affect the version: a
    promoted line does not make days out of date.
    """

    client: Client
    sections: tuple[str, ...]
    batch_tokens: int = 35_000
    context_files: ContextFiles = field(default_factory=ContextFiles)
    is_small: bool = False
    """Whether the model's context is small; see `SMALL_PROMPTS`."""

    @classmethod
    def from_config(cls, config: ModelConfig, workspace: Workspace) -> Self:
        """The reflector that asks this model, with the sizes that the settings allow."""
        settings, redact = workspace.settings, redactor_of(workspace.settings).redact
        is_small = settings.effective_context <= SMALL_CONTEXT
        prompts = SMALL_PROMPTS if is_small else PROMPTS
        explicit = settings.chunk_tokens if "chunk_tokens" in settings.model_fields_set else None
        shown = explicit or observations_budget(settings, config.max_output_tokens, prompts)
        room = token_budget(settings, config.max_output_tokens, prompts) - shown
        files = ContextFiles.from_settings(settings, redact).within(int(FILES_SHARE * room))
        client = client_of(config, settings.reflector, workspace, redact, "reflections")
        return cls(client, settings.sections, shown, files, is_small)

    @cached_property
    def name(self) -> str:
        """The name of the model and a hash of the prompts."""
        return self._named(self.client.model)

    def _named(self, model: str) -> str:
        return f"{model}#{hash_of(*(SMALL_PROMPTS if self.is_small else (*PROMPTS, JSON)))}"

    @property
    def version(self) -> str:
        """A hash of everything that would change the lines for the same observations."""
        config = self.client.config
        server = fingerprint_of(config.base_url)[:8] if config.base_url else None  # the address may hold a password
        return repr(
            (self.name, self.sections[0], self.batch_tokens, server, config.temperature, config.max_output_tokens)
        )

    def reflect(
        self, day: date, observations: Sequence[Observation], vectors: Mapping[str, Sequence[float]]
    ) -> Reflection:
        """The lines for the days that end with `day`. Raises `UnusableAnswerError` if no answer to a batch is usable,
        and the errors of `Client.complete`."""
        return self._condensed(day, batches(observations, self.batch_tokens, day))

    def pool(self, day: date, lines: Sequence[Observation], vectors: Mapping[str, Sequence[float]]) -> Reflection:
        """Like `reflect`. The request does not depend on the day, so that it is answered from the cache later."""
        return self._condensed(day, batches(lines, self.batch_tokens, None))

    def requests(self, day: date | None, observed: Sequence[Observation]) -> list[tuple[Request, Batch]]:
        """The first request of each batch of a day, or of a pool if the day is None; for estimates."""
        return [(self._request(batch), batch) for batch in batches(observed, self.batch_tokens, day)]

    def empty_request(self, day: date) -> Request:
        """The request for observations that are not known yet."""
        return self._request(Batch((), "", "", day))

    def _condensed(self, day: date, parts: Sequence[Batch]) -> Reflection:
        found = [self._best_attempt(day, batch) for batch in parts]
        lines = merged(line for attempt, _ in found for line in attempt.lines)
        return Reflection(
            tuple(lines),
            asked=sum(asked for _, asked in found),
            dropped=sum(attempt.dropped for attempt, _ in found),
            summary=" ".join(attempt.summary for attempt, _ in found if attempt.summary) or None,
            is_poor=any(attempt.quality != GOOD for attempt, _ in found),
            instead=tuple(attempt.instead for attempt, _ in found),
        )

    def _best_attempt(self, day: date, batch: Batch) -> tuple[Attempt, int]:
        """The best attempt, and the number of attempts. If all are too long, the least important lines are dropped."""
        checker = Checker(batch.observed, self._files_for(batch).text_of)
        best: Attempt | None = None
        guidance, number = "", 0
        for number, (share, said) in enumerate((*GUIDANCE, (0.0, "")), 1):
            try:
                answer = self.client.complete(self._request(batch, guidance, number - 1), day)
            except RequestRefusedError as refused:
                best = best or Attempt((), 0, UNUSABLE, str(refused))
                break
            attempt = replace(self._read(answer, batch, checker), instead=answer.instead)
            best = attempt if best is None or attempt.score > best.score else best
            if attempt.quality == GOOD:
                break
            guidance = self._guidance(attempt, batch, share, said) if said else ""
        if best is None or best.quality == UNUSABLE:
            raise UnusableAnswerError(f"{best.problem if best else 'nothing was asked'}, in {number} answer(s)")
        return _trimmed(best, batch) if best.quality == TOO_LONG else best, number

    def _files_for(self, batch: Batch) -> ContextFiles:
        return self.context_files if batch.today else ContextFiles()

    def _request(self, batch: Batch, guidance: str = "", attempt: int = 0) -> Request:
        config = self.client.config
        has_schema = not self.is_small and takes_schema(config)
        where = f"Today is {batch.today:%A %Y-%m-%d}. " if batch.today else POOL_INTRODUCTION
        turn = {"where": where, "fence": batch.fence, "observations": batch.text}
        return Request(
            model=config.model,
            system=self._instructions(JSON if has_schema else LINES),
            prompt=filled("reflector_turn", turn) + guidance,
            temperature=config.temperature,
            max_output_tokens=config.max_output_tokens,
            attempt=attempt,
            context=self._files_for(batch).shown(batch.text),
            schema=schema() if has_schema else "",
            plain_system=self._instructions(LINES) if has_schema else "",
        )

    def _instructions(self, form: str) -> str:
        if self.is_small:
            return filled("reflector_small", {"user": self.sections[0]})
        parts = {"priorities": text_of("priorities").strip(), "format": text_of("format_tags").strip()}
        reported = filled("observer", parts)
        return filled(
            "reflector", {"observer": reported.strip(), "user": self.sections[0], "format": text_of(form).strip()}
        )

    def _read(self, answer: Answer, batch: Batch, checker: Checker) -> Attempt:
        parsed = parse_reflection(answer.text, self.sections, is_cut=answer.truncated)
        checked = list(map(checker.check, parsed.lines))
        by = self._named(answer.asked) if answer.asked else None
        lines = tuple(replace(line, reflector=by) for line in checked if line)
        dropped = sum(line is None for line in checked)
        tokens = sum(estimate(line.text) for line in lines)
        if parsed.loops:
            return Attempt(lines, dropped, UNUSABLE, "it repeated itself")
        if is_too_little(tokens, batch.tokens):
            why = "its observations supported no line" if dropped and not lines else "it kept almost nothing"
            return Attempt(lines, dropped, UNUSABLE, why if parsed.lines else "no line named its observations")
        summary = checker.summary(parsed.summary)
        if tokens > batch.most_tokens:
            return Attempt(lines, dropped, TOO_LONG, summary=summary)
        if answer.truncated:
            return Attempt(lines, dropped, POOR, summary=summary)
        if dropped > len(lines):
            return Attempt(lines, dropped, POOR, "most of its lines were not supported by their observations", summary)
        return Attempt(lines, dropped, GOOD, summary=summary)

    def _guidance(self, attempt: Attempt, batch: Batch, share: float, said: str) -> str:
        """The guidance that is added to the next request."""
        if attempt.problem:
            return "\n" + filled("reflector_again", {"problem": attempt.problem})
        budget = min(sum(len(o.text) for o in batch.observed), PROSE * self.client.config.max_output_tokens)
        return "\n" + filled("reflector_shorter", {"characters": f"{round(share * budget, -1):.0f}", "share": said})


def _trimmed(attempt: Attempt, batch: Batch) -> Attempt:
    """The reflection with the lines that fit: by priority, then by number of sources, then newest first."""
    lines = merged(attempt.lines)
    lines.sort(key=lambda line: (RANK[line.priority], -len(line.sources), -line.last_seen.timestamp()))
    spent = accumulate(estimate(line.text) for line in lines)
    kept = tuple(line for line, tokens in zip(lines, spent, strict=True) if tokens <= batch.most_tokens)
    if not kept:
        raise UnusableAnswerError("its lines are longer than the observations")
    return replace(attempt, lines=kept, dropped=attempt.dropped + len(lines) - len(kept))
