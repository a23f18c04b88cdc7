"""Verification of a model's facts: evidence is located, times and names are checked, and priorities are capped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from zoneinfo import ZoneInfo

from memory_pipeline.llm.answers.cleaning import without_markup
from memory_pipeline.observations.model.alignment import (
    GROUNDED,
    MAX_SPANS,
    NAMED,
    Aligned,
    Alignment,
    Quotation,
    Quotations,
    stems,
)
from memory_pipeline.observations.model.facts import ParsedFact
from memory_pipeline.observations.quotes.features import SIDES, Conversation, is_order
from memory_pipeline.observations.quotes.units import SHORT_ANSWER
from memory_pipeline.observations.types import (
    COMPLETED,
    TIME_REMOVED,
    UNGROUNDED,
    UNGROUNDED_SPECIFICS,
    EvidenceSpan,
    Fact,
    WindowMessage,
    WindowTimes,
)
from memory_pipeline.text.dates import CLOCK, clock_of, clock_times
from memory_pipeline.text.kinds import NORMATIVE, length_of
from memory_pipeline.text.priorities import LOW, MEDIUM, RANK
from memory_pipeline.text.sentences import run_together
from memory_pipeline.text.specifics import Words, missing_specifics, specifics

MIN_COVERAGE_WITH_NAMES = 0.2
"""Minimum share for a fact whose names all occur in the messages that the model named: its language may differ from
that of the session."""
MIN_SPOKEN = 0.4
"""Minimum share of a fact's words that attributes it to a speaker: more than a long message shares with an unrelated
fact."""
MIN_MENTIONED = 0.12
"""Minimum share of a fact's words that shows that the user mentioned it."""
MIN_QUOTED_WORDS = 3
"""Minimum content words of a quotation that attributes a fact to the quoted message, whatever the rest of the fact
says."""
_QUOTATION = re.compile(r'["“„«「『](?P<words>[^"“”„«»「」『』]+)["”“»」』]')
MAX_PRIORITY = {"tool": MEDIUM, "paste": MEDIUM, "injected": LOW}
"""Highest priority of a fact from text that was pasted or read: it may be somebody else's instruction."""
SHOWN_BY_RESULTS = ("root_cause", "state_change")
"""Kinds of facts that a tool's output proves, even if the user pasted it, such as a build log. An instruction in it may
be anybody's."""
_BEFORE = (
    r"(?:\b(?:at|by|around|about|from|since|until|till|between|before|after|to|um|ab|bis|von|gegen|à|vers)\s+"
    r"|(?<=\d)T)?"
)
_AFTER = r"(?:\s*(?:[ap]\.?m\b\.?|(?:UTC|GMT|Uhr|Z|h)(?![\w:])))?"
_TIME = rf"{CLOCK.pattern}{_AFTER}"
_TIMES_IN_WORDS = [
    re.compile(rf"\s*(?:\(\s*{_BEFORE}{times}\s*\)|{_BEFORE}{times})", re.I)
    for times in (rf"{_TIME}\s*(?:-|–|—|\b(?:to|and|until|till|bis|und)\b)\s*{_TIME}", _TIME)
]
"""A time range or a time, with the words and brackets that belong to it."""


class FactCheck:
    """The data of a window against which a model's facts are checked."""

    def __init__(self, messages: Sequence[WindowMessage], zone: ZoneInfo) -> None:
        self.messages, self.zone = messages, zone
        self.texts = [m.text for m in messages]
        self.window = Conversation(messages)
        self.alignment = Alignment(messages)
        self.quotations = Quotations(messages)
        self.said = Words([*self.texts, *(m.tool_name or "" for m in messages)])
        self.times = WindowTimes.from_messages(((m.said_at, m.untimed, m.text) for m in messages), zone).spoken

    def check(self, parsed: ParsedFact, within: range) -> Fact:
        """The verified fact, ready to be stored. `within` are the positions of the messages that the model was
        shown."""
        named = [number - 1 for number in parsed.refs if number - 1 in within]
        text, is_removed = self.cleaned(parsed.text)
        missing = missing_specifics(text, self.said)
        marked = [found.span("words") for found in _QUOTATION.finditer(text)]
        # it may also quote without quotation marks
        for parts, is_enough in ((marked, _is_distinctive), ([(0, len(text))], self._is_mostly)):
            named, quoted = self._quoted_positions(text, named, within, parts, is_enough)
            if aligned := self._find_evidence(text, named, within, missing):
                break
        flags = [COMPLETED] if parsed.is_done else []
        flags += [UNGROUNDED_SPECIFICS] if missing else []
        if is_removed or (parsed.clock and parsed.clock not in self.times):
            flags.append(TIME_REMOVED)
        if aligned is None:
            return self._ungrounded(parsed, text, [UNGROUNDED, *flags], named or list(within))
        aligned = _with_quotations(aligned, quoted)
        positions = [p for p in named if p in aligned.positions] or aligned.positions
        said = self.messages[self._position_at([*positions, *named], parsed.clock)]
        fact = Fact(
            text=text,
            priority=parsed.priority,
            kind=parsed.kind,
            observed_at=said.said_at,
            trust=self._trust(text, parsed.kind, aligned, named),
            evidence=(*aligned.spans, *self._short_answers(named, aligned)),
            flags=tuple(flags),
            untimed=said.untimed,
            trace=self._trace(parsed.trace, within),
        )
        return self._cap_priority(_demoted_order(fact), aligned, missing)

    def times_in(self, clocks: Iterable[str | None], texts: Iterable[str | None]) -> tuple[int, int]:
        """The number of clock times that a model wrote, before facts and in texts, and how many of them do not occur in
        the window."""
        written = [*filter(None, clocks), *(time for text in texts for time in clock_times(text or ""))]
        return len(written), sum(time not in self.times for time in written)

    def _trace(self, steps: Sequence[str], within: range) -> str | None:
        """The steps that the shown messages support, joined with arrows; None for fewer than two."""
        clean = (self.cleaned(step)[0] for step in steps)
        said = [step for step in clean if step and self._is_stated(step, within)]
        return " → ".join(said) if len(said) > 1 else None

    def _is_stated(self, step: str, within: range) -> bool:
        aligned = self.alignment.align(step, within)
        return not missing_specifics(step, self.said) and bool(aligned.spans) and aligned.coverage >= NAMED

    def cleaned(self, text: str) -> tuple[str, bool]:
        """The text without markup that the format of the answer added, and without invented clock times; and whether
        there were such times."""
        return self.without_invented_times(without_markup(text, self.texts))

    def without_invented_times(self, text: str) -> tuple[str, bool]:
        """The text without clock times that do not occur in the window, and whether there were any."""
        if clock_times(text) <= self.times:
            return text, False
        while not clock_times(text) <= self.times:  # the remaining characters may form another time
            for times in _TIMES_IN_WORDS:
                text = times.sub(self._keep_if_stated, text)
        return run_together(text), True

    def _keep_if_stated(self, found: re.Match[str]) -> str:
        if clock_times(found[0]) & self.times:
            return found[0]
        is_followed_by_word = found.string[found.end() : found.end() + 1].isalnum()
        return " " if is_followed_by_word else ""

    def _quoted_positions(
        self,
        text: str,
        named: list[int],
        within: range,
        parts: Sequence[tuple[int, int]],
        is_enough: Callable[[str, Quotation], bool],
    ) -> tuple[list[int], list[Quotation]]:
        """The positions of the messages to align the fact with, and the quotations in these parts of it from messages
        that the model did not name. Quoted messages come first; of those that the model named, only the ones that the
        fact mentions are kept. A quotation belongs to the message that said it first."""
        found, there = (
            [q for start, end in parts for q in self.quotations.of(text, start, end, p) if is_enough(text, q)]
            for p in (within, named)
        )
        unnamed = [q for q in found if not any(q.is_within(other) for other in there)]
        if not unnamed:
            return named, []
        quoted = list(dict.fromkeys(q.position for q in unnamed))
        kept = [p for p in named if p not in quoted and self.alignment.coverage(text, [p]) >= MIN_MENTIONED]
        return [*quoted, *kept], unnamed

    def _is_mostly(self, text: str, quotation: Quotation) -> bool:
        """Whether the quotation has enough of the fact's words, weighted by rarity, to be its source without quotation
        marks."""
        return self.alignment.rarity.share(text, stems(text[quotation.within])) >= NAMED

    def _find_evidence(self, text: str, named: list[int], within: range, missing: list[str]) -> Aligned | None:
        """The evidence in the messages that the model named, else anywhere in its input; None if there is none."""
        if named:
            aligned = self.alignment.align(text, frozenset(named), named=True)
            is_sure = not missing and bool(specifics(text))
            if aligned.spans and aligned.coverage >= (MIN_COVERAGE_WITH_NAMES if is_sure else NAMED):
                return aligned
        aligned = self.alignment.align(text, within)
        return aligned if aligned.spans and aligned.coverage >= GROUNDED else None

    def _ungrounded(self, parsed: ParsedFact, text: str, flags: list[str], where: list[int]) -> Fact:
        said = self.messages[self._position_at(where, parsed.clock)]
        return Fact(text, LOW, parsed.kind, said.said_at, "model", (), tuple(flags), said.untimed)

    def _short_answers(self, named: list[int], aligned: Aligned) -> Iterator[EvidenceSpan]:
        """Spans of the user's short answers that the model named: "ok" shares no word with what it agrees to."""
        for position in named:
            message = self.messages[position]
            start, end = message.own_span
            is_short = 0 < length_of(message.own[start:end]) <= SHORT_ANSWER
            if message.role == "user" and is_short and position not in aligned.positions:
                yield EvidenceSpan(message.message_id, start, end)

    def _position_at(self, positions: Sequence[int], clock: str | None) -> int:
        """The position of the first of these messages with the time that the model gave, else of the first one."""
        said = (self.messages[p] for p in positions)
        times = (clock_of(m.said_at, self.zone, m.untimed) for m in said)
        return next((p for p, time in zip(positions, times, strict=True) if time == clock), positions[0])

    def _trust(self, text: str, kind: str, aligned: Aligned, named: list[int]) -> str:
        """The speaker of a fact: the user or the model if their words are a large part of it, else the best source.

        An action that the user asked for counts as the model's, even if the words are a tool's; an instruction belongs
        to whoever gave it first.
        """
        if is_order(text, kind) and (other := self.window.first_speakers.repeated(text, len(self.messages))):
            return other
        positions = {*aligned.positions, *named}
        if self._quotes_user(text, positions):
            return "user"
        by_user = self.alignment.coverage(text, positions, ["user"])
        if by_user >= MIN_SPOKEN:
            return "user"
        if by_user >= MIN_MENTIONED or self.alignment.coverage(text, positions, ["user", "assistant"]) >= MIN_SPOKEN:
            return "assistant"
        return self.alignment.speaker(aligned.spans[0], aligned.positions[0])

    def _quotes_user(self, text: str, positions: Iterable[int]) -> bool:
        """Whether the text has a verbatim sentence of the user in quotation marks."""
        users = [p for p in positions if self.messages[p].role == "user"]
        return any(
            self.alignment.speaker(q.span, q.position) == "user" and _is_distinctive(text, q)
            for found in _QUOTATION.finditer(text)
            for q in self.quotations.of(text, *found.span("words"), users)
            if stems(text[q.within]) == stems(found["words"])
        )

    def _cap_priority(self, fact: Fact, aligned: Aligned, missing: list[str]) -> Fact:
        """The fact with its priority limited to the highest that its source allows."""
        most = MAX_PRIORITY.get(fact.trust)
        if fact.trust in ("tool", "paste") and fact.kind in SHOWN_BY_RESULTS and not is_order(fact.text, fact.kind):
            most = None
        if missing:
            most = LOW
        elif (fact.trust == "assistant" and not self._is_confirmed(aligned)) or fact.kind == "question":
            most = LOW if most == LOW else MEDIUM
        return replace(fact, priority=most) if most and RANK[most] > RANK[fact.priority] else fact

    def _is_confirmed(self, aligned: Aligned) -> bool:
        """Whether the user said some of it or approved it as a plan, or neither a result nor the user's reply rejected
        it."""
        speakers = set(map(self.alignment.speaker, aligned.spans, aligned.positions))
        return "user" in speakers or any(
            self.messages[p].is_plan or self.window.is_confirmed(p) for p in aligned.positions
        )


def _is_distinctive(text: str, quotation: Quotation) -> bool:
    """Whether the quotation is more than a common phrase, like "yes, please do that now"."""
    return len(stems(text[quotation.within])) >= MIN_QUOTED_WORDS


def _with_quotations(aligned: Aligned, quoted: Sequence[Quotation]) -> Aligned:
    """The aligned spans with these quotations first, without spans that overlap them."""
    spans = [(q.span, q.position) for q in quoted]
    spans += [
        (span, position)
        for span, position in zip(aligned.spans, aligned.positions, strict=True)
        if not any(q.position == position and q.span.start < span.end and span.start < q.span.end for q in quoted)
    ]
    kept = spans[:MAX_SPANS]
    return replace(aligned, spans=tuple(span for span, _ in kept), positions=tuple(p for _, p in kept))


def _demoted_order(fact: Fact) -> Fact:
    """The fact, as a statement if it is an instruction of neither the user nor the model."""
    return replace(fact, kind="statement") if fact.trust not in SIDES and fact.kind in NORMATIVE else fact
