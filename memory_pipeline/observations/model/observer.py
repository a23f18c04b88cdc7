"""The observer that asks a language model, part by part, and keeps the facts that the messages support."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self
from zoneinfo import ZoneInfo

from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.llm.backends.provider import sees, takes_schema
from memory_pipeline.llm.client import IMAGE_TOKENS, Client, client_of
from memory_pipeline.llm.config import SMALL_CONTEXT, ModelConfig, messages_budget, observations_budget, token_budget
from memory_pipeline.llm.errors import RequestRefusedError
from memory_pipeline.llm.prompts import filled, hash_of, text_of
from memory_pipeline.llm.request import Answer, Request
from memory_pipeline.observations.model.answer import ParsedAnswer, ParsedSegment, covering, parse_answer
from memory_pipeline.observations.model.fact_check import FactCheck
from memory_pipeline.observations.model.facts import schema
from memory_pipeline.observations.model.transcript import Chunk, chunks, images_of, rendered, tail_of
from memory_pipeline.observations.quotes.observer import SHORT_SHARE, token_budget_for
from memory_pipeline.observations.quotes.segmentation import narrative, segment_starts
from memory_pipeline.observations.types import ENDED, UNPARSED, Context, Fact, Segment, WindowMessage, observation_id
from memory_pipeline.redaction import redactor_of
from memory_pipeline.text.priorities import LOW, RANK
from memory_pipeline.text.relation import WRITTEN_TWICE_BY_OBSERVER, is_same
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.tokens import PROSE, estimate
from memory_pipeline.workspace.workspace import Workspace

PROMPTS = ("observer", "priorities", "format_tags", "user_turn", "prior_observations", "observed_before", "ask_again")
SMALL_PROMPTS = ("observer_small", "format_small_tags", *PROMPTS[3:])
"""Prompts for a model with a small context, usually a weak one: short instructions, and one topic per request."""
TAGS, JSON = "format_tags", "format_json"
SMALL_TAGS, SMALL_JSON = "format_small_tags", "format_small_json"
"""The format of an answer for models without and with a JSON schema. The name of the observer covers both, so that it
can be computed without a provider's library; sizes are computed with the tags, so that both give the same parts."""
ANSWER_TOKENS, ANSWER_PER_TOKEN = 1_500, 4
"""Maximum tokens of an answer with a small context: a constant, and a factor for the token budget of the facts. The
constant leaves room for some reasoning; a model that reasons at length needs OBSERVER_MAX_OUTPUT_TOKENS."""
RETRIED_FORMS = ("refusal", "empty", "degenerate", "raw")
"""Forms of answers for which a second request may give a better one. A list without tags already has the facts."""
WITHOUT_SEGMENTS = ("flat", "lines", "raw")
"""Formats of answers without segments: their facts get no title and no narrative."""
PER_ROOT = 550
"""A model's token budget for a window with few words and many tool calls is the share times this times the square root
of the number of messages. At a share of a tenth that is what careful readers write without a limit
(`benchmarks/fair_size.py`): the facts of 28 sessions of 27 to 1,096 messages take 37 to 78 tokens times that root,
with a median of 52."""
MAX_LINE = 600
"""Characters of a narrative, a task or a suggested response."""
MESSAGES_BEFORE = 4
"""Earlier messages that are shown again before the new ones of a window, as context."""
PRIOR_TOKENS = 4_000
"""Maximum tokens of earlier observations in a request."""
MAX_IMAGES = 8
"""Maximum number of images sent with a part, the first ones: each costs as much as a page of text."""
SLACK = 1.5
"""Factor by which facts may exceed the token budget before some are dropped: models are bad at counting tokens."""

Earlier = Sequence[tuple[str, Fact]]


@dataclass(frozen=True)
class LanguageModelObserver:
    """An observer that asks a language model.

    `budget` is the share of the tokens said that a window's facts should take, as for the extractive observer. The
    parts of a window are requested one after another, because each request shows the facts of the previous parts.
    """

    client: Client
    zone: ZoneInfo
    budget: float = 0.10
    chunk_tokens: int = 35_000
    prior_tokens: int = PRIOR_TOKENS
    at_once: int = 4
    max_images: int = MAX_IMAGES
    is_small: bool = False
    """Whether the model's context is small; see `SMALL_PROMPTS`."""
    in_proportion: bool = False
    """Whether the maximum length of an answer depends on the budget of its facts; see `ANSWER_TOKENS`."""

    is_incremental = True

    @classmethod
    def from_config(cls, config: ModelConfig, workspace: Workspace) -> Self:
        """The observer that asks this model, with the sizes that the settings allow."""
        settings, answer = workspace.settings, config.max_output_tokens
        is_small = settings.effective_context <= SMALL_CONTEXT
        prompts = SMALL_PROMPTS if is_small else PROMPTS
        shown = messages_budget(settings, answer, prompts)
        prior = min(PRIOR_TOKENS, observations_budget(settings, answer, prompts))
        room = token_budget(settings, answer, prompts) - shown - prior
        return cls(
            client_of(config, settings.observer, workspace, redactor_of(settings).redact, "observations"),
            settings.zone,
            settings.observation_budget,
            shown,
            prior,
            settings.model_concurrency,
            max(0, min(MAX_IMAGES, room // IMAGE_TOKENS)),
            is_small,
            is_small and "max_output_tokens" not in settings.observer.model_fields_set,
        )

    @cached_property
    def name(self) -> str:
        """The name of the model and a hash of the prompts."""
        return self._named(self.client.model)

    def _named(self, model: str) -> str:
        return f"{model}#{hash_of(*((*SMALL_PROMPTS, SMALL_JSON) if self.is_small else (*PROMPTS, JSON)))}"

    @property
    def version(self) -> str:
        """A hash of everything that would change the observations of the same messages."""
        config = self.client.config
        server = fingerprint_of(config.base_url)[:8] if config.base_url else None  # the address may hold a password
        asked = (server, config.temperature, config.max_output_tokens, sees(config) and self.max_images)
        return repr((self.name, self.budget, self.chunk_tokens, self.prior_tokens, *asked))

    def stop(self) -> None:
        self.client.stop()

    def observe(self, messages: Sequence[WindowMessage], context: Context) -> list[Segment]:
        """The segments of a window; if it was observed before, those of its new messages.

        Raises the errors of `Client.complete`, except for a part that the model refuses: that one is empty and has the
        reason as its problem. Cached answers cost nothing.
        """
        fact_check = FactCheck(messages, self.zone)
        found: list[Segment] = []
        for chunk in self._parts(messages, context):
            facts = [*context.known]
            facts += [(observation_id(context.window, fact), fact) for segment in found for fact in segment.facts]
            earlier = _newest([*context.earlier, *(f for f in facts if ENDED not in f[1].flags)], self.prior_tokens)
            segments = self._observe_chunk(chunk, fact_check, context, earlier)
            ended = {observation for segment in segments for observation in segment.ended}
            found = [_mark_ended(segment, ended, context.window) for segment in found]
            found += without_repeats(segments, [fact for _, fact in [*context.earlier, *facts]])
        return trimmed(found, model_token_budget(messages[context.observed :], self.budget))

    def _parts(self, messages: Sequence[WindowMessage], context: Context) -> list[Chunk]:
        topics = segment_starts(messages) if self.is_small else ()
        return chunks(messages, self.chunk_tokens, self.zone, context.observed, topics)

    def _observe_chunk(self, chunk: Chunk, fact_check: FactCheck, context: Context, earlier: Earlier) -> list[Segment]:
        request = self._request(chunk, fact_check.messages, context, earlier)
        parsed, answer = self._ask(request, context)
        ids = {f"o{number}": observation for number, (observation, _) in enumerate(earlier, 1)}
        whole = range(chunk.start, chunk.end)
        shown = range(_shown_from(chunk, context), chunk.end)
        segments = [
            self._segment(segment, part, shown, fact_check, parsed, answer) for segment, part in covering(parsed, whole)
        ]
        written, invented = fact_check.times_in([], [parsed.current_task, parsed.suggested_response])
        before = {message.message_id for message in fact_check.messages[shown.start : whole.start]}
        segments = [_new_facts_only(segment, before) for segment in segments]
        last = replace(
            segments[-1],
            times_written=written + (segments[-1].times_written or 0),
            times_invented=invented + (segments[-1].times_invented or 0),
            current_task=_clean_line(parsed.current_task, fact_check),
            suggested_response=_clean_line(parsed.suggested_response, fact_check),
            used=tuple(ids[name] for name in parsed.used if name in ids),
            ended=tuple(ids[name] for name in parsed.ended if name in ids),
        )
        return [*segments[:-1], last]

    def _ask(self, request: Request, context: Context) -> tuple[ParsedAnswer, Answer]:
        """The answer, parsed and raw. An unusable answer is requested once more, a shorter one if it was too long."""
        try:
            answer = self.client.complete(request, context.day)
            parsed = parse_answer(answer.text)
            if parsed.form not in RETRIED_FORMS and not answer.truncated:
                return parsed, answer
            again = replace(request, attempt=1, prompt=f"{request.prompt}\n{text_of('ask_again').strip()}\n")
            other = self.client.complete(again, context.day)
        except RequestRefusedError as refused:
            return ParsedAnswer(form="refused", problem=str(refused)), Answer("", 0, 0, None, 0.0, key=request.key)
        second = parse_answer(other.text)
        if (second.parsed, len(second.facts)) >= (parsed.parsed, len(parsed.facts)):
            return second, other
        return parsed, answer

    def _request(self, chunk: Chunk, window: Sequence[WindowMessage], context: Context, earlier: Earlier) -> Request:
        config, messages = self.client.config, window[chunk.start : chunk.end]
        new = window[context.observed :]
        # the token budget of the window in proportion to the messages of the part
        room = model_token_budget(new, self.budget) * (chunk.end - chunk.start) // len(new)
        has_schema = takes_schema(config)
        tags, form = (SMALL_TAGS, SMALL_JSON) if self.is_small else (TAGS, JSON)
        most = ANSWER_TOKENS + ANSWER_PER_TOKEN * room if self.in_proportion else config.max_output_tokens
        first = messages[0].said_at.astimezone(self.zone)
        project = f"The session worked in the folder {context.project}. " if context.project else ""
        # only the texts: if a priority were shown, its change would change all later requests, which would be paid for
        # again
        reported = "\n".join(f"o{number} {fact.text}" for number, (_, fact) in enumerate(earlier, 1))
        prior = filled("prior_observations", {"fence": chunk.fence, "observations": reported}) if earlier else ""
        if before := range(_shown_from(chunk, context), chunk.start):
            shown = "\n\n".join(tail_of(rendered(window[i], i + 1, self.zone)) for i in before)
            prior += filled("observed_before", {"fence": chunk.fence, "messages": shown})
        turn = {
            "where": f"{project}It is {first:%A %Y-%m-%d}.\n\n",
            "prior": prior,
            "fence": chunk.fence,
            "transcript": chunk.text,
            "budget": f"{round(PROSE * room, -1):.0f}",
        }
        return Request(
            model=config.model,
            system=self._instructions(form if has_schema else tags),
            prompt=filled("user_turn", turn),
            images=tuple(images_of(messages, self.max_images)) if sees(config) else (),
            temperature=config.temperature,
            max_output_tokens=min(most, config.max_output_tokens),
            schema=schema(is_small=self.is_small) if has_schema else "",
            plain_system=self._instructions(tags) if has_schema else "",
        )

    def _instructions(self, form: str) -> str:
        if self.is_small:
            return filled("observer_small", {"format": text_of(form).strip()})
        return filled("observer", {"priorities": text_of("priorities").strip(), "format": text_of(form).strip()})

    def _segment(
        self,
        segment: ParsedSegment,
        part: range,
        whole: range,
        fact_check: FactCheck,
        parsed: ParsedAnswer,
        answer: Answer,
    ) -> Segment:
        messages = fact_check.messages[part.start : part.stop]
        facts = (fact_check.check(fact, whole) for fact in segment.facts)
        texts = [segment.title, segment.narrative, *(text for f in segment.facts for text in (f.text, *f.trace))]
        written, invented = fact_check.times_in([fact.clock for fact in segment.facts], texts)
        return Segment(
            narrative=_clean_line(segment.narrative, fact_check)
            or ("" if parsed.form in WITHOUT_SEGMENTS else narrative(messages)),
            first_message_id=messages[0].message_id,
            last_message_id=messages[-1].message_id,
            facts=tuple(facts) if parsed.parsed else tuple(replace(f, flags=(*f.flags, UNPARSED)) for f in facts),
            title=_clean_line(segment.title, fact_check),
            parsed=parsed.parsed,
            answer=answer.key,
            observer=self._named(answer.asked) if answer.asked else None,
            instead=answer.instead,
            problem=parsed.problem,
            times_written=written,
            times_invented=invented,
        )


def model_token_budget(messages: Sequence[WindowMessage], share: float) -> int:
    """Token budget for the facts that a language model writes about a window.

    If an agent works for hours and reports in ten lines, a share of the tokens said is room for three sentences. The
    budget of such a window grows with the number of messages, tool calls included, up to `SHORT_SHARE` of the tokens
    said.
    """
    said = sum(estimate(m.text) for m in messages if m.role in ("user", "assistant"))
    done = share * PER_ROOT * math.sqrt(len(messages))
    return max(token_budget_for(said, share), int(min(done, SHORT_SHARE * said)))


def _shown_from(chunk: Chunk, context: Context) -> int:
    """The first message that is shown with a part; before the new messages of a window some earlier ones are shown."""
    is_incremental = context.observed and chunk.start == context.observed
    return max(0, chunk.start - MESSAGES_BEFORE) if is_incremental else chunk.start


def _new_facts_only(segment: Segment, before: Collection[str]) -> Segment:
    """The segment without facts whose evidence is only in messages that were observed before."""
    facts = (f for f in segment.facts if not f.evidence or any(s.message_id not in before for s in f.evidence))
    return replace(segment, facts=tuple(facts))


def _mark_ended(segment: Segment, ended: Collection[str], window: str) -> Segment:
    """The segment in which facts that ended have the flag `ended` and low priority."""
    facts = (
        replace(fact, priority=LOW, flags=(*fact.flags, ENDED))
        if observation_id(window, fact) in ended and ENDED not in fact.flags
        else fact
        for fact in segment.facts
    )
    return replace(segment, facts=tuple(facts))


def _newest(earlier: Earlier, cap: int) -> Earlier:
    """The newest facts that fit into this number of tokens, in order."""
    kept: list[tuple[str, Fact]] = []
    for observation, fact in reversed(earlier):
        cap -= estimate(fact.text) + 2  # the number before it
        if cap < 0:
            break
        kept.append((observation, fact))
    return kept[::-1]


def _clean_line(text: str | None, fact_check: FactCheck) -> str | None:
    words = fact_check.cleaned(text)[0] if text and text.strip() else None
    return words and clip(words, MAX_LINE)


def without_repeats(segments: Iterable[Segment], earlier: Iterable[Fact]) -> list[Segment]:
    """The segments without empty facts, and without facts that repeat `earlier` or a previous segment."""
    known = [fact.text for fact in earlier]
    found = []
    for segment in segments:
        facts = []
        for fact in segment.facts:
            if fact.text and not any(is_same(fact.text, x, WRITTEN_TWICE_BY_OBSERVER) for x in known):
                facts.append(fact)
                known.append(fact.text)
        found.append(replace(segment, facts=tuple(facts)))
    return found


def trimmed(segments: Sequence[Segment], token_budget: int) -> list[Segment]:
    """The segments with as many facts as fit into `SLACK` times the budget: the lowest priority is dropped first, then
    the last.

    One fact is always kept, or a short window would be lost.
    """
    facts = [fact for segment in segments for fact in segment.facts]
    left, kept = SLACK * token_budget, set[int]()
    for fact in sorted(facts, key=lambda fact: RANK[fact.priority]):  # stable: first said, first kept
        left -= estimate(fact.text)
        if left < 0 and kept:
            break
        kept.add(id(fact))
    return [replace(segment, facts=tuple(f for f in segment.facts if id(f) in kept)) for segment in segments]
