"""What became of the lines that agents were shown at tool calls, from the transcripts of the sessions.

A line was followed if the session did not do again what it warns of, or without failure, and ignored if it did. It was
contradicted if the call succeeded before which a pattern was shown or the user was asked, or if the next message of the
user contradicts the rule.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from typing import Literal, NamedTuple, get_args

from memory_pipeline.actions.files import KINDS, commands_of_hints
from memory_pipeline.actions.rules import Rule
from memory_pipeline.agents.kit.tool_calls import runs
from memory_pipeline.days import day_of
from memory_pipeline.friction.active import active_patterns
from memory_pipeline.friction.attempts import TOOL, USER, Attempt, Session, Turn, sessions_in
from memory_pipeline.friction.checks import Check
from memory_pipeline.friction.messages import is_claim, sentences_in
from memory_pipeline.friction.observed import CLOCKS, ShownLine, shown_lines
from memory_pipeline.lake.store import Lake
from memory_pipeline.settings import Settings
from memory_pipeline.text.relation import CONTRADICTS, REPLACES, relation

Outcome = Literal["followed", "ignored", "contradicted", "open"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""`open` if the session is not read yet, or nothing after the line is known of the rule."""
OBJECTIONS = (REPLACES, CONTRADICTS)


class Seen(NamedTuple):
    """A line that was shown as a hint, or about which the user was asked."""

    line: ShownLine
    outcome: Outcome
    call: Turn | None = None
    """The call that ignored or contradicted it, or the user's objection."""


def outcomes(settings: Settings, lake: Lake, rules: Iterable[Rule], day: date | None = None) -> list[Seen]:
    """Each line that was shown as a hint or asked about, or was on the day, with its outcome."""
    hints = [line for line in _shown_once(settings) if day is None or day_of(line.at, settings.zone) == day]
    by_session: defaultdict[str, list[ShownLine]] = defaultdict(list)
    for line in hints:
        by_session[line.session_id].append(line)
    checks = {rule.rule_id: rule for rule in rules if rule.check}
    words = commands_of_hints(lake, {line.line_id for line in hints})
    found: dict[ShownLine, Seen] = {}
    near = {line.at.date() + timedelta(days=n) for line in hints for n in (-1, 0, 1)}
    days = [day for day in lake.days("messages") if day in near]
    for session in sessions_in(lake, days, by_session) if days else ():
        for line in by_session[session.session_id]:
            found[line] = _outcome(line, session, checks, words)
    return [found.get(line) or Seen(line, "open") for line in hints]


def _shown_once(settings: Settings) -> Iterator[ShownLine]:
    """The lines that were shown as hints, and those that were asked about, without the second attempt of a call."""
    asked = set[tuple[str, str]]()
    for line in shown_lines(settings):
        key = line.session_id, line.line_id
        if line.shown_as == "hint" or (line.shown_as == "ask" and key not in asked):
            yield line
        asked |= {key} if line.shown_as == "ask" else set()


MIN_UNHEEDED = 3
"""Number of times a line was ignored or contradicted from which it deserves another look."""


def unheeded(found: Iterable[Seen]) -> dict[str, list[Turn]]:
    """The lines that were ignored or contradicted so often that they deserve another look, with the calls."""
    calls = defaultdict[str, list[Turn]](list)
    for seen in found:
        if seen.call:
            calls[seen.line.line_id].append(seen.call)
    return {line_id: own for line_id, own in calls.items() if len(own) >= MIN_UNHEEDED}


def by_line(found: Iterable[Seen]) -> dict[str, dict[str, int]]:
    """The number of each outcome, by the id of the line."""
    times = defaultdict[str, Counter[str]](Counter)
    for seen in found:
        times[seen.line.line_id][seen.outcome] += 1
    return {line_id: dict(sorted(own.items())) for line_id, own in sorted(times.items())}


def stored_times(settings: Settings) -> Counter[str]:
    """The number of each outcome as of the last run; empty without hooks."""
    with suppress(OSError, ValueError, AttributeError, TypeError):
        by_id = json.loads(settings.outcomes_file.read_bytes())
        return sum((Counter(own) for own in by_id.values()), Counter())
    return Counter()


def describe(times: Mapping[str, int]) -> str:
    """The number of lines that were shown, and of each outcome; empty if none was shown."""
    total = sum(times.values())
    known = [f"{times[outcome]} {outcome}" for outcome in OUTCOMES if times.get(outcome)]
    return f"{total} shown" + (f": {', '.join(known)}" if known else "") if total else ""


def _outcome(line: ShownLine, session: Session, checks: Mapping[str, Rule], words: Mapping[str, list[str]]) -> Seen:
    """The outcome by the user's next message, and by the calls of the kind that the line warns of: the one that it was
    shown for, and those since."""
    rule, wanted = checks.get(line.line_id), words.get(line.line_id)
    if rule and rule.check:
        return _outcome_of_rule(line, session, rule, rule.check)
    return _outcome_of_hint(line, session, wanted) if wanted else Seen(line, "open")


def _outcome_of_rule(line: ShownLine, session: Session, rule: Rule, check: Check) -> Seen:
    if objection := _objection(line, session.turns, rule):
        return Seen(line, "contradicted", objection)
    shown_for, since = _around(line, [call for call in session.attempts if check.stops(call.call.tool, call.call.text)])
    if line.shown_as != "ask":
        return Seen(line, "ignored", since[0].call) if since else Seen(line, "followed")
    # a call that was made is one that the user allowed
    allowed = next((call for call in (*shown_for, *since) if call.has_succeeded), None)
    return Seen(line, "contradicted", allowed.call) if allowed else Seen(line, "followed")


def _outcome_of_hint(line: ShownLine, session: Session, words: list[str]) -> Seen:
    own = [call for call in session.attempts if call.command and runs(call.command, words)]
    shown_for, since = _around(line, own)
    if line.event == "before" and shown_for and not shown_for[0].has_failed:
        return Seen(line, "contradicted", shown_for[0].call)
    again = next((call for call in since if call.has_failed), None)
    return Seen(line, "ignored", again.call) if again else Seen(line, "followed")


def _around(line: ShownLine, calls: Sequence[Attempt]) -> tuple[list[Attempt], list[Attempt]]:
    """The call that the line was shown for, if it is stored, and those since."""
    until = line.at + CLOCKS
    return [call for call in calls if call.call.at <= until][-1:], [call for call in calls if call.call.at > until]


def _objection(line: ShownLine, turns: Sequence[Turn], rule: Rule) -> Turn | None:
    """The user's next message, if one of its sentences contradicts or replaces the rule."""
    turn = next((turn for turn in turns if turn.role == USER and turn.at > line.at), None)
    said = (turn.text[start:end] for start, end, _ in sentences_in(turn.text, ())) if turn else ()
    is_objection = any(is_claim(text) and relation(text, rule.text, cautious=True) in OBJECTIONS for text in said)
    return turn if is_objection else None


def repeated_failures(settings: Settings, lake: Lake, day: date) -> Counter[str]:
    """The failures of the day that are known from an earlier one, `with` and `without` a hint that their session had
    been shown before."""
    first: dict[tuple[str, str], ShownLine] = {}
    for line in shown_lines(settings):
        first.setdefault((line.session_id, line.line_id), line)
    messages = lake.read("messages", [day], ("message_id", "session_id", "said_at", "role")).filter(role=TOOL)
    failed = {i: (session_id, at) for i, session_id, at, _ in messages.iter_rows()}
    times = Counter[str]()
    for pattern in active_patterns(lake, day, settings.lookback_days):
        if pattern.row["kind"] not in KINDS or pattern.first_day >= day:
            continue
        for message_id in {span["message_id"] for span in pattern.row["evidence"]} & failed.keys():
            session_id, at = failed[message_id]
            hint = first.get((session_id, pattern.row["pattern_id"]))
            # a hint after a failure may have been shown because of this one
            is_before = hint and (hint.at + CLOCKS < at if hint.event == "after" else hint.at <= at)
            times["with" if is_before else "without"] += 1
    return times
