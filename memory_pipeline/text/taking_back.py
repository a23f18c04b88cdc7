"""Whether a person takes back later what they said before: the same thing, with the opposite sign.

"i don't want to track command errors", and a minute later "sorry, yes. I want to track errors". No list of things and
no likeness: every word of the later clause stands in the earlier one, in the same order and up to the end of a phrase,
one of the two refuses it and the other does not, and the earlier one says little else. What is asked, supposed,
doubted or meant for the moment takes nothing back, and neither does a report of how things are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from memory_pipeline.text import cues
from memory_pipeline.text.kinds import NORMATIVE, is_question, kind_of_user
from memory_pipeline.text.languages.cues import foreign_cues
from memory_pipeline.text.languages.roles import Cues, any_of
from memory_pipeline.text.similarity import CJK, content_words, content_words_in_order, words
from memory_pipeline.text.wording import stem, supposes

MIN_SHARE = 0.5
"""Share of the earlier sentence's words of content that the later clause must have: the rest is lost with it."""
_END_OF_CLAUSE = re.compile(r"[,;:!?()\n，。；！？、—–]|\.(?=\s|$)|\s-\s|\b(?:but|because|since|so that)\b", re.I)
_REFUSES = any_of(
    r"\b(?:\w+n't|dont|never|not|no|stop|avoid|without|drop|forget(?: about)?|skip|scrap|cancel|leave out|no longer)\b"
)
_GIVES_UP = any_of(r"^(?:drop|forget(?: about)?|skip|scrap|cancel|leave out)\b")
"""How a clause begins that gives something up without a negation."""
_WISHES = any_of(
    r"^(?:(?:ok(?:ay)?|so|then|no|and) )*let'?s\b",
    r"\b(?:i|we)(?:'d|'ll)?(?: really| just| do| don't| dont| do not| would)? (?:want|need|like|prefer|wish)\b",
)
_TURNS = any_of(
    r"\b(?:after all|actually|any ?more|no longer|on second thoughts?|changed my mind|sorry|then|instead|forget|"
    r"scrap)\b"
)
"""The speaker turns away from what was so far."""
_STANDING = any_of(r"\b(?:always|never|must|every|each|from now on|at all times)\b")
_PASSING = any_of(
    r"\b(?:now|yet|today|tonight|this time|here|again)\b|^\W*(?:if|when|unless|until|while|whether|once)\b"
)
_EMPTY = frozenset(
    stem(word)
    for word in words(
        "want wants wanted need like love prefer wish please sorry yes yeah yep nope ok okay actually instead then "
        "after all any anymore more also too just really still ever always never use uses using used let's let lets go "
        "going don't dont doesn't about again make makes made keep get have think second thought changed mind must "
        "will möchte möchten wollen wollte bitte doch ja haben nehmen nutzen nimm veux voulons voudrais oui faut "
        "utiliser quiero queremos sí hay usar favor"
    )
)
"""Words that say how somebody wants a thing, and not what."""


class _Clause(NamedTuple):
    stems: tuple[str, ...]
    """What it is about, in order."""
    ends: tuple[bool, ...]
    """Whether a phrase ends with each of these: no other word of content follows it at once."""
    refuses: bool
    wants: bool
    """It says what is to be, and not what is."""


class _Sentence(NamedTuple):
    """What is known of one text, whatever it is compared with."""

    language: Cues | None
    asks: bool
    """It neither sets anything nor takes it back."""
    doubts: bool
    size: int
    """Words of content in it."""
    is_standing: bool
    """It is to hold from now on, which a request of the moment does not end."""
    turns: bool
    clauses: tuple[_Clause, ...]


def takes_back(text: str, older: str) -> bool:
    """Whether these words of a person's take back what the same person said before in the older ones."""
    later, earlier = _read(text), _read(older)
    if later.language is not earlier.language or later.asks or earlier.asks or later.doubts or not earlier.size:
        return False
    if earlier.is_standing and not (later.is_standing or later.turns):
        return False
    return any(
        after.wants and after.refuses != before.refuses and _is_within(after, before, earlier.size)
        for after in later.clauses
        for before in earlier.clauses
    )


@lru_cache(maxsize=20_000)  # of a long session each sentence is compared with hundreds of others
def _read(text: str) -> _Sentence:
    foreign = foreign_cues(text)
    return _Sentence(
        foreign,
        is_question(text),
        bool(supposes(text) or (foreign.doubt if foreign else cues.DOUBT).search(text)),
        len(_stems_of(text)),
        bool((foreign.rule if foreign else _STANDING).search(text)),
        _turns(text, foreign),
        tuple(_clauses(text, foreign)),
    )


def subject(text: str) -> frozenset[str]:
    """The stems of what a sentence is about, of which what takes it back has one at least."""
    return frozenset(_stems_of(text))


def _is_within(later: _Clause, earlier: _Clause, size: int) -> bool:
    """Whether the later one is about the earlier one's thing, and that is most of what was said."""
    at = -1
    for word in later.stems:
        try:
            at = earlier.stems.index(word, at + 1)
        except ValueError:
            return False
    return at >= 0 and earlier.ends[at] and len(later.stems) >= MIN_SHARE * size


def _clauses(text: str, foreign: Cues | None) -> Iterator[_Clause]:
    for part in _END_OF_CLAUSE.split(text):
        clause = part.strip()
        passing = foreign.for_now if foreign else _PASSING
        refusals = list((foreign.denies if foreign else _REFUSES).finditer(clause))
        if len(refusals) > 1 or passing.search(clause):  # a double negation may mean either
            continue
        bare = clause
        for found in refusals:  # without the word that refuses
            within = found.span("words") if foreign else (found.end(), found.end())
            bare = f"{clause[: found.start()]} {clause[within[0] : within[1]]} {clause[max(within[1], found.end()) :]}"
        about = _stems_of(bare)
        if about:
            wants = _wants(clause, text, foreign)
            is_open = foreign and not CJK.search(bare)  # what a thing is called by stands in front in English only
            ends = (True,) * len(about) if is_open else _phrase_ends(bare, about)
            yield _Clause(about, ends, bool(refusals), wants)


def _wants(clause: str, text: str, foreign: Cues | None) -> bool:
    if foreign:
        return kind_of_user(clause) in NORMATIVE or bool(foreign.momentary.search(clause))
    if _WISHES.search(clause) or _GIVES_UP.search(clause):
        return True
    first = clause.split(maxsplit=1)[0].casefold() if clause else ""
    if first == "no":  # "no errors" may be news
        return len(content_words(clause)) > 2 or bool(_TURNS.search(text))
    return kind_of_user(clause) in NORMATIVE


def _turns(text: str, foreign: Cues | None) -> bool:
    """Whether they say that it is their will now, which ends also what was to hold for good."""
    if foreign:
        return kind_of_user(text) in ("preference", "decision")
    return bool(_TURNS.search(text) or _WISHES.search(text))


def _stems_of(text: str) -> tuple[str, ...]:
    return tuple(s for word in content_words_in_order(text) if (s := stem(word)) not in _EMPTY)


def _phrase_ends(bare: str, about: Sequence[str]) -> tuple[bool, ...]:
    """For each of these words: whether the next word of the clause is another one, or there is none."""
    every = [stem(word) for word in words(bare)]
    ends, at = [], 0
    for word in about:
        at = every.index(word, at) + 1 if word in every[at:] else at
        ends.append(at >= len(every) or every[at] not in about)
    return tuple(ends)
