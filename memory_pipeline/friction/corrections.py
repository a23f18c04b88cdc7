"""Patterns of user remarks: repeated corrections, and rules that are broken or out of date.

A model groups the remarks (`grouping.py`). Without one, only nearly identical remarks of two sessions are grouped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from memory_pipeline.friction.checks import Check, check_for
from memory_pipeline.friction.messages import age, bare, is_claim
from memory_pipeline.friction.observed import Violation, with_violations
from memory_pipeline.friction.patterns import (
    AGENTS_FILE,
    HARD_RULES,
    MAX_LINE,
    MEMORY_FILE,
    MIN_SESSIONS,
    REPEATED_CORRECTION,
    RULE_VIOLATED,
    STALE_MEMORY,
    FrictionEvent,
    Pattern,
)
from memory_pipeline.friction.rules import Rule
from memory_pipeline.lake.rows import distinct
from memory_pipeline.scope import with_note
from memory_pipeline.text.kinds import is_question, kind_of_user
from memory_pipeline.text.lines import is_self_contained
from memory_pipeline.text.relation import AGAIN, gives_up, groups, is_same, replaces
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.similarity import content_words

MAX_COMPARED = 2_000
"""Maximum number of newest corrections that are compared with each other."""
MIN_WORDS = 2
"""Minimum content words of a correction that says what is wanted."""


class Grouped(NamedTuple):
    """Groups of a user's remarks with the same meaning, oldest first, from two sessions or more unless a rule is
    replaced."""

    again: Sequence[Sequence[FrictionEvent]]
    broken: Mapping[Rule, Sequence[FrictionEvent]]
    over: Mapping[Rule, Sequence[FrictionEvent]]


def find_patterns(
    events: Sequence[FrictionEvent],
    rules: Sequence[Rule],
    by_model: Grouped | None,
    observed: Sequence[Violation] = (),
) -> list[Pattern]:
    """The patterns in the remarks of users, grouped by a model, else by nearly identical words, and in the violations
    that hooks observed."""
    found = by_model or by_words(events, rules)
    seen = [violation for violation in observed if violation.rule not in found.over]
    held = {violation.rule for violation in seen if violation.stopped}
    of_lines = [
        *(
            _violation_pattern(rule, members, is_held=rule in held)
            for rule, members in with_violations(found.broken, seen).items()
        ),
        *(stale_pattern(rule, members) for rule, members in found.over.items()),
    ]
    claimed = {m.event_id for p in of_lines for m in p.members}
    again = [_correction_pattern(members) for members in found.again if _is_clear(members)]
    patterns = [*(p for p in again if not _is_mostly_claimed(p, claimed)), *of_lines]
    if by_model:  # a model's groups are never applied automatically
        return [replace(pattern, low_risk=False) for pattern in patterns]
    return patterns


def by_words(events: Sequence[FrictionEvent], rules: Sequence[Rule]) -> Grouped:
    """Corrections in nearly identical words; those that repeat a rule show that it is broken."""
    again, broken = [], dict[Rule, Sequence[FrictionEvent]]()
    for members in repeated(events):
        text = bare(members[0].text)
        rule = next((r for r in rules if is_same(text, r.text, AGAIN)), None)
        since = [m for m in members if rule is not None and rule.reaches(m)]
        if rule is not None and _spans_sessions(since):
            broken.setdefault(rule, since)
        else:
            again.append(members)
    return Grouped(again, broken, stale_lines(events, rules))


def repeated(events: Sequence[FrictionEvent]) -> list[list[FrictionEvent]]:
    """Corrections in nearly identical words, from two sessions or more."""
    newest = sorted((e for e in events if e.is_correction), key=age)[-MAX_COMPARED:]
    by_id = {e.event_id: e for e in newest}
    texts = {event_id: bare(e.text) for event_id, e in by_id.items()}
    found = groups(list(by_id), texts, {}, AGAIN)
    return [members for ids in found if _spans_sessions(members := [by_id[i] for i in ids])]


def _spans_sessions(members: Sequence[FrictionEvent]) -> bool:
    return len({m.session_id for m in members}) >= MIN_SESSIONS


def _is_mostly_claimed(pattern: Pattern, claimed: Collection[str]) -> bool:
    """Whether most events of the pattern belong to another one."""
    return 2 * sum(m.event_id in claimed for m in pattern.members) >= len(pattern.members)


def _is_clear(members: Sequence[FrictionEvent]) -> bool:
    """Whether at least one of the remarks can be understood without its context."""
    return any(
        len(content_words(bare(m.text))) >= MIN_WORDS and not is_question(m.text) and not m.text.rstrip().endswith(":")
        for m in members
    )


def _correction_pattern(members: Sequence[FrictionEvent]) -> Pattern:
    line = _line(members)
    projects = distinct(m.project for m in members)
    times = len({m.session_id for m in members})
    said_so = any(kind_of_user(m.text) == "correction" for m in members)
    return Pattern(
        REPEATED_CORRECTION,
        f"Said again in {times} sessions: “{clip(line, 110)}”",
        MEMORY_FILE,
        tuple(members),
        adds=with_note(clip(line, MAX_LINE), projects),
        section=HARD_RULES,
        low_risk=times >= 3,
        sure=1.0 if said_so else 0.8,
    )


def _line(members: Sequence[FrictionEvent]) -> str:
    """The clearest wording, without leading "no" and "again": a self-contained one, else the newest."""
    texts = [bare(m.text) for m in reversed(members)]
    alone = [t for t in texts if is_self_contained(t, "rule") and not t.endswith("?")]
    return max(alone or texts, key=lambda t: (not t.endswith("?"), min(len(t), 80)))


def _violation_pattern(rule: Rule, members: Sequence[FrictionEvent], *, is_held: bool = False) -> Pattern:
    """The pattern of a broken rule: it is proposed for MEMORY.md, or as a guard if it is already there. ``is_held``
    says whether hooks stopped calls that break it."""
    times = len({m.session_id for m in members})
    title = f"A rule of {rule.name} is still broken, in {times} sessions since: “{clip(rule.text, 90)}”"
    quote, check = clip(rule.text, MAX_LINE), check_for(rule.text)
    if rule.name == MEMORY_FILE:
        is_checked = not is_held and isinstance(check, Check)
        note = f"or let code hold it: `memory agents rules set {rule.line_id} deny`" if is_checked else ""
        return Pattern(RULE_VIOLATED, title, AGENTS_FILE, tuple(members), adds=quote, note=note)
    if isinstance(check, Check) and check.kind == "command":
        denied = ", ".join(f'"Bash({" ".join(command)}:*)"' for command in check.commands)
        note = f'deny it: {{"permissions": {{"deny": [{denied}]}}}}, or write a hook that refuses it'
        return Pattern(RULE_VIOLATED, title, ".claude/settings.json", tuple(members), note=note)
    note = f"make it a check that fails (a lint rule, a test or a hook): “{quote}”"
    return Pattern(RULE_VIOLATED, title, rule.name, tuple(members), note=note)


def stale_lines(said: Sequence[FrictionEvent], rules: Sequence[Rule]) -> dict[Rule, list[FrictionEvent]]:
    """The lines that a remark replaces, even in a single session ("X instead of Y"), with these remarks, oldest first.
    Lines that are outdated in other words are found only by a model."""
    replacing = [e for e in sorted(said, key=age) if gives_up(e.text) and is_claim(e.text)]
    found = {rule: [e for e in replacing if rule.reaches(e) and replaces(e.text, rule.text)] for rule in rules}
    return {rule: members for rule, members in found.items() if members}


def stale_pattern(rule: Rule, members: Sequence[FrictionEvent]) -> Pattern:
    """The pattern of an outdated line, with the replacement of its newest member."""
    newest = bare(members[-1].text)
    return Pattern(
        STALE_MEMORY,
        f"{rule.name} still says “{clip(rule.text, 70)}”; you said “{clip(newest, 60)}”",
        MEMORY_FILE if rule.name == MEMORY_FILE else rule.file,
        tuple(members),
        adds=clip(newest, MAX_LINE),
        replaces=rule.text,
        low_risk=rule.name == MEMORY_FILE and len({m.session_id for m in members}) >= MIN_SESSIONS,
    )
