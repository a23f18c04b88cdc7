"""Claims that the session takes back later. They are not kept as true; what takes them back is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory_pipeline.observations import cues
from memory_pipeline.observations.features import Window
from memory_pipeline.observations.kinds import is_question, kind_of_claim, kind_of_user
from memory_pipeline.observations.units import Unit
from memory_pipeline.text.sentences import sentences
from memory_pipeline.text.similarity import content_words

CLAIMS = ("root_cause", "statement", "decision")
"""Kinds of the model's words that a retraction takes back."""
LAID_DOWN = ("rule", "preference", "decision", "correction")
"""Kinds of a person's words that they can replace by others."""
_WEAK = content_words(
    "use using used let let's go going with make made do done don't no not yes ok actually instead rather than back "
    "after all always never only now one thing again really still mind want need change changed keep it's it "
    "this that them in on of to with"
)
"""Words that two sentences share whatever they are about."""


@dataclass(frozen=True, slots=True)
class Reversal:
    """A sentence that takes something back: `messages[position]` from `start` to `end`."""

    position: int
    start: int
    end: int
    words: frozenset[str]
    """What it is about."""
    retracts: bool = False
    """It says that something was wrong."""
    unsays: int = -1
    """Position of the person's message that it takes back as a whole."""
    replaces: bool = False
    """It lays down something else."""
    gone: frozenset[str] = frozenset()
    """X of "instead of X"."""


def reversed_units(found: Sequence[Unit], window: Window) -> dict[int, Reversal]:
    """For each unit that is taken back later, by its number: what takes it back."""
    by_word: dict[str, list[Reversal]] = defaultdict(list)
    unsaid: dict[int, Reversal] = {}
    for reversal in _reversals(window):
        unsaid.setdefault(reversal.unsays, reversal)
        for word in reversal.words:
            by_word[word].append(reversal)
    taken_back = {}
    for i, unit in enumerate(found):
        words = content_words(unit.text)
        shared = Counter(r for w in words for r in by_word.get(w, ()) if r.position > unit.position)
        by = next((r for r, count in shared.items() if _takes_back(r, unit, words, count)), None)
        if by is None and unit.form not in ("said", "paste"):
            by = unsaid.get(unit.position)
        if by:
            taken_back[i] = by
    return taken_back


def reversing_unit(found: Sequence[Unit], reversal: Reversal) -> int | None:
    """The number of the smallest unit that holds the sentence."""
    holding = [
        (unit.end - unit.start, i)
        for i, unit in enumerate(found)
        if unit.position == reversal.position and unit.start <= reversal.start and reversal.end <= unit.end
    ]
    return min(holding)[1] if holding else None


def _reversals(window: Window) -> Iterator[Reversal]:
    before = -1
    for position, message in enumerate(window.messages):
        if not window.is_english.get(message.role):
            continue
        is_user, own = message.role == "user", message.own
        found = list(sentences(own)) if _may_reverse(own, is_user) else []
        for i, sentence in enumerate(found):
            words = own[sentence.start : sentence.end]
            if not _may_reverse(words, is_user) or is_question(words):
                continue
            following = found[i + 1] if i + 1 < len(found) else sentence
            yield Reversal(
                position,
                sentence.start,
                sentence.end,
                content_words(own[sentence.start : following.end]) - _WEAK,
                retracts=bool(cues.RETRACTION.search(words)),
                unsays=before if is_user and cues.UNSAID.search(words) else -1,
                replaces=is_user and kind_of_user(words) in LAID_DOWN and bool(cues.REPLACING.search(words)),
                gone=frozenset(w for m in cues.IN_PLACE_OF.finditer(words) for w in content_words(m[1])) - _WEAK,
            )
        before = position if is_user and own.strip() else before


def _may_reverse(words: str, is_user: bool) -> bool:
    mine = (cues.RETRACTION, cues.UNSAID, cues.REPLACING) if is_user else (cues.RETRACTION,)
    return any(cue.search(words) for cue in mine)


def _takes_back(reversal: Reversal, unit: Unit, words: frozenset[str], shared: int) -> bool:
    if unit.form == "paste":
        return False
    if unit.form == "said":
        is_claim = kind_of_claim(unit.text) in CLAIMS
        is_about = shared >= len(words) // 5 or 2 * shared >= len(reversal.words)
        return reversal.retracts and is_claim and shared >= 2 and is_about
    if not reversal.replaces or (unit.form != "answer" and kind_of_user(unit.text) not in LAID_DOWN):
        return False
    if not reversal.gone:
        return True
    is_against = any(reversal.gone & content_words(m[1]) for m in cues.IN_PLACE_OF.finditer(unit.text))
    return bool(reversal.gone & words) and not is_against
