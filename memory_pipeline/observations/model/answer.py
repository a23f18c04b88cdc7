"""The answer of the observer: its schema, and the segments and facts of an answer in any format.

An answer is JSON, or has the elements of the format without a schema, or is a list without them; each format is tried
if the previous one gives nothing. Any other answer is raw: its paragraphs become low facts, marked as not parsed.
Parsing never raises and takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError

from memory_pipeline.llm.answers.cleaning import cleaned, without_thinking
from memory_pipeline.llm.answers.degenerate import (
    before_repetition,
    is_echo,
    is_noise_only,
    is_nothing,
    is_placeholder,
    is_refusal,
    shortened,
    without_tags,
)
from memory_pipeline.llm.answers.lines import tidy
from memory_pipeline.llm.answers.structured import Context, json_values, numbers_in
from memory_pipeline.observations.model.facts import (
    AnswerForm,
    Draft,
    ParsedFact,
    SegmentForm,
    Tagged,
    fact_for,
    fact_in_entry,
    facts_in_paragraphs,
    key_of,
    read_tagged,
    without_cut_tag,
)

MAX_FACTS = 200
MAX_TITLE, MAX_NARRATIVE, MAX_TASK = 120, 600, 500
_NONE = re.compile(r"\W*(?:none|n/?a|null|nothing|unknown|无|没有)\W*", re.I)
_TASKS = re.compile(r"\n|(?=\b(?:Primary|Secondary)\s?:)")
_DONE_TASK = re.compile(r"^\s{0,8}[-*•]?\s?(?:\w{1,20}\s?:)?\s?[✅☑✔]|[✅☑✔]\ufe0f?\s{0,8}$")


@dataclass(frozen=True, slots=True)
class ParsedSegment:
    """A topic in the model's words; `first` and `last` are numbers of messages."""

    title: str | None
    narrative: str | None
    first: int | None
    last: int | None
    facts: tuple[ParsedFact, ...]


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """The content of an answer."""

    segments: tuple[ParsedSegment, ...] = ()
    current_task: str | None = None
    suggested_response: str | None = None
    used: tuple[str, ...] = ()
    """Names of earlier observations that it builds on, like `o2`."""
    ended: tuple[str, ...] = ()
    """Names of earlier observations that are settled or no longer true."""
    parsed: bool = False
    """Whether the answer has the requested format."""
    form: str = "empty"
    """The format of the answer: `segments`, `flat` (facts without segments), `lines` (a list beside or without the
    tags), `raw` (anything else), `nothing` (nothing is worth keeping, which is valid), `refusal`, `empty`, or
    `degenerate`: a loop, an echo of the transcript or mere noise, with the facts beside it."""
    problem: str | None = None
    """The reason why the answer is not parsed, in one sentence."""

    @property
    def facts(self) -> list[ParsedFact]:
        return [fact for segment in self.segments for fact in segment.facts]

    def as_form(self, form: str, *problems: str) -> ParsedAnswer:
        """The answer with this format and its problems, if any, as one sentence."""
        why = "; ".join(dict.fromkeys(problems))
        problem = f"{why[:1].upper()}{why[1:]}." if problems else None
        return replace(self, form=form, parsed=not problems, problem=problem)


NO_SEGMENT = ParsedSegment(None, None, None, None, ())
DAMAGED = "the JSON is truncated or damaged"
REFUSED = "the model declines to answer"


def parse_answer(text: str) -> ParsedAnswer:
    """The content of a model's answer, parsed by the first format that gives something."""
    words, problem = without_thinking(cleaned(text))
    problems = [problem] if problem else []
    if not words.strip():
        return ParsedAnswer().as_form("empty", "the answer is empty", *problems)
    words, has_loops = before_repetition(words)
    if has_loops:
        words += "\n"  # the line before the repetition is complete
    answer = _from_json(words, problems) or _from_tags(words, problems)
    return answer.as_form("degenerate", "the answer repeats itself") if has_loops else answer


def _from_json(text: str, problems: Sequence[str]) -> ParsedAnswer | None:
    """The answer as JSON; None if no JSON in the text fits the schema."""
    for value, is_damaged in json_values(text):
        counts: Context = {"left_out": 0, "unmarked": 0}
        try:
            form = AnswerForm.model_validate(value, context=counts)
        except ValidationError:
            if is_damaged:
                return ParsedAnswer().as_form("empty", DAMAGED)
            continue
        answer = _answer_without_segments(form.current_task, form.suggested_response, form.used, form.ended)
        segments = _deduplicated(map(_segment_of, form.segments))
        narratives = " ".join(filter(None, (segment.narrative for segment in segments)))
        if is_refusal(narratives) and not any(segment.facts for segment in segments):
            return answer.as_form("refusal", REFUSED)
        left_out = f"{counts['left_out']} item(s) do not fit the schema" if counts["left_out"] else ""
        found = filter(None, [DAMAGED if is_damaged else left_out])
        is_flat = len(segments) == 1 and not (segments[0].first or segments[0].narrative)
        kind = "flat" if is_flat else "segments" if segments else "empty" if is_damaged else "nothing"
        return _with_segments(answer, kind, segments, counts["unmarked"], [*problems, *found])
    return None


def _segment_of(form: SegmentForm) -> ParsedSegment:
    facts = (fact_for(f.text, f.priority, f.kind, f.time or None, f.places, f.trace) for f in form.facts)
    title, narrative = _clean_text(form.title, MAX_TITLE), _clean_text(form.narrative, MAX_NARRATIVE)
    return ParsedSegment(title, narrative, form.first or None, form.last or None, tuple(filter(None, facts)))


def _from_tags(text: str, problems: Sequence[str]) -> ParsedAnswer:
    """The answer by its elements, else by its list lines, else raw."""
    text = without_cut_tag(text)
    tagged = read_tagged(text)
    task, response, used, ended = (
        tagged.texts.get(name, "") for name in ("current-task", "suggested-response", "used", "ended")
    )
    answer = _answer_without_segments(task, response, [used], [ended])
    inside, unmarked = _read_segments(tagged.inside)
    outside, unmarked_outside = _read_segments([Draft(lines=tagged.outside)])
    count, count_outside = _count_facts(inside), _count_facts(outside)
    has_marks = unmarked + unmarked_outside < count + count_outside
    if not has_marks and (is_refusal(tagged.content) or is_refusal(text)):
        return answer.as_form("refusal", REFUSED)
    if not has_marks and is_echo(tagged.content or text):
        return answer.as_form("degenerate", "the answer repeats the transcript")
    if count or (inside and not count_outside):
        form = "segments" if "segment" in tagged.seen or inside[0].narrative else "flat"
        found = [] if "observations" in tagged.seen else ["there is no <observations>"]
        found += [f"the answer ends within <{tagged.open[-1]}>"] if tagged.open else []
        return _with_segments(answer, form, _deduplicated(inside), unmarked, [*problems, *found])
    if count_outside:
        why = "the facts are outside the tags" if tagged.seen else "there are no tags"
        return _with_segments(answer, "lines", _deduplicated(outside), unmarked_outside, [why, *problems])
    return _raw(text, tagged, answer, problems)


def _raw(text: str, tagged: Tagged, answer: ParsedAnswer, problems: Sequence[str]) -> ParsedAnswer:
    """An answer without a list of facts: nothing, noise, or paragraphs that are kept unchanged."""
    content, is_closed = tagged.content, not tagged.open
    is_empty_list = "observations" in tagged.seen and is_closed and not content
    if is_empty_list or is_nothing(content or without_tags(text)):
        return answer.as_form("nothing", *problems)
    if is_noise_only(text):
        return answer.as_form("degenerate", "the answer has no words")
    facts = facts_in_paragraphs(content if tagged.seen else without_tags(text))
    if not facts:
        return answer.as_form("empty", "there is no fact in the answer", *problems)
    raw = replace(answer, segments=(ParsedSegment(None, None, None, None, tuple(facts)),))
    return raw.as_form("raw", "the answer has no list", *problems)


def _read_segments(drafts: Iterable[Draft]) -> tuple[list[ParsedSegment], int]:
    """The segments with content, and the number of their facts without a priority; they count as low."""
    segments, unmarked = [], 0
    for draft in drafts:
        read = [found for entry in draft.entries if (found := fact_in_entry(entry))]
        unmarked += sum(not is_marked for _, is_marked in read)
        title, narrative = _clean_text(draft.title, MAX_TITLE), _clean_text(draft.narrative, MAX_NARRATIVE)
        if read or narrative:
            facts = tuple(fact for fact, _ in read)
            segments.append(ParsedSegment(title, narrative, draft.first, draft.last, facts))
    return segments, unmarked


def _with_segments(
    answer: ParsedAnswer, form: str, segments: Sequence[ParsedSegment], unmarked: int, problems: Sequence[str]
) -> ParsedAnswer:
    """The answer with these segments; `unmarked` is the number of facts without a priority."""
    whole = _count_facts(segments)
    missing = [f"{min(unmarked, whole)} of {whole} facts have no priority"] if unmarked and whole else []
    return replace(answer, segments=tuple(segments)).as_form(form, *problems, *missing)


def _count_facts(segments: Iterable[ParsedSegment]) -> int:
    return sum(len(segment.facts) for segment in segments)


def _deduplicated(segments: Iterable[ParsedSegment]) -> list[ParsedSegment]:
    """The segments with content, without repeated facts and with at most `MAX_FACTS` facts."""
    seen: set[str] = set()
    kept = []
    for segment in segments:
        facts = []
        for fact in segment.facts:
            if (key := key_of(fact)) not in seen and len(seen) < MAX_FACTS:
                seen.add(key)
                facts.append(fact)
        if facts or segment.narrative:
            kept.append(replace(segment, facts=tuple(facts)))
    return kept


def _answer_without_segments(
    task: str | None, response: str | None, used: Sequence[str], ended: Sequence[str]
) -> ParsedAnswer:
    """The task, suggested response and references of an answer. Parts of the task that are marked as done are
    removed."""
    parts = _TASKS.split(task or "")
    task = " ".join(part for part in parts if not _DONE_TASK.search(part)).strip()
    current, suggested = _clean_text(task, MAX_TASK), _clean_text(response, MAX_TASK)
    return ParsedAnswer((), current, suggested, _observation_names(used), _observation_names(ended))


def _observation_names(mentioned: Sequence[str]) -> tuple[str, ...]:
    """Names of earlier observations, like `o2`."""
    return tuple(f"o{number}" for number in numbers_in([name for name in mentioned if _clean_text(name, MAX_TASK)]))


def _clean_text(text: str | None, limit: int) -> str | None:
    """The text on one line; None if it means "nothing" or repeats the instructions."""
    words = tidy(text or "")
    return None if not words or _NONE.fullmatch(words) or is_placeholder(words) else shortened(words, limit)


def covering(answer: ParsedAnswer, whole: range) -> list[tuple[ParsedSegment, range]]:
    """The segments in order, each with the positions of its messages; at least one.

    A segment begins where the model says, else at the first message that its facts name, else after the last message
    that the previous segment names, and ends where the next begins. The facts of a segment without messages move to the
    previous one.
    """
    placed: list[tuple[int, ParsedSegment]] = []
    for segment in answer.segments or (NO_SEGMENT,):
        before = placed[-1] if placed else (whole.start, NO_SEGMENT)
        placed.append((_start(segment, before, whole), segment))
    placed.sort(key=lambda place: place[0])
    starts: list[tuple[int, ParsedSegment]] = []
    for start, segment in placed:
        if starts and start == starts[-1][0]:
            starts[-1] = (start, _joined(starts[-1][1], segment))
        else:
            starts.append((start, segment))
    starts[0] = (whole.start, starts[0][1])
    ends = [*(start for start, _ in starts[1:]), whole.stop]
    return [(segment, range(start, end)) for (start, segment), end in zip(starts, ends, strict=True)]


def _start(segment: ParsedSegment, before: tuple[int, ParsedSegment], whole: range) -> int:
    """Position of the first message of the segment; if it names no message that was shown, the one after the previous
    segment."""
    start, previous = before
    numbers = [segment.first, *sorted(ref for fact in segment.facts for ref in fact.refs)]
    shown = (number - 1 for number in numbers if number is not None and number - 1 in whole)
    after = previous.last if previous.last is not None and previous.last in whole else start
    return next(shown, max(start, after))


def _joined(one: ParsedSegment, other: ParsedSegment) -> ParsedSegment:
    reported = " ".join(filter(None, (one.narrative, other.narrative))) or None
    return ParsedSegment(one.title or other.title, reported, one.first, other.last, (*one.facts, *other.facts))
