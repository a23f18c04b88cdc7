"""Patterns of what users said: what they had to say again, and rules that are broken still."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from memory_pipeline.friction import objections
from memory_pipeline.friction.clustering import Words, clusters, terms_of
from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.friction.frames import mostly_of_one_frame
from memory_pipeline.friction.patterns import (
    AGENTS_FILE,
    HARD_RULES,
    MAX_LINE,
    MEMORY_FILE,
    MIN_SESSIONS,
    REPEATED_CORRECTION,
    RULE_VIOLATED,
    Pattern,
)
from memory_pipeline.friction.rules import Rule
from memory_pipeline.friction.said import AGAIN, REVERSAL, Said, age, bare, of_one_mind
from memory_pipeline.friction.stale import over_since, stale_lines, tell_anew
from memory_pipeline.lake.rows import distinct
from memory_pipeline.scope import with_note
from memory_pipeline.text import cues
from memory_pipeline.text.kinds import is_question, kind_of_user
from memory_pipeline.text.languages.cues import foreign_cues
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.standing import stands_alone
from memory_pipeline.text.wording import (
    breaks_with,
    opposes,
    retracted_names,
    retracted_words,
)

SAME_RULE = 0.34
"""Cosine of their words from which somebody's words are about a line, where there are no vectors."""
SAME_RULE_BOTH = 0.7
"""That and the cosine of their vectors together."""
MAX_COMPARED = 3_000
"""Sentences of which all are compared; of more, those that share a rare word with one that plainly corrects."""
RARE_TIMES, RARE_SHARE = 20, 0.02
"""How often a word may be said, at least and as a share of all sentences, that tells what they are about."""
SAME_RULE_TOGETHER, MIN_SHARED_TOGETHER = 0.5, 0.05
"""Means of both, and of the cosine of words, from which objections to one thing are about a line."""
MIN_SHARED = 0.15
"""Cosine of their words below which vectors alone would decide, which see likeness between any two lines of a trade."""
PLAIN = 0.9
"""Likeness to a line from which words say it again that say that something was wrong."""
IN_PASSING = 1.3
"""Likeness to a line from which words are about it that do not say that something was wrong."""
NEARLY = 0.78
"""Mean likeness of a cluster's members to a line that they are all about, in other words or another language."""
PLAIN_SHARE = 0.34
"""Of a pattern's members that must say by themselves that something was wrong."""
POSSIBLE = -2.0
"""Logit of an objection from which words are compared with others: less is hardly one, whatever it is about."""
PLAINLY = 0.7
"""From which words about a rule say that it was broken, where no cue and no observer says so."""
SURE, ALONE = 0.3, 0.0
"""Mean of words that are about one thing, from which they are objections; and what two sessions must have each."""
SURE_OF_RULE = 0.0
"""Mean from which words about one thing and about a rule say that it was broken: it stands there already what they
object to."""
CUED = 2.0
"""Added to the logit of words with a cue ("no", "again", "instead of"): the wordings that the weights were fitted on
have few of these, so that the others are learnt. Half of it finds one planted correction of 86 less."""
TOLD, OWNED, OPENS = 1.0, 1.0, -2.0
"""Added to the logit of what was observed as a correction, a rule or a preference, or has a cue of one; where the
agent's answer owns to a mistake; and of other words that open a session, before which nobody did anything. Of 20
objections in recorded sessions none was the first message, and 45 % were owned to, of other words 17 %. Whether the
agent had just changed something is no sign: it had before 65 % of them, and before 62 % of what else was said."""
CHANGED_MIND = -3.0
"""Logit of words by which a user ends what they wanted themselves."""
SURE_BY_WORDS, CERTAIN_SHARE = 0.8, 1 / 3
"""Mean from which the weights alone are believed, of what is not one sentence said of different things; and the share
of members that must say so by a cue, or be owned to, where they are not: answers and news are near to objections."""
MIN_WORDS = 2
"""Of content, in words that say what was wanted."""
RULE_SHARE = 0.34
"""Of a cluster's members that must say a line again, for the cluster to be about it."""


def patterns_of(
    said: Said,
    rules: Sequence[Rule],
    vectors: Mapping[str, Sequence[float]],
    rule_vectors: Mapping[str, Sequence[float]],
    words: Words,
) -> list[Pattern]:
    """`vectors` by event, `rule_vectors` by rule."""
    everything = {e.event_id: e for e in (*said.corrections, *said.changes, *said.remarks) if terms_of(e.text)}
    decided = {e.event_id for e in said.changes}
    told = {e.event_id for e in said.corrections}
    objection = {
        i: _objection(e, vectors.get(i)) + (TOLD if i in told else OPENS * e.opens) for i, e in everything.items()
    }
    objection |= {i: CHANGED_MIND for i in decided if i in everything and REVERSAL.search(everything[i].text)}
    everyone = sorted(everything.values(), key=age)
    ordered = [e for e in everyone if e.event_id in decided or objection[e.event_id] >= POSSIBLE]
    plain = {i for i, sure in objection.items() if sure >= (0 if i in told else PLAINLY)}
    stale, over = stale_lines(everyone, rules)
    found = clusters(
        [e.text for e in ordered], [vectors.get(e.event_id) for e in ordered], words, [e.did for e in ordered]
    )
    watched = _Rules(rules, rule_vectors, words)
    says = {e.event_id: watched.said(e, vectors.get(e.event_id)) for e in everyone}
    by_rule: dict[Rule, dict[str, FrictionEvent]] = defaultdict(dict)
    patterns = []
    for group in found:
        members = _since_reversed([ordered[i] for i in group])
        of_mind = list(of_one_mind(members))
        # what says that something else holds now breaks no line: it ends it
        ending = 2 * sum(m.event_id in decided for m in of_mind) >= len(of_mind)
        breaking = not ending and _object_together(of_mind, objection, SURE_OF_RULE)
        rule = _shared_rule([says[m.event_id] for m in members])
        if rule is None and breaking:
            rule = watched.said_together(of_mind, vectors)
        if rule is not None:
            plain |= {m.event_id for m in of_mind} if breaking else set()
            heard = (m for m in members if m.event_id in plain or says[m.event_id][1] >= IN_PASSING)
            by_rule[rule].update({m.event_id: m for m in heard})
        elif _are_objections(of_mind, objection) and _is_clear(of_mind):
            patterns.append(_repeated(of_mind))
    for event in everyone:
        rule, like = says[event.event_id]
        if rule is not None and like >= (PLAIN if event.event_id in plain else IN_PASSING):
            by_rule[rule][event.event_id] = event
    for rule, events in by_rule.items():
        members = [e for e in sorted(events.values(), key=age) if rule.reaches(e)]
        if rule.rule_id in over:
            continue
        if tell_anew(members, rule):
            stale.append(over_since(rule, members))
        elif _is_recurring(members, plain):
            patterns.append(_violated(rule, members))
    claimed = {m.event_id for p in [*patterns, *stale] if p.kind != REPEATED_CORRECTION for m in p.members}
    left = [p for p in patterns if p.kind != REPEATED_CORRECTION or not _mostly(p, claimed)]
    return [*left, *stale]


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


def _is_recurring(members: Sequence[FrictionEvent], plain: Collection[str]) -> bool:
    """Whether they span sessions, and enough of them say by themselves that something was wrong: what is said in
    passing about the same thing only joins them."""
    saying = sum(m.event_id in plain for m in members)
    return len({m.session_id for m in members}) >= MIN_SESSIONS and saying >= max(1.0, PLAIN_SHARE * len(members))


def _mostly(pattern: Pattern, claimed: Collection[str]) -> bool:
    """Whether what it rests on belongs to another pattern."""
    return 2 * sum(m.event_id in claimed for m in pattern.members) >= len(pattern.members)


def _since_reversed(members: Sequence[FrictionEvent]) -> list[FrictionEvent]:
    """Those that were said since the user changed their mind, if they did: a changed mind is no repetition."""
    ordered = sorted(members, key=age)
    turned = next((i for i in range(len(ordered) - 1, 0, -1) if REVERSAL.search(ordered[i].text)), 0)
    older = any(opposes(ordered[turned].text, m.text) for m in ordered[:turned])
    return ordered[turned:] if older else ordered


def _shared_rule(said: Sequence[tuple[Rule | None, float]]) -> Rule | None:
    """The one that enough of a cluster say again, or that all of them are nearly about."""
    likeness: dict[Rule, list[float]] = defaultdict(list)
    for rule, like in said:
        if rule is not None:
            likeness[rule].append(like)
    if not likeness:
        return None
    rule, found = max(likeness.items(), key=lambda item: (sum(item[1]), item[0].rule_id))
    certain = sum(like >= 1 for like in found)
    return rule if certain >= RULE_SHARE * len(said) or sum(found) >= NEARLY * len(said) else None


class _Rules:
    """The lines that are watched, to find the one that somebody's words say again."""

    def __init__(self, rules: Sequence[Rule], vectors: Mapping[str, Sequence[float]], words: Words) -> None:
        self.rules, self.vectors = rules, vectors
        self.by_term: dict[str, list[tuple[int, float]]] = defaultdict(list)
        for number, rule in enumerate(rules):
            for term, weight in words.of(rule.text).items():
                self.by_term[term].append((number, weight))
        self.given_up = [retracted_words(rule.text) for rule in rules]
        self.words = words

    def said(self, event: FrictionEvent, vector: Sequence[float] | None) -> tuple[Rule | None, float]:
        """The line that the event is likest to, and how like: from 1 it says it again."""
        shared: dict[int, float] = defaultdict(float)
        for term, weight in self.words.of(event.text).items():
            for number, of_rule in self.by_term.get(term, ()):
                shared[number] += weight * of_rule
        given_up = retracted_words(event.text) if shared else frozenset[str]()
        best, likest = None, 0.0
        for number in sorted(shared):
            rule = self.rules[number]
            if shared[number] < MIN_SHARED or not rule.reaches(event):
                continue
            other = self.vectors.get(rule.rule_id)
            if vector is not None and other is not None:
                like = (sum(a * b for a, b in zip(vector, other, strict=True)) + shared[number]) / SAME_RULE_BOTH
            else:
                like = shared[number] / SAME_RULE
            if given_up & self.given_up[number]:
                like = max(like, 1.2)
            if like > likest and (AGAIN.search(event.text) or not breaks_with(event.text, rule.text)):
                best, likest = rule, like
        return best, likest

    def said_together(self, events: Sequence[FrictionEvent], vectors: Mapping[str, Sequence[float]]) -> Rule | None:
        """The line that objections to one thing are about, taken together."""
        best, likest = None, SAME_RULE_TOGETHER
        own = [(vectors.get(e.event_id), self.words.of(e.text), e) for e in events]
        for rule in self.rules:
            reached = [(vector, terms) for vector, terms, e in own if rule.reaches(e)]
            if 2 * len(reached) <= len(own):
                continue
            of_rule, other = self.words.of(rule.text), self.vectors.get(rule.rule_id)
            shared = sum(w * of_rule.get(t, 0.0) for _, terms in reached for t, w in terms.items()) / len(reached)
            if shared < MIN_SHARED_TOGETHER or other is None:
                continue
            cosines = (sum(a * b for a, b in zip(v, other, strict=True)) for v, _ in reached if v is not None)
            like = shared + sum(cosines) / len(reached)
            if like > likest:
                best, likest = rule, like
        return best


def _objection(event: FrictionEvent, vector: Sequence[float] | None) -> float:
    """How likely it is that something was not done as the user wants it: a logit."""
    weights = objections.load(objections.LEXICAL if vector is None else objections.ENCODED)
    return weights.logit(event.text, vector) + OWNED * event.is_owned + CUED * _corrects(event)


def _object_together(members: Sequence[FrictionEvent], objection: Mapping[str, float], least: float) -> bool:
    """Whether they span sessions and say together that something was wrong: one weak sign is none, several are. Of one
    sentence with another thing in it each time, which is how the same work is asked for, some must say so by more."""
    if len({m.session_id for m in members}) < MIN_SESSIONS:
        return False
    likely = fmean(objection[m.event_id] for m in members)
    certain = fmean(m.is_owned or _corrects(m) for m in members)
    is_plain = likely >= SURE_BY_WORDS and not mostly_of_one_frame([m.text for m in members])
    return likely >= least and (certain >= CERTAIN_SHARE or is_plain)


def _are_objections(members: Sequence[FrictionEvent], objection: Mapping[str, float]) -> bool:
    """Whether together they are, and two sessions have one each: no single one carries the others."""
    alone = {m.session_id for m in members if objection[m.event_id] >= ALONE}
    return len(alone) >= MIN_SESSIONS and _object_together(members, objection, SURE)


def _corrects(event: FrictionEvent) -> bool:
    """Whether it says so by a cue: a rule or a wish alone may be of any new work, and "who still uses it?" asks."""
    if is_question(event.text):
        return False
    foreign = foreign_cues(event.text)
    cue = foreign.correction if foreign else cues.CORRECTION
    return cue.search(event.text) is not None or bool(retracted_names(event.text)) or bool(AGAIN.search(event.text))


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
