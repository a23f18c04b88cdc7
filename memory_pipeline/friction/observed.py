"""The record of the hooks of tool calls, and the violations of approved rules in it as events of friction.

A violation counts once its call is found in the transcript, which also gives its day. A remark of the user that repeats
the rule after such a call is about the same violation.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from memory_pipeline.friction.attempts import Session
from memory_pipeline.friction.checks import Check, check_for
from memory_pipeline.friction.patterns import MIN_SESSIONS, FrictionEvent, event_at
from memory_pipeline.friction.rules import Rule
from memory_pipeline.settings import Settings

SHOWN = "shown.jsonl"


@dataclass(frozen=True)
class ShownLine:
    """A line that a session was shown, or a call that a rule stopped or would have stopped."""

    at: datetime
    session_id: str
    line_id: str
    """The id of the rule or of the pattern."""
    shown_as: str
    """`hint`, or the mode of the rule: `observe`, `ask` or `deny`."""
    event: str
    """`before` the call, or `after` it."""


def shown_lines(settings: Settings) -> Iterator[ShownLine]:
    """The record of the hooks, oldest first. Unreadable entries are skipped."""
    for name in (f"{SHOWN}.1", SHOWN):
        with suppress(OSError):
            for line in (settings.actions_dir / name).read_bytes().splitlines():
                with suppress(ValueError, TypeError, KeyError):
                    entry = json.loads(line)
                    at = datetime.fromisoformat(entry["at"])
                    named = (entry["session"], entry["id"], entry["as"], entry.get("event", "before"))
                    yield ShownLine(at, *map(str, named))


CLOCKS = timedelta(seconds=2)
"""How far the record of a hook, in whole seconds, may be from the time of its call in the transcript."""


class Violation(NamedTuple):
    """A call that broke a rule."""

    rule: Rule
    event: FrictionEvent
    stopped: str | None
    """The id of the result of a call that the rule stopped: that result is no failure of a tool."""


def violations_in(
    session: Session, shown: Sequence[ShownLine], rules: Mapping[str | None, Sequence[Rule]]
) -> Iterator[Violation]:
    """The violations of one session, given its recorded lines and the rules of each line of MEMORY.md, by its id."""
    taken, asked = set[str](), set[str]()
    for line in shown:
        if line.shown_as == "ask":
            if line.line_id in asked:
                continue  # agents that cannot ask may make the call in the second attempt
            asked.add(line.line_id)
        for rule, check in _checked(rules.get(line.line_id, ())):
            own = [
                a for a in session.attempts if a.call.at <= line.at + CLOCKS and check.stops(a.call.tool, a.call.text)
            ]
            if own and own[-1].call.message_id not in taken:
                taken.add(own[-1].call.message_id)
                stopped = own[-1].result.message_id if line.shown_as in ("ask", "deny") else None
                yield Violation(rule, event_at(session, own[-1].call), stopped)
            break


def _checked(rules: Sequence[Rule]) -> Iterator[tuple[Rule, Check]]:
    """The sentences of a line that have a check."""
    for rule in rules:
        if isinstance(check := check_for(rule.text), Check):
            yield rule, check


def with_violations(
    broken: Mapping[Rule, Sequence[FrictionEvent]], observed: Sequence[Violation]
) -> dict[Rule, Sequence[FrictionEvent]]:
    """The events of each broken rule: remarks that repeat it, and calls that broke it, from two sessions or more."""
    found = dict(broken)
    for rule in dict.fromkeys(violation.rule for violation in observed):
        calls = [violation.event for violation in observed if violation.rule == rule]
        members = _merged(broken.get(rule, ()), calls)
        if len({member.session_id for member in members}) >= MIN_SESSIONS:
            found[rule] = members
    return found


def _merged(remarks: Sequence[FrictionEvent], calls: Sequence[FrictionEvent]) -> list[FrictionEvent]:
    """The events, oldest first: a remark after a call of its session adds its evidence and cost to that call."""
    found = {call.event_id: call for call in calls}
    for remark in remarks:
        before = [call for call in calls if call.session_id == remark.session_id and call.at <= remark.at]
        if before:
            call = found[max(before, key=lambda call: call.at).event_id]
            turns, minutes = max(call.turns, remark.turns), max(call.minutes, remark.minutes)
            evidence = (*call.evidence, *remark.evidence)
            found[call.event_id] = replace(call, evidence=evidence, turns=turns, minutes=minutes)
        else:
            found[remark.event_id] = remark
    return sorted(found.values(), key=lambda event: (event.at, event.event_id))
