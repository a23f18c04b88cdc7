"""A line of a period, and how lines become fewer and shorter. Needs no model, and nothing is in it that was not there.

Every fact stays a line of its own, as does every narrative, and words are chosen, not lines: a line that is left out
cannot be found at all, one that keeps its rare words can. Facts that share a line hide each other
(`benchmarks/distillation.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import fmean
from typing import NamedTuple

from memory_pipeline.text.priorities import HIGH
from memory_pipeline.text.sameness import DISTILLED, groups
from memory_pipeline.text.similarity import words

NARRATIVE = "narrative"
HIGH_COUNTS = 1.25
"""How much more a word counts in a high line. With 1 a week of three conversations of LoCoMo loses a ninth of the
questions about highs and one of coding sessions a third, with 1.25 a twentieth and a fiftieth; of what LoCoMo's own
questions ask for it costs nothing."""
FIRST = 2
"""Words that say something together. Those of each high line go before all others: without that, a week of coding
sessions loses a sixth of its highs, a month a seventh. Another line keeps as many or none."""
ONLY_TOLD = 0.001
"""How much a word of a narrative counts: it quotes the facts, so it takes what room they leave."""
BY_LENGTH = 0.3
"""Exponent of a word's length: a week has too few words to tell by counting which are rare, and long ones mostly
are."""
TURNS = frozenset(
    """
    not no never none nothing without instead only unless except cannot can't don't doesn't didn't isn't aren't
    wasn't won't wouldn't shouldn't mustn't haven't hasn't nicht kein keine nie ohne statt nur
    """.split()  # noqa: SIM905 - a list of words reads better as text
)
"""Words that turn what is said into its opposite: a line keeps them. English and German."""


@dataclass(frozen=True, slots=True)
class Line:
    """`sources` are ids of rows of the level below, the one that gave the words first."""

    text: str
    kind: str
    priority: str
    sources: tuple[str, ...]
    first_seen: datetime
    last_seen: datetime


def count_words(text: str) -> int:
    return len(words(text))


def distil(lines: Sequence[Line], room: int, rarity: Mapping[str, float], verbatim: float = 0.0) -> list[Line]:
    """The lines within so many words, oldest first: highs that say the same are one, then the rarest words are kept.

    Highs stay as they are if they take no more than the share `verbatim` of the room, else they are shortened like the
    rest. `rarity` is that of each word; one that it does not know is left out. What is rare is decided for all lines at
    once, so that a word stays wherever it stands: a line that lost it would else be passed over for one that kept it.
    """
    highs = list(_merged([line for line in lines if line.priority == HIGH]))
    faded = _sorted(line for line in lines if line.priority != HIGH)
    taken = sum(count_words(line.text) for line in highs)
    if taken <= verbatim * room:
        kept = [*highs, *_shortened(faded, room - taken, rarity)]
    else:
        kept = _shortened([*highs, *faded], room, rarity)
    return _sorted(kept)


def _sorted(lines: Iterable[Line]) -> list[Line]:
    return sorted(lines, key=lambda line: (line.first_seen, line.sources))


def _merged(highs: Sequence[Line]) -> Iterator[Line]:
    """Near-duplicates as one line with the newest words."""
    newest = sorted(highs, key=lambda line: (-line.last_seen.timestamp(), line.sources))
    by_id = {line.sources[0]: line for line in newest}
    texts = {i: line.text for i, line in by_id.items()}
    for ids in groups(list(by_id), texts, {}, DISTILLED):
        members = [by_id[i] for i in ids]
        yield replace(
            members[0],
            sources=tuple(source for member in members for source in member.sources),
            first_seen=min(member.first_seen for member in members),
        )


def _shortened(lines: Sequence[Line], room: int, rarity: Mapping[str, float]) -> list[Line]:
    """The lines with the words that fit, in their order; a line that keeps none is left out."""
    kept: dict[int, set[int]] = {}
    for choice in sorted(each for number, line in enumerate(lines) for each in _choices(line, number, rarity)):
        if choice.words <= room and choice.is_first is (choice.line not in kept):
            room -= choice.words
            kept.setdefault(choice.line, set()).update(choice.places)
    return [
        replace(lines[number], text=" ".join(p for i, p in enumerate(lines[number].text.split()) if i in places))
        for number, places in sorted(kept.items())
    ]


class _Choice(NamedTuple):
    """Pieces of a line that may be kept; the least goes first.

    What counts the same is in the order of the words, so that also of these a word stays in all lines or in none.
    """

    is_late: bool
    """Not the first of a high line."""
    value: float
    """What its words count on average, negative: a path is kept whole, and "I've" does not count as a rare word."""
    word: str
    line: int
    is_first: bool
    """Without it, nothing of the line is kept."""
    places: tuple[int, ...]
    words: int
    """What it costs: a piece between two spaces may be several."""


def _choices(line: Line, number: int, rarity: Mapping[str, float]) -> list[_Choice]:
    """All that may be kept of a line, each word once; none if too little in it is known.

    The first are one choice, with what turns them: without it, they would say the opposite.
    """
    is_high, counts = line.priority == HIGH, HIGH_COUNTS if line.priority == HIGH else 1.0
    if line.kind == NARRATIVE:
        counts = ONLY_TOLD
    seen: set[str] = set()
    found, turning = [], []
    for place, piece in enumerate(line.text.split()):
        here = words(piece)
        if not here or seen.issuperset(here):
            continue
        seen.update(here)
        value = counts * fmean(rarity.get(word, 0.0) * math.pow(len(word), BY_LENGTH) for word in here)
        choice = _Choice(True, -value, min(here), number, False, (place,), len(here))
        if _turns(piece):
            turning.append(choice)
        elif value:
            found.append(choice)
    found.sort()
    if len(found) < (1 if is_high else FIRST):
        return []
    first = [*found[:FIRST], *turning]
    together = found[0]._replace(
        is_late=not is_high,
        value=sum(choice.value for choice in found[:FIRST]) / FIRST,
        is_first=True,
        places=tuple(place for choice in first for place in choice.places),
        words=sum(choice.words for choice in first),
    )
    return [together, *found[FIRST:]]


def _turns(piece: str) -> bool:
    return piece.lower().strip(".,;:!?\"'()*`").replace("’", "'") in TURNS
