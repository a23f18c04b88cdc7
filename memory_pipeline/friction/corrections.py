"""Patterns of user remarks: repeated corrections, and rules that are broken or out of date.

People express the same wish in different words ("one seed isn't a result", "that could be pure noise"). The reflector's
model is shown the numbered remarks and the lines of MEMORY.md, AGENTS.md and CLAUDE.md, and answers with numbers only:
it can make wrong groups, which a reviewer sees in the quotes, but it cannot invent anything. Without a model or a valid
answer, only nearly identical remarks of two sessions are grouped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import NamedTuple

from memory_pipeline.friction.asking import GROUPS, Asking, read_groups
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
from memory_pipeline.llm.config import SMALL_CONTEXT, reflector_model
from memory_pipeline.markdown.blocks import one_line
from memory_pipeline.scope import with_note
from memory_pipeline.text.kinds import is_question, kind_of_user
from memory_pipeline.text.lines import is_self_contained
from memory_pipeline.text.relation import AGAIN, gives_up, groups, is_same, replaces
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.similarity import content_words, overlap

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
    mine = [p for p in again if 2 * sum(m.event_id in claimed for m in p.members) < len(p.members)]
    patterns = [*mine, *of_lines]
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


MAX_REMARKS, MAX_REMARK = 240, 300
"""Maximum number of remarks that a model is shown, with corrections and those like a rule first, and maximum characters
of each. With the rules these are 27,000 tokens at most, and about 6,000 in a week of 25 sessions."""
MAX_RULES, MAX_RULE = 80, 200
MAX_TOKENS = 2_000
NOTHING = Grouped([], {}, {})


def by_model(asking: Asking, events: Sequence[FrictionEvent], rules: Sequence[Rule], day: date) -> Grouped | None:
    """The remarks up to the day, grouped by the model, which is asked once, and not for a day without remarks. None
    without a model with enough context, and for an invalid answer."""
    settings = asking.workspace.settings
    if reflector_model(settings) is None or settings.effective_context <= SMALL_CONTEXT:
        return None
    remarks = remarks_for(events, rules)
    if not any(remark.day == day for remark in remarks) or len({r.session_id for r in remarks}) < MIN_SESSIONS:
        return NOTHING
    lines = lines_for(rules, remarks)
    answer = asking.answer(GROUPS, prompt_values(remarks, lines), MAX_TOKENS, day)
    found = groups_in(answer, remarks, lines) if answer is not None else None
    if answer is not None and found is None:
        asking.refused[
            "only nearly the same words are grouped: the answer names no group and does not say that there is none"
        ] += 1
    return found


def remarks_for(events: Sequence[FrictionEvent], rules: Sequence[Rule]) -> list[FrictionEvent]:
    """The remarks to show, oldest first. If there are too many, corrections take precedence, then those most like a
    rule, then the newest."""
    chosen = list(events)
    if len(chosen) > MAX_REMARKS:
        like = _likeness([e.text for e in chosen], [rule.text for rule in rules])
        ranked = sorted(zip(chosen, like, strict=True), key=lambda one: (one[0].is_correction, one[1], one[0].at))
        chosen = [event for event, _ in ranked[-MAX_REMARKS:]]
    return sorted(chosen, key=lambda e: (e.at, e.evidence[0][1], e.event_id))  # in order of time, also within a message


def lines_for(rules: Sequence[Rule], remarks: Sequence[FrictionEvent]) -> list[Rule]:
    """The rules that apply to one of these remarks, at most the most similar ones, in the order of their files."""
    reached = [rule for rule in rules if any(rule.reaches(remark) for remark in remarks)]
    if len(reached) <= MAX_RULES:
        return reached
    like = _likeness([rule.text for rule in reached], [remark.text for remark in remarks])
    likest = sorted(range(len(reached)), key=lambda i: (-like[i], i))[:MAX_RULES]
    return [reached[i] for i in sorted(likest)]


def _likeness(texts: Sequence[str], others: Sequence[str]) -> list[float]:
    """For each text, the largest share of words that it has in common with one of the others."""
    compared = [content_words(other) for other in others]
    return [max((overlap(words, other) for other in compared), default=0.0) for words in map(content_words, texts)]


def prompt_values(remarks: Sequence[FrictionEvent], lines: Sequence[Rule]) -> Mapping[str, str]:
    """The values of the prompt's placeholders."""
    sessions = {session_id: n for n, session_id in enumerate(dict.fromkeys(r.session_id for r in remarks), 1)}
    said = "\n".join(f"#{n} {_format_remark(remark, sessions)}" for n, remark in enumerate(remarks, 1))
    noted = "\n".join(f"L{n} {line.name}: {clip(one_line(line.text), MAX_RULE)}" for n, line in enumerate(lines, 1))
    mark = hashlib.sha256(f"{said}\n{noted}".encode()).hexdigest()[:8]
    return {"fence": f"said-{mark}", "remarks": said, "lines": noted or "(there are none)"}


def _format_remark(remark: FrictionEvent, sessions: Mapping[str, int]) -> str:
    before = f" (after the agent called {', '.join(remark.calls)})" if remark.calls else ""
    where = f" {remark.project}" if remark.project else ""
    return f"session {sessions[remark.session_id]}{where}{before}: {clip(one_line(remark.text), MAX_REMARK)}"


def groups_in(answer: str, remarks: Sequence[FrictionEvent], lines: Sequence[Rule]) -> Grouped | None:
    """The groups in the answer. A remark belongs only to its first group; groups of one session, and groups whose rule
    did not apply at the time, are dropped. None if the answer has no group without saying so."""
    groups = read_groups(answer)
    if groups is None:
        return None
    again, of_lines = list[list[FrictionEvent]](), {"broken": dict[Rule, list[FrictionEvent]](), "over": {}}
    taken = set[int]()
    for what, line, numbers in groups:
        members = [n for n in numbers if 1 <= n <= len(remarks) and n not in taken]
        rule = lines[line - 1] if 1 <= line <= len(lines) else None
        own = [remarks[n - 1] for n in members if rule is None or rule.reaches(remarks[n - 1])]
        if (rule is None) != (what == "again") or len({e.session_id for e in own}) < MIN_SESSIONS:
            continue
        taken.update(members)
        if rule is None:
            again.append(own)
        else:
            of_lines[what].setdefault(rule, own)
    broken = {rule: own for rule, own in of_lines["broken"].items() if rule not in of_lines["over"]}
    return Grouped(again, broken, of_lines["over"])
