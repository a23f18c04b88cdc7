"""Comparison of two sentences: whether the newer one repeats, replaces or contradicts the older one.

It compares words, not meaning, and answers None in doubt. Vectors are compared if both sentences have one and are in a
script that the model knows; in languages other than English, sentences without a common word are never the same. Who
may end what (users, projects, kinds) is up to the callers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, NamedTuple

from memory_pipeline.text.embedding_models import MINILM_COSINES
from memory_pipeline.text.kinds import NORMATIVE, is_question, kind_of_user
from memory_pipeline.text.languages.identify import ENGLISH, cues_of, english, language_of
from memory_pipeline.text.lines import supposes
from memory_pipeline.text.phrases import Cues, word_list
from memory_pipeline.text.similarity import (
    CJK,
    carries_content,
    content_words,
    content_words_in_order,
    is_latin,
    overlap,
    words,
)
from memory_pipeline.text.specifics import differ_in_names, differ_in_numbers, specifics

Relation = Literal["same", "replaces", "contradicts"]
SAME: Relation = "same"
REPLACES: Relation = "replaces"
CONTRADICTS: Relation = "contradicts"


@dataclass(frozen=True)
class Likeness:
    """Minimum similarity of two sentences with the same meaning."""

    overlap: float
    """Minimum overlap of the content words (Jaccard)."""
    cosine: float = math.inf
    """Minimum cosine of the vectors; infinite if vectors are not compared."""
    same_names: bool = False
    """Whether both must have the very same names and numbers."""


OBSERVED = Likeness(0.5, MINILM_COSINES.observed)
"""For observations of several days that become one line. Paraphrased rules have a higher cosine, merely related rules a
lower one."""
OFFERED = Likeness(0.5, MINILM_COSINES.offered)
"""For a line and earlier proposals or lines of MEMORY.md: the reviewer is asked about only one of two similar lines."""
AGAIN = Likeness(0.6)
"""For nearly identical wording: corrections of two sessions, and a line of a memory file compared with a sentence of a
session."""
EQUAL = Likeness(0.8)
"""For texts that differ in a word: used for text that a user wrote or has seen."""
WRITTEN_TWICE_BY_OBSERVER = Likeness(0.9, same_names=True)
WRITTEN_TWICE_BY_REFLECTOR = Likeness(0.6, same_names=True)
"""For two lines in a model's answers about one window, and about one section of a day."""

MAX_NAME_WORDS = 4
"""Maximum words of the name of a thing that is given up; a longer phrase is a clause."""
MAX_WORDS_BESIDE = 2
"""Maximum other content words of a sentence that is about that thing alone."""
MIN_SHARE = 0.5
"""Minimum share of the older sentence's content words in a clause that retracts it, as the rest is lost with it."""
MIN_STEM = 3
"""Minimum letters of a stem."""


def relation(
    newer: str, older: str, like: Likeness = OFFERED, *, cosine: float | None = None, cautious: bool = False
) -> Relation | None:
    """The effect of the newer sentence on the older one.

    `cosine` is that of their vectors, if both have one. With `cautious`, refusing anything that the other sentence says
    is a contradiction: for lines of different projects, and where a wrong "same" would lose a user's words.
    """
    new, old = statement(newer), statement(older)
    if _replaces(new, old):
        return REPLACES
    if (
        _drops_kept_thing(new, old)
        or _drops_kept_thing(old, new)
        or (cautious and (_refuses(new, old) or _refuses(old, new)))
    ):
        return CONTRADICTS
    return SAME if _are_alike(new, old, like, cosine) and not _differ_in_specifics(newer, older) else None


def is_same(
    newer: str, older: str, like: Likeness = OFFERED, *, cosine: float | None = None, cautious: bool = False
) -> bool:
    """Whether the relation is `same`. Cheap for many pairs, as words alone decide most of them."""
    if not _are_alike(statement(newer), statement(older), like, cosine):
        return False
    return relation(newer, older, like, cosine=cosine, cautious=cautious) == SAME


def replaces(newer: str, older: str) -> bool:
    """Whether the relation is `replaces`; cheap if the newer sentence neither gives up nor wants anything."""
    return _replaces(statement(newer), statement(older))


def differs(newer: str, older: str, *, cautious: bool = False) -> bool:
    """Whether the two contradict each other or have different names and numbers, however similar they are."""
    return _differ_in_specifics(newer, older) or relation(newer, older, cautious=cautious) in (REPLACES, CONTRADICTS)


def _differ_in_specifics(one: str, other: str) -> bool:
    return differ_in_numbers(one, other) or differ_in_names(one, other)


def gives_up(text: str) -> tuple[frozenset[str], ...]:
    """The things that a text gives up, each as the set of its stems. Only such a text can replace another one."""
    return statement(text).given_up


def says_all(newer: Sequence[str], older: Sequence[str]) -> bool:
    """Whether the newer text contains all words of the older one in order, so that negation, objects and numbers are
    preserved in any language."""
    left = iter(newer)
    return all(any(word == other for other in left) for word in older)


def groups(
    ids: Sequence[str],
    texts: Mapping[str, str],
    vectors: Mapping[str, Sequence[float]],
    like: Likeness,
    cautious: Callable[[str, str], bool] = lambda one, other: False,
) -> list[list[str]]:
    """Put each id into the first group whose first member says the same, else into a new one.

    The order of `ids` determines the leaders, so the best should come first. Ids are compared only with the leader of a
    group, as chains of neighbours drift to other topics. `cautious` says for an id and a leader whether to compare them
    with `cautious`.
    """
    import numpy as np  # imported here, as a command that groups nothing does not need it

    found: list[list[str]] = []
    unit = {i: np.asarray(vectors[i], dtype=np.float32) for i in ids if i in vectors and is_latin(texts[i])}
    for i in ids:
        for group in found:
            leader = group[0]
            cosine = float(unit[i] @ unit[leader]) if i in unit and leader in unit else None
            if is_same(texts[i], texts[leader], like, cosine=cosine, cautious=cautious(i, leader)):
                group.append(i)
                break
        else:
            found.append([i])
    return found


def stem(word: str) -> str:
    """The stem of a word, roughly: "tag", "tags", "tagged" and "tagging" have the same one, and so have "image" and
    "images"."""
    root = _ENDING.sub("", word) if word.isalpha() and len(word) > MIN_STEM else word
    is_doubled = root != word and len(root) >= MIN_STEM and root[-1] == root[-2]
    return root[:-1] if is_doubled else root


class Clause(NamedTuple):
    """A part of a sentence with at most one refusal, and without words for the moment only."""

    stems: tuple[str, ...]
    """The stems of the clause's subject, in order."""
    ends: tuple[bool, ...]
    """For each stem, whether a phrase ends there: no other content word follows directly."""
    refuses: bool
    wants: bool
    """Whether the clause states a wish and not a fact."""


class Statement:
    """A text and its properties for comparison, each computed on first use."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = content_words(text) or frozenset({text})
        """A text without words counts as one word."""

    @cached_property
    def cues(self) -> Cues:
        return cues_of(self.text)

    @cached_property
    def is_english(self) -> bool:
        return language_of(self.text) == ENGLISH

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(specifics(self.text))

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(map(stem, self.words))

    @cached_property
    def given_up(self) -> tuple[frozenset[str], ...]:
        return tuple(dict.fromkeys(frozenset(map(stem, named)) for named in _dropped_things(self.text, self.cues)))

    @cached_property
    def denied(self) -> frozenset[str]:
        """The stems of the things that it drops or refuses."""
        found = (word for match in _refusals(self.text, self.cues) for word in content_words(match["words"]))
        return frozenset(map(stem, found)).union(*self.given_up)

    @cached_property
    def kept(self) -> frozenset[str]:
        """The stems of the things that it does not give up or refuse."""
        return self.stems - self.denied - _VERB_STEMS

    @cached_property
    def about(self) -> tuple[str, ...]:
        """The stems of its subject, in order."""
        return _subject_stems(self.text)

    @cached_property
    def subject(self) -> frozenset[str]:
        """The same as a set; a text that retracts this one shares at least one of them."""
        return frozenset(self.about)

    @cached_property
    def is_open(self) -> bool:
        """Whether it is a question, which neither prescribes nor retracts anything."""
        return is_question(self.text)

    @cached_property
    def doubts(self) -> bool:
        return supposes(self.text) or bool(self.cues.doubt.search(self.text))

    @cached_property
    def is_lasting(self) -> bool:
        """Whether it applies from now on, so that a momentary request does not end it."""
        return bool(self.cues.lasting.search(self.text))

    @cached_property
    def states_will(self) -> bool:
        """Whether it states the speaker's present will, which ends even a lasting rule."""
        is_will = self.cues.turns.search(self.text) or self.cues.wishes.search(self.text)
        return bool(is_will) or kind_of_user(self.text) in ("preference", "decision")

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        return tuple(_clauses(self.text, self.cues))


@lru_cache(maxsize=50_000)  # a day's sentences are each compared with thousands of others
def statement(text: str) -> Statement:
    """The cached `Statement` of a text."""
    return Statement(text)


def _are_alike(new: Statement, old: Statement, like: Likeness, cosine: float | None) -> bool:
    if like.same_names and new.names != old.names:
        return False
    if cosine is None:
        return overlap(new.words, old.words) >= like.overlap
    is_english = new.is_english and old.is_english
    return cosine >= like.cosine and (is_english or not new.words.isdisjoint(old.words))


def _replaces(new: Statement, old: Statement) -> bool:
    if not (new.given_up or any(clause.wants for clause in new.clauses)) or new.is_open or new.doubts:
        return False
    return _drops(new, old) or _retracts(new, old)


def _drops(new: Statement, old: Statement) -> bool:
    """Whether the older sentence prescribes a thing that the newer one gives up, and is about little that the newer one
    is not about."""
    for named in new.given_up:
        if named <= old.stems and not named & old.denied:
            beside = old.stems - named - _VERB_STEMS
            if len(beside) <= MAX_WORDS_BESIDE or 2 * len(beside & new.stems) >= len(beside):
                return True
    return False


def _retracts(new: Statement, old: Statement) -> bool:
    """Whether the newer sentence states the same wish as the older one with the opposite sign.

    Every word of the later clause occurs in the earlier one, in the same order and up to the end of a phrase, exactly
    one of the two is a refusal, and the earlier sentence says little else. A question, supposition, doubt or momentary
    request retracts nothing, and neither does a report.
    """
    if new.subject.isdisjoint(old.subject) or new.cues is not old.cues:
        return False
    if old.is_open or (old.is_lasting and not (new.is_lasting or new.states_will)):
        return False
    size = len(old.about)
    return any(
        after.wants and after.refuses != before.refuses and _is_within(after, before, size)
        for after in new.clauses
        for before in old.clauses
    )


def _is_within(later: Clause, earlier: Clause, size: int) -> bool:
    """Whether the later clause has the subject of the earlier one, which is most of the older sentence."""
    at = -1
    for word in later.stems:
        try:
            at = earlier.stems.index(word, at + 1)
        except ValueError:
            return False
    return at >= 0 and earlier.ends[at] and len(later.stems) >= MIN_SHARE * size


def _drops_kept_thing(one: Statement, other: Statement) -> bool:
    """Whether one sentence gives up something that the other keeps."""
    return any(not named.isdisjoint(other.kept) for named in one.given_up)


def _refuses(one: Statement, other: Statement) -> bool:
    return not one.denied.isdisjoint(other.kept)


def _dropped_things(text: str, cues: Cues) -> Iterator[frozenset[str]]:
    for pattern in cues.gives_up:
        for match in pattern.finditer(text):
            if cues is english():
                named = _words_without_verbs(_END_OF_NAME.split(match["old"].strip(), maxsplit=1)[0])
            else:  # the end of a name is known in English only: its first word
                named = _words_without_verbs(_END_OF_PHRASE.split(match["old"].strip(), maxsplit=1)[0])[:1]
            if 0 < len(named) <= MAX_NAME_WORDS:
                yield frozenset(named)


def _words_without_verbs(text: str) -> list[str]:
    """The content words of a text without verbs like "use"."""
    return [word for word in words(text) if carries_content(word) and word not in _VERBS]


def _refusals(text: str, cues: Cues) -> list[re.Match[str]]:
    """The matches of refused things, as the group `words`; of two that begin at the same position the first."""
    found = (match for pattern in cues.refuses for match in pattern.finditer(text))
    return list({match.start(): match for match in found}.values())


def _clauses(text: str, cues: Cues) -> Iterator[Clause]:
    for part in _END_OF_CLAUSE.split(text):
        clause = part.strip()
        refusals = _refusals(clause, cues)
        if len(refusals) > 1 or cues.passing.search(clause):  # a double negation is ambiguous
            continue
        bare = clause
        for found in refusals:  # without the refusing word
            start, end = found.span("words")
            bare = f"{clause[: found.start()]} {clause[start:end]} {clause[found.end() :]}"
        about = _subject_stems(bare)
        if about:
            is_any = cues is not english() and not CJK.search(bare)  # the words before it name the thing
            ends = (True,) * len(about) if is_any else _phrase_ends(bare, about)
            yield Clause(about, ends, bool(refusals), _wants(clause, text, cues))


def _wants(clause: str, text: str, cues: Cues) -> bool:
    if cues.wishes.search(clause):
        return True
    if clause.casefold().startswith("no "):  # "no errors" may be news
        return len(content_words(clause)) > 2 or bool(cues.turns.search(text))
    return kind_of_user(clause) in NORMATIVE or bool(cues is not english() and cues.momentary.search(clause))


def _subject_stems(text: str) -> tuple[str, ...]:
    return tuple(s for word in content_words_in_order(text) if (s := stem(word)) not in _EMPTY)


def _phrase_ends(bare: str, about: Sequence[str]) -> tuple[bool, ...]:
    """For each of these words, whether a phrase ends after it."""
    every = [stem(word) for word in words(bare)]
    ends, at = [], 0
    for word in about:
        at = every.index(word, at) + 1 if word in every[at:] else at
        ends.append(at >= len(every) or every[at] not in about)
    return tuple(ends)


_ENDING = re.compile(r"(?:ing|ed|es|e|s)$")
_END_OF_NAME = re.compile(
    r"[,.;:!()]|\s(?:for|in|on|at|to|when|while|because|since|as|if|unless|with|and|or|but|any)\b.*|(?:^|\s)by\b.*"
)
_END_OF_PHRASE = re.compile(r"[,;:!?()，。；！？、]|\.(?=\s|$)")
_END_OF_CLAUSE = re.compile(r"[,;:!?()\n，。；！？、—–]|\.(?=\s|$)|\s-\s|\b(?:but|because|since|so that)\b", re.I)
_VERBS = word_list("using")
_VERB_STEMS = frozenset(map(stem, _VERBS))
_EMPTY = frozenset(map(stem, word_list("wanting")))
"""Stems of words that express a wish, and not its object."""
