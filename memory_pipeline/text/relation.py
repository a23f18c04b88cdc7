"""The one judge of two sentences: whether the newer one repeats, replaces or contradicts the older one.

It knows words and no meaning, and answers None in doubt. Vectors are compared where both sentences have one and are in
a script that the model knows; in another language than English, sentences without a common word never say the same.
Who may end what (users, projects, kinds) is a matter of the callers.
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
from memory_pipeline.text.languages.cues import cues_of, english
from memory_pipeline.text.languages.identify import ENGLISH, language_of
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
from memory_pipeline.text.specifics import differ_in_numbers, specifics

Relation = Literal["same", "replaces", "contradicts"]
SAME: Relation = "same"
REPLACES: Relation = "replaces"
CONTRADICTS: Relation = "contradicts"


@dataclass(frozen=True)
class Likeness:
    """The similarity from which two sentences say the same."""

    overlap: float
    """Shared content words per content word of both."""
    cosine: float = math.inf
    """The minimum cosine of their vectors; infinite if no vectors are compared."""
    same_names: bool = False
    """Whether both must have the very same names and numbers."""


OBSERVED = Likeness(0.5, MINILM_COSINES.observed)
"""Observations of several days, which become one line. Paraphrased rules lie above this cosine, neighbours below."""
OFFERED = Likeness(0.5, MINILM_COSINES.offered)
"""A line, and what was offered before or stands in MEMORY.md: of two that are nearly the same, the reviewer is asked
about one."""
AGAIN = Likeness(0.6)
"""Nearly the same words: corrections of two sessions, and a line of a memory file beside a sentence that was said."""
EQUAL = Likeness(0.8)
"""The same but for a word: asked about words that a user wrote or has seen."""
WRITTEN_TWICE_BY_OBSERVER = Likeness(0.9, same_names=True)
WRITTEN_TWICE_BY_REFLECTOR = Likeness(0.6, same_names=True)
"""Two lines in a model's answers about one window, and about one section of a day."""

MAX_NAME_WORDS = 4
"""Maximum words of a thing that is given up; a longer phrase is a clause and names nothing."""
MAX_WORDS_BESIDE = 2
"""Words beside that thing with which a sentence is still about it alone."""
MIN_SHARE = 0.5
"""Share of the older sentence's content words that a clause which takes it back must have: the rest is lost with it."""
MIN_STEM = 3
"""Letters of a word that is not shortened."""


def relation(
    newer: str, older: str, like: Likeness = OFFERED, *, cosine: float | None = None, cautious: bool = False
) -> Relation | None:
    """The effect of the newer sentence on the older one.

    `cosine` is that of their vectors, where both have one. With `cautious`, to refuse anything that the other sentence
    says is to contradict it: for lines of different projects, and where a wrong "same" would lose a user's words.
    """
    new, old = statement(newer), statement(older)
    if _replaces(new, old):
        return REPLACES
    if _breaks_with(new, old) or _breaks_with(old, new) or (cautious and (_refuses(new, old) or _refuses(old, new))):
        return CONTRADICTS
    return SAME if _are_alike(new, old, like, cosine) and not differ_in_numbers(newer, older) else None


def is_same(
    newer: str, older: str, like: Likeness = OFFERED, *, cosine: float | None = None, cautious: bool = False
) -> bool:
    """Whether the relation is `same`. Most pairs are told apart by their words alone, so this is cheap for many."""
    if not _are_alike(statement(newer), statement(older), like, cosine):
        return False
    return relation(newer, older, like, cosine=cosine, cautious=cautious) == SAME


def replaces(newer: str, older: str) -> bool:
    """Whether the relation is `replaces`; cheap where the newer sentence neither gives up nor wants anything."""
    return _replaces(statement(newer), statement(older))


def differs(newer: str, older: str, *, cautious: bool = False) -> bool:
    """Whether the two say different things, however alike they are."""
    return differ_in_numbers(newer, older) or relation(newer, older, cautious=cautious) in (REPLACES, CONTRADICTS)


def gives_up(text: str) -> tuple[frozenset[str], ...]:
    """The things that a text gives up, each as its stems. Only such a text can replace another one, whatever else it
    says."""
    return statement(text).given_up


def says_all(newer: Sequence[str], older: Sequence[str]) -> bool:
    """Whether all words of the older text are in the newer one, in order: its negation, objects and numbers are
    preserved, in any language."""
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

    The order of `ids` decides who leads: give the best first. Comparing with the leader only keeps a group about one
    thing; chains of neighbours drift. `cautious` tells for an id and a leader whether to judge them so.
    """
    import numpy as np  # not on import: a command that groups nothing need not wait for it

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
    """Crude: "tag", "tags", "tagged" and "tagging" are one word, and so are "image" and "images"."""
    root = _ENDING.sub("", word) if word.isalpha() and len(word) > MIN_STEM else word
    is_doubled = root != word and len(root) >= MIN_STEM and root[-1] == root[-2]
    return root[:-1] if is_doubled else root


class Clause(NamedTuple):
    """A part of a sentence with at most one refusal, and without words for the moment only."""

    stems: tuple[str, ...]
    """The stems of its subject, in order."""
    ends: tuple[bool, ...]
    """Whether a phrase ends with each of these: no other content word follows it at once."""
    refuses: bool
    wants: bool
    """Whether it states a wish and not a fact."""


class Statement:
    """A text with what is compared of it, each worked out once and when it is asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = content_words(text) or frozenset({text})
        """A text without any word is a word itself."""

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
        return tuple(dict.fromkeys(frozenset(map(stem, named)) for named in _named_as_over(self.text, self.cues)))

    @cached_property
    def denied(self) -> frozenset[str]:
        """The stems of what it gives up or refuses."""
        found = (word for match in _refusals(self.text, self.cues) for word in content_words(match["words"]))
        return frozenset(map(stem, found)).union(*self.given_up)

    @cached_property
    def held(self) -> frozenset[str]:
        """The stems of the things that it keeps."""
        return self.stems - self.denied - _VERB_STEMS

    @cached_property
    def about(self) -> tuple[str, ...]:
        """The stems of what it is about, in order."""
        return _about(self.text)

    @cached_property
    def subject(self) -> frozenset[str]:
        """The same without an order; a text that takes this one back has one of them at least."""
        return frozenset(self.about)

    @cached_property
    def is_open(self) -> bool:
        """Whether it asks: then it neither sets anything nor takes it back."""
        return is_question(self.text)

    @cached_property
    def doubts(self) -> bool:
        return supposes(self.text) or bool(self.cues.doubt.search(self.text))

    @cached_property
    def is_lasting(self) -> bool:
        """Whether it is to hold from now on, which a request of the moment does not end."""
        return bool(self.cues.lasting.search(self.text))

    @cached_property
    def turns(self) -> bool:
        """Whether it says that this is the speaker's will now, which ends also what was to hold for good."""
        is_will = self.cues.turns.search(self.text) or self.cues.wishes.search(self.text)
        return bool(is_will) or kind_of_user(self.text) in ("preference", "decision")

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        return tuple(_clauses(self.text, self.cues))


@lru_cache(maxsize=50_000)  # each of a day's sentences is compared with thousands of others
def statement(text: str) -> Statement:
    """The text as it is compared."""
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
    return _gives_up(new, old) or _takes_back(new, old)


def _gives_up(new: Statement, old: Statement) -> bool:
    """Whether the older sentence names a thing that the newer one gives up, is for it, and is about little else than
    what the newer one is about too."""
    for named in new.given_up:
        if named <= old.stems and not named & old.denied:
            beside = old.stems - named - _VERB_STEMS
            if len(beside) <= MAX_WORDS_BESIDE or 2 * len(beside & new.stems) >= len(beside):
                return True
    return False


def _takes_back(new: Statement, old: Statement) -> bool:
    """Whether the newer sentence wants the same thing as the older one with the opposite sign.

    Every word of the later clause stands in the earlier one, in the same order and up to the end of a phrase, one of
    the two refuses it and the other does not, and the earlier sentence says little else. What is asked, supposed,
    doubted or meant for the moment takes nothing back, and neither does a report of how things are.
    """
    if new.subject.isdisjoint(old.subject) or new.cues is not old.cues:
        return False
    if old.is_open or (old.is_lasting and not (new.is_lasting or new.turns)):
        return False
    size = len(old.about)
    return any(
        after.wants and after.refuses != before.refuses and _is_within(after, before, size)
        for after in new.clauses
        for before in old.clauses
    )


def _is_within(later: Clause, earlier: Clause, size: int) -> bool:
    """Whether the later clause is about the earlier one's thing, and that is most of what was said."""
    at = -1
    for word in later.stems:
        try:
            at = earlier.stems.index(word, at + 1)
        except ValueError:
            return False
    return at >= 0 and earlier.ends[at] and len(later.stems) >= MIN_SHARE * size


def _breaks_with(one: Statement, other: Statement) -> bool:
    """Whether one gives up something that the other keeps."""
    return any(not named.isdisjoint(other.held) for named in one.given_up)


def _refuses(one: Statement, other: Statement) -> bool:
    return not one.denied.isdisjoint(other.held)


def _named_as_over(text: str, cues: Cues) -> Iterator[frozenset[str]]:
    for pattern in cues.gives_up:
        for match in pattern.finditer(text):
            if cues is english():
                named = _naming(_END_OF_NAME.split(match["old"].strip(), maxsplit=1)[0])
            else:  # where a name ends is known in English only: its first word
                named = _naming(_END_OF_PHRASE.split(match["old"].strip(), maxsplit=1)[0])[:1]
            if 0 < len(named) <= MAX_NAME_WORDS:
                yield frozenset(named)


def _naming(text: str) -> list[str]:
    """The content words of a text without verbs of using."""
    return [word for word in words(text) if carries_content(word) and word not in _VERBS]


def _refusals(text: str, cues: Cues) -> list[re.Match[str]]:
    """The refused things, as the group `words`; of two that begin at the same place the first."""
    found = (match for pattern in cues.refuses for match in pattern.finditer(text))
    return list({match.start(): match for match in found}.values())


def _clauses(text: str, cues: Cues) -> Iterator[Clause]:
    for part in _END_OF_CLAUSE.split(text):
        clause = part.strip()
        refusals = _refusals(clause, cues)
        if len(refusals) > 1 or cues.passing.search(clause):  # a double negation may mean either
            continue
        bare = clause
        for found in refusals:  # without the word that refuses
            start, end = found.span("words")
            bare = f"{clause[: found.start()]} {clause[start:end]} {clause[found.end() :]}"
        about = _about(bare)
        if about:
            is_any = cues is not english() and not CJK.search(bare)  # a thing is called by what stands in front
            ends = (True,) * len(about) if is_any else _phrase_ends(bare, about)
            yield Clause(about, ends, bool(refusals), _wants(clause, text, cues))


def _wants(clause: str, text: str, cues: Cues) -> bool:
    if cues.wishes.search(clause):
        return True
    if clause.casefold().startswith("no "):  # "no errors" may be news
        return len(content_words(clause)) > 2 or bool(cues.turns.search(text))
    return kind_of_user(clause) in NORMATIVE or bool(cues is not english() and cues.momentary.search(clause))


def _about(text: str) -> tuple[str, ...]:
    return tuple(s for word in content_words_in_order(text) if (s := stem(word)) not in _EMPTY)


def _phrase_ends(bare: str, about: Sequence[str]) -> tuple[bool, ...]:
    """Whether the clause continues with another word or ends, for each of these words."""
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
"""Words about the manner of a wish, and not its object."""
