"""Patterns of what users said: what they had to say again, and rules that are broken still."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from memory_pipeline.friction.about_rules import AboutRules
from memory_pipeline.friction.clustering import Vector, clusters, terms_of
from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.friction.judging import Judge
from memory_pipeline.friction.patterns import (
    AGENTS_FILE,
    HARD_RULES,
    MAX_LINE,
    MEMORY_FILE,
    REPEATED_CORRECTION,
    RULE_VIOLATED,
    Pattern,
)
from memory_pipeline.friction.rules import Rule
from memory_pipeline.friction.said import REVERSAL, Said, age, bare, of_one_mind
from memory_pipeline.friction.stale import lines_over, over_since, stale_lines
from memory_pipeline.lake.rows import distinct
from memory_pipeline.scope import with_note
from memory_pipeline.text.kinds import is_question, kind_of_user
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.standing import stands_alone
from memory_pipeline.text.wording import opposes, retracted_words

MAX_COMPARED = 3_000
"""Sentences of which all are compared; of more, those that share a rare word with one that plainly corrects."""
RARE_TIMES, RARE_SHARE = 20, 0.02
"""How often a word may be said, at least and as a share of all sentences, that tells what they are about."""
SURE = 0.5
"""How likely what is about one thing must be the same correction."""
SURE_OF_RULE = 0.2
"""The same of what is about a rule: what they object to stands there already."""
ABOUT, ABOUT_ALONE = 0.1, 0.5
"""How likely several that are about one thing must be about a line, and a single one."""
MIN_WORDS = 2
"""Of content, in words that say what was wanted."""


class Grouped(NamedTuple):
    """What was said, put together: each group oldest first, and of two sessions or more unless a line plainly ends."""

    again: Sequence[Sequence[FrictionEvent]]
    broken: Mapping[Rule, Sequence[FrictionEvent]]
    over: Mapping[Rule, Sequence[FrictionEvent]]
    plainly: Collection[Rule] = ()
    """Of the lines that are over, those that end by words which name what took their place."""


def patterns_of(
    judge: Judge, about: AboutRules, vectors: Mapping[str, Vector], by_model: Grouped | None = None
) -> list[Pattern]:
    """What was said again and which lines it breaks or ends: as a model put it together, else by likeness. ``vectors``
    by event, of `PhraseEncoder`."""
    found = by_model or by_likeness(judge, about, vectors)
    of_lines = [
        *(_violated(rule, members) for rule, members in found.broken.items()),
        *(over_since(rule, members, is_plain=rule in found.plainly) for rule, members in found.over.items()),
    ]
    claimed = {m.event_id for p in of_lines for m in p.members}
    again = [_repeated(members) for members in found.again if _is_clear(members)]
    if by_model:  # what a model put together is never applied without asking
        again = [replace(pattern, low_risk=False) for pattern in again]
    return [*(p for p in again if not _mostly(p, claimed)), *of_lines]


def by_likeness(judge: Judge, about: AboutRules, vectors: Mapping[str, Vector]) -> Grouped:
    """By words, vectors and what the agent had done."""
    plainly = stale_lines(judge.events, about.rules)
    over = {rule: found for rule, found in lines_over(about, vectors).items() if rule not in plainly}
    by_rule, others = by_rule_and_others(judge, about, one_thing_each(judge, vectors))
    again = [members for members in others if judge.recurs(members) >= SURE]
    broken = {}
    for rule, members in by_rule.items():
        likely = judge.recurs(members)
        if rule in plainly or likely < SURE_OF_RULE:
            continue
        if rule not in over or over[rule].likely < likely:
            broken[rule] = members
            over.pop(rule, None)
    return Grouped(again, broken, {**plainly, **{rule: found.members for rule, found in over.items()}}, plainly.keys())


def one_thing_each(judge: Judge, vectors: Mapping[str, Vector]) -> list[list[FrictionEvent]]:
    """What may object, in groups that are about one thing and of one mind, oldest first."""
    events = judge.possible()
    groups = clusters(
        [e.text for e in events], [vectors.get(e.event_id) for e in events], judge.words, [e.did for e in events]
    )
    return [list(of_one_mind(_since_reversed([events[i] for i in group]))) for group in groups]


def by_rule_and_others(
    judge: Judge, about_rules: AboutRules, groups: Sequence[Sequence[FrictionEvent]]
) -> tuple[dict[Rule, list[FrictionEvent]], list[Sequence[FrictionEvent]]]:
    """Of each line what is about it since it was written, oldest first; and the groups that are about none."""
    found: dict[Rule, dict[str, FrictionEvent]] = defaultdict(dict)
    others = []
    for members in groups:
        rule, likely = about_rules.likeliest(members)
        if rule is not None and likely >= ABOUT:
            found[rule].update({m.event_id: m for m in members})
        else:
            others.append(members)
    for event in judge.possible():
        rule, likely = about_rules.likeliest([event])
        if rule is not None and likely >= ABOUT_ALONE:
            found[rule][event.event_id] = event
    return {
        rule: [e for e in sorted(events.values(), key=age) if rule.reaches(e)] for rule, events in found.items()
    }, others


def worth_comparing(said: Said, rules: Sequence[Rule]) -> Said:
    """Without the remarks that share no rare word with a correction, a change or a rule, which are most of what is
    said; unless the agent owned to a mistake."""
    if sum(map(len, said)) <= MAX_COMPARED:
        return said
    seen = Counter(term for one in said for e in one for term in terms_of(e.text))
    common = max(RARE_TIMES, RARE_SHARE * sum(map(len, said)))
    told = [one.text for one in (*said.corrections, *said.changes)] + [rule.text for rule in rules]
    rare = {term for text in told for term in terms_of(text) if seen[term] <= common}
    return said._replace(remarks=[e for e in said.remarks if e.is_owned or rare & terms_of(e.text)])


def _mostly(pattern: Pattern, claimed: Collection[str]) -> bool:
    """Whether what it rests on belongs to another pattern."""
    return 2 * sum(m.event_id in claimed for m in pattern.members) >= len(pattern.members)


def _since_reversed(members: Sequence[FrictionEvent]) -> list[FrictionEvent]:
    """Those that were said since the user changed their mind, if they did: a changed mind is no repetition."""
    ordered = sorted(members, key=age)
    turned = next((i for i in range(len(ordered) - 1, 0, -1) if REVERSAL.search(ordered[i].text)), 0)
    older = any(opposes(ordered[turned].text, m.text) for m in ordered[:turned])
    return ordered[turned:] if older else ordered


def _is_clear(members: Sequence[FrictionEvent]) -> bool:
    """Whether somebody who was not there may understand from one of them what was wanted."""
    return any(
        len(content_words(bare(m.text))) >= MIN_WORDS and not is_question(m.text) and not m.text.rstrip().endswith(":")
        for m in members
    )


def _repeated(members: Sequence[FrictionEvent]) -> Pattern:
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
    """The clearest way in which it was said, without "no" and "again" before it: one that is understood alone, else
    the newest."""
    texts = [bare(m.text) for m in reversed(members)]
    alone = [t for t in texts if stands_alone(t, "rule") and not t.endswith("?")]
    return max(alone or texts, key=lambda t: (not t.endswith("?"), min(len(t), 80)))


def _violated(rule: Rule, members: Sequence[FrictionEvent]) -> Pattern:
    """What stands in MEMORY.md goes where it is read at every turn; what stands there already becomes a barrier."""
    times = len({m.session_id for m in members})
    title = f"A rule of {rule.name} is still broken, in {times} sessions since: “{clip(rule.text, 90)}”"
    quote = clip(rule.text, MAX_LINE)
    if rule.name == MEMORY_FILE:
        return Pattern(RULE_VIOLATED, title, AGENTS_FILE, tuple(members), adds=quote)
    said = (rule.text, *(m.text for m in members))
    names = sorted({word for text in said for word in retracted_words(text)})
    if names:
        denied = ", ".join(f'"Bash({name}:*)"' for name in names[:3])
        note = f'deny it: {{"permissions": {{"deny": [{denied}]}}}}, or write a hook that refuses it'
        return Pattern(RULE_VIOLATED, title, ".claude/settings.json", tuple(members), note=note)
    note = f"make it a check that fails (a lint rule, a test or a hook), for being told is not enough: “{quote}”"
    return Pattern(RULE_VIOLATED, title, f"{Path(rule.file).name}", tuple(members), note=note)
