"""Makes what a model wrote honest: evidence found, times and names checked against what was said, claims held down."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from memory_pipeline.observations.alignment import GROUNDED, Aligned, Alignment
from memory_pipeline.observations.features import Window
from memory_pipeline.observations.grounding import CLOCK, UNGROUNDED, clock_times
from memory_pipeline.observations.observer import Fact, Said
from memory_pipeline.observations.parsing import ParsedFact
from memory_pipeline.observations.specifics import Said as Words
from memory_pipeline.observations.specifics import missing_specifics, specifics
from memory_pipeline.text.priorities import LOW, MEDIUM, RANK
from memory_pipeline.text.sentences import squeeze

UNGROUNDED_SPECIFICS, TIME_REMOVED = "ungrounded_specifics", "time_removed"
NAMED_GROUNDED = 0.25
"""Of a fact whose names were all said, so much coverage is enough: it may be in another language than the session."""
CAP_OF_TRUST = {"tool": MEDIUM, "injected": LOW, "paste": LOW}
"""Most that a fact can be whose words nobody said themselves. What is pasted or read may be somebody else's order."""
_TIME_IN_WORDS = r"\s*(?:\(\s*(?:at\s+|um\s+)?{clock}\s*\)|\b(?:at|um|à|by|around)\s+{clock}\b|\b{clock}\b)"


@dataclass(frozen=True)
class Honesty:
    """What is known of a window to hold a model's facts against."""

    messages: Sequence[Said]
    window: Window
    alignment: Alignment
    words: Words
    times: frozenset[str]
    """Clock times that were printed or said."""
    zone: ZoneInfo

    @classmethod
    def of(cls, messages: Sequence[Said], zone: ZoneInfo) -> Honesty:
        texts = [m.text for m in messages]
        printed = {f"{m.said_at.astimezone(zone):%H:%M}" for m in messages}
        spoken = (clock_times(t) | clock_times(squeeze(t)) for t in texts)
        names = [m.tool_name or "" for m in messages]
        times = frozenset(printed.union(*spoken))
        return cls(messages, Window.of(messages), Alignment(messages), Words([*texts, *names]), times, zone)

    def check(self, parsed: ParsedFact, within: range) -> Fact:
        """The fact as it may be stored. `within` are the positions of the part that the model was shown."""
        named = [number - 1 for number in parsed.refs if number - 1 in within]
        text, is_removed = self.without_invented_times(parsed.text)
        aligned = self.alignment.align(text, named)
        missing = missing_specifics(text, self.words)
        flags = [UNGROUNDED_SPECIFICS] if missing else []
        if is_removed or (parsed.clock and parsed.clock not in self.times):
            flags.append(TIME_REMOVED)
        if not self._is_grounded(text, aligned, missing, named):
            return self._ungrounded(parsed, text, [UNGROUNDED, *flags], named or list(within))
        position = self._said_at(aligned, parsed.clock)
        said = self.messages[position]
        fact = Fact(
            text=text,
            priority=parsed.priority,
            kind=parsed.kind,
            observed_at=said.said_at,
            trust=self._trust(aligned),
            evidence=aligned.spans,
            flags=tuple(flags),
        )
        return self._held_down(fact, aligned, missing)

    def without_invented_times(self, text: str) -> tuple[str, bool]:
        """The text without clock times that nobody said and no message bears, and whether there were any."""
        invented = {m[0] for m in CLOCK.finditer(text) if not clock_times(m[0]) <= self.times}
        for clock in invented:
            text = re.sub(_TIME_IN_WORDS.replace("{clock}", re.escape(clock)), "", text)
        return " ".join(text.split()) if invented else text, bool(invented)

    def _is_grounded(self, text: str, aligned: Aligned, missing: list[str], named: list[int]) -> bool:
        if not aligned.spans:
            return False
        is_named = bool(named) and not missing and bool(specifics(text))
        return aligned.coverage >= (NAMED_GROUNDED if is_named else GROUNDED)

    def _ungrounded(self, parsed: ParsedFact, text: str, flags: list[str], where: list[int]) -> Fact:
        moment = self.messages[where[0]].said_at
        return Fact(text, LOW, parsed.kind, moment, "model", (), tuple(flags))

    def _said_at(self, aligned: Aligned, clock: str | None) -> int:
        """The message among those that carry it whose time the model gave, or the one that carries most."""
        local = {p: f"{self.messages[p].said_at.astimezone(self.zone):%H:%M}" for p in aligned.positions}
        return next((p for p in aligned.positions if local[p] == clock), aligned.positions[0])

    def _trust(self, aligned: Aligned) -> str:
        """Whose words carry most of it."""
        position, span = aligned.positions[0], aligned.spans[0]
        message = self.messages[position]
        if message.role == "user" and any(a < span.end and span.start < b for a, b in message.quoted):
            return "paste"
        return message.role

    def _held_down(self, fact: Fact, aligned: Aligned, missing: list[str]) -> Fact:
        """With the priority that it may have at most."""
        most = CAP_OF_TRUST.get(fact.trust)
        if missing:
            most = LOW
        elif (fact.trust == "assistant" and not self._is_confirmed(aligned)) or fact.kind == "question":
            most = MEDIUM
        return replace(fact, priority=most) if most and RANK[most] > RANK[fact.priority] else fact

    def _is_confirmed(self, aligned: Aligned) -> bool:
        """Whether the person said some of it too, or a result or their reply let the claim stand."""
        roles = {self.messages[p].role for p in aligned.positions}
        return "user" in roles or any(self.window.is_confirmed(p) for p in aligned.positions)
