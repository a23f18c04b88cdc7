"""Lines of MEMORY.md, AGENTS.md and CLAUDE.md that are over: what users said since then says otherwise."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from memory_pipeline.friction import sentence_weights
from memory_pipeline.friction.about_rules import AboutRules
from memory_pipeline.friction.clustering import Matrix, Vector, terms_of
from memory_pipeline.friction.events import FrictionEvent
from memory_pipeline.friction.patterns import MAX_LINE, MEMORY_FILE, MIN_SESSIONS, STALE_MEMORY, Pattern
from memory_pipeline.friction.rules import Rule
from memory_pipeline.friction.said import ENDING, age, bare
from memory_pipeline.friction.weights import LINE_IS_OVER, weights_of
from memory_pipeline.text.kinds import is_question
from memory_pipeline.text.sentences import clip
from memory_pipeline.text.similarity import carries_content
from memory_pipeline.text.wording import asks, retracted_names, supposes, takes_place_of

NOT_KNOWN, NOT_KNOWN_ENDS = -6.0, -1.0
"""Logit of news in a language that the weights know nothing of, without and with a cue of an end."""
LEAST_NEWS, MOST_NEWS = -8.0, 4.0
"""Bounds of that logit: a single odd word must not decide alone."""
OVER = -1.5
"""Sum of the logits of the two sessions that say it most plainly, from which a line is over."""
SAYS_SO = -2.5
"""Logit of a sentence, from which its session counts."""


def news_logit(text: str, vector: Vector | None) -> float:
    """How likely the words say that something is otherwise by now: a logit."""
    if not sentence_weights.are_known(text):
        return NOT_KNOWN_ENDS if ends(text) else NOT_KNOWN
    logit = sentence_weights.load(sentence_weights.NEWS).logit(sentence_weights.parts_of(text), vector)
    return min(MOST_NEWS, max(LEAST_NEWS, logit))


def over_features(about: AboutRules, vectors: Mapping[str, Vector]) -> dict[str, Matrix]:
    """What tells whether a sentence says that a line is over, by the names of `weights.json`: a row for each sentence,
    a column for each line."""
    import numpy as np

    news = np.array([[news_logit(e.text, vectors.get(e.event_id))] for e in about.events]).reshape(-1, 1)
    ending = np.array([[float(ends(e.text))] for e in about.events]).reshape(-1, 1)
    like = np.maximum(about.vectors, about.words)
    all_of = np.ones_like(like)
    return {
        "vectors": about.vectors,
        "words": about.words,
        "like": like,
        "news": news * all_of,
        "like_and_news": news * like,
        "ending": ending * all_of,
    }


def ends(text: str) -> bool:
    """Whether it has a cue of an end, which alone proves nothing."""
    return ENDING.search(text) is not None


class Over(NamedTuple):
    """Of a line that is over, what says so since it was written, in two sessions or more, oldest first."""

    members: list[FrictionEvent]
    likely: float


def lines_over(about: AboutRules, vectors: Mapping[str, Vector]) -> dict[Rule, Over]:
    """Lines that hold no longer. A sentence speaks of one line: AGENTS.md may have hundreds, of which some are like it
    by chance."""
    if not about.events or not about.rules:
        return {}
    logits = weights_of(LINE_IS_OVER).logit(over_features(about, vectors))
    by_session: dict[Rule, dict[str, tuple[float, FrictionEvent]]] = {}
    for row, event in enumerate(about.events):
        if is_question(event.text) or asks(event.text) or supposes(event.text):
            continue
        for column in (-logits[row]).argsort(kind="stable"):
            rule, logit = about.rules[column], float(logits[row, column])
            if logit < SAYS_SO:
                break
            if rule.reaches(event):  # the likeliest line, for a sentence ends no other
                best = by_session.setdefault(rule, {})
                if not _repeats(event.text, rule.text) and logit > best.get(event.session_id, (SAYS_SO,))[0]:
                    best[event.session_id] = logit, event
                break
    found = {}
    for rule, best in by_session.items():
        ranked = sorted(best.values(), key=lambda one: (-one[0], age(one[1])))
        if len(ranked) >= MIN_SESSIONS and (total := ranked[0][0] + ranked[1][0]) >= OVER:
            found[rule] = Over(sorted((event for _, event in ranked), key=age), 1 / (1 + math.exp(-total)))
    return found


def _repeats(text: str, line: str) -> bool:
    """Whether it says the line again and nothing else, as somebody does whose line was broken."""
    return terms_of(text) <= terms_of(line) and not ends(text)


def over_since(rule: Rule, members: Sequence[FrictionEvent], *, is_plain: bool) -> Pattern:
    """The pattern of a line that is over, as its newest member says. Where nothing says plainly what took its place it
    is no fix of low risk: of lines that are told to be over by likeness one in seven still holds."""
    newest = bare(members[-1].text)
    return Pattern(
        STALE_MEMORY,
        f"{rule.name} still says “{clip(rule.text, 70)}”; you said “{clip(newest, 60)}”",
        MEMORY_FILE if rule.name == MEMORY_FILE else rule.file,
        tuple(members),
        adds=clip(newest, MAX_LINE),
        replaces=rule.text,
        low_risk=is_plain and rule.name == MEMORY_FILE and len({m.session_id for m in members}) >= MIN_SESSIONS,
    )


def stale_lines(said: Sequence[FrictionEvent], rules: Sequence[Rule]) -> dict[Rule, list[FrictionEvent]]:
    """Lines that are over by a cue, whatever the vectors: whose place something took that a user said since, if need be
    in one session; with what says so, oldest first."""
    ordered = [e for e in sorted(said, key=age) if not (asks(e.text) or supposes(e.text) or is_question(e.text))]
    named = _specific_names(rules)
    replaced = {e.event_id: retracted_names(e.text) for e in ordered}
    ending = {e.event_id: _ended_names(e.text) for e in ordered}
    over = {}
    for rule in rules:
        names, about = named[rule.rule_id], terms_of(rule.text)
        reached = [e for e in ordered if rule.reaches(e)]
        plain = [e for e in reached if replaced[e.event_id] and takes_place_of(e.text, rule.text)]
        told = [e for e in reached if e in plain or ending[e.event_id] & names or _renumbers(e.text, rule.text)]
        newer = frozenset(name for e in told for name in _names(e.text)) - names
        also = [e for e in reached if newer & _names(e.text) and len(about & terms_of(e.text)) > 0] if told else []
        members = sorted({e.event_id: e for e in (*told, *also)}.values(), key=age)
        sessions = {m.session_id for m in members}
        if not members or (len(sessions) < MIN_SESSIONS and not plain):
            continue
        over[rule] = members
    return over


_NAME = re.compile(r"(?<![\w])(?:[A-Z][\w.+-]*[\w+]|[\w.-]*\d[\w.-]*|[\w-]+[._/][\w./-]+\w|`[^`]+`)")
MAX_NAMED = 2
"""Lines that a name may stand in, to tell which of them is over."""
MAX_FACT = 16
"""Words of content of a line that states one thing; of a longer one a name is a detail."""


def _specific_names(rules: Sequence[Rule]) -> dict[str, frozenset[str]]:
    """Of each line what it names and hardly any other does."""
    named = {rule.rule_id: _names(rule.text) for rule in rules}
    seen = Counter(name for names in named.values() for name in names)
    return {
        rule.rule_id: frozenset(name for name in named[rule.rule_id] if seen[name] <= MAX_NAMED)
        if len(terms_of(rule.text)) <= MAX_FACT
        else frozenset()
        for rule in rules
    }


def _names(text: str) -> frozenset[str]:
    """What is named in a line: words with a capital within it, with a digit, and names of code. The first word of a
    sentence only where there is no other: any begins with a capital."""
    found = [(m.start(), m[0].strip("`").lower()) for m in _NAME.finditer(text) if carries_content(m[0].lower())]
    inner = frozenset(n for start, n in found if not n.isalpha() or (start > 0 and not _STARTS.search(text[:start])))
    return inner or frozenset(name for _, name in found)


_STARTS = re.compile(r"[.!?:][\"”’)]*\s+[\"“‘(]*$|^\W*$")
_CLAUSE = re.compile(r"[,;:.!?–—]\s+|\s(?:and|but|und|aber|sondern|y|pero|sino|et|mais)\s|，|。|；")


def _renumbers(text: str, line: str) -> bool:
    """Whether it says that a number of the line was so before, and names another one for the same."""
    old, found = set(_NUMBER.findall(line)), set(_NUMBER.findall(text))
    if not (old & found and found - old and terms_of(text) & terms_of(line)):
        return False
    went = _WENT.search(text)
    return went["old"] in old if went else _BEFORE.search(text) is not None


def _ended_names(text: str) -> frozenset[str]:
    """Names that the words say are over: those in a clause that denies or ends something."""
    return frozenset(
        name
        for clause in _CLAUSE.split(text)
        if ENDS.search(clause)
        for name in frozenset(m[0].strip("`").lower() for m in _NAME.finditer(clause))
    )


_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,:]\d+)*(?!\w)")
_WENT = re.compile(r"\b(?:from|von|de|du)\s+(?P<old>\d+(?:[.,:]\d+)*)\D{0,40}?\b(?:to|auf|zu|a|à)\s+\d", re.I)
"""What went from one number to another."""
_BEFORE = re.compile(
    r"\b(?:formerly|previously|used to|old|früher|vorher|bisher|alten?|antes|viej[oa]s?|anterior\w*|avant|ancien\w*)\b",
    re.I,
)
ENDS = re.compile(
    r"\b(?:no longer|any ?more|any longer|gone|closed|is off|switched off|is out|left|forget|not|no|\w+n't|dropped|"
    r"retired|moved|migrated|switched|replaced|cancel\w+|stopped|instead of|was|used to|"
    r"nicht|kein\w*|weg|raus|vergiss|umgezogen|gewechselt|abgeschaltet|gekündigt|ersetzt|statt|war|zu|"
    r"ya no|no|cerrad\w+|fuera|olvida|dej(?:amos|é|ó)|pas(?:amos|ó)|migramos|quit\w+|cancel\w+|en (?:vez|lugar) de|"
    r"se fue|era|ne|plus|fermé\w*)\b|不再|不用|停用|やめ",
    re.I,
)
"""Says in a clause that what it names is over."""
