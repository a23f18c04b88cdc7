"""Claims that the session retracts later. They are not kept as true; what retracts them is."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from memory_pipeline.observations.quotes.features import Conversation
from memory_pipeline.observations.quotes.units import Unit
from memory_pipeline.text import cues
from memory_pipeline.text.kinds import NORMATIVE, is_question, kind_of_claim, kind_of_user
from memory_pipeline.text.sentences import sentences
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.taking_back import subject, takes_back

CLAIMS = ("root_cause", "statement", "decision")
"""Kinds of the model's words that a retraction can end."""
_WEAK = content_words(
    "use using used let let's go going with make made do done don't no not yes ok actually instead rather than back "
    "after all always never only now one thing again really still mind want need change changed keep it's it "
    "this that them in on of to with"
)
"""Words that two sentences share whatever they are about."""


@dataclass(frozen=True, slots=True, eq=False)
class Reversal:
    """A sentence that takes something back: `messages[position]` from `start` to `end`."""

    position: int
    start: int
    end: int
    words: frozenset[str]
    """What it is about."""
    retracts: bool = False
    """It says that something was wrong."""
    retracts_message: int = -1
    """Position of the user's message that it retracts as a whole."""
    replaces: bool = False
    """It sets something else in its place."""
    retracted: frozenset[str] = frozenset()
    """X of "instead of X"."""
    text: str = ""
    """Its words, where these are compared."""


def reversed_units(found: Sequence[Unit], window: Conversation) -> dict[int, Reversal]:
    """For each unit that is retracted later, by its number: what retracts it first."""
    retracting: dict[str, list[Reversal]] = defaultdict(list)
    replacing: dict[str, list[Reversal]] = defaultdict(list)
    retracted_messages: dict[int, Reversal] = {}
    for reversal in _reversals(window):
        retracted_messages.setdefault(reversal.retracts_message, reversal)
        for word in reversal.words:
            if reversal.retracts:
                retracting[word].append(reversal)
            if reversal.replaces:
                replacing[word].append(reversal)
    later = list(_standing_sentences(window))
    retracted = {}
    for i, unit in enumerate(found):
        if unit.form == "paste":
            continue
        by = _retracted(unit, retracting) if unit.form == "said" else _replaced(unit, replacing)
        if by is None and unit.form != "said":
            by = retracted_messages.get(unit.position) or _taken_back(unit, later)
        if by:
            retracted[i] = by
    return retracted


def reversing_units(found: Sequence[Unit], reversals: Iterable[Reversal]) -> dict[Reversal, int]:
    """For each of these, where there is one, the number of the smallest unit that holds its sentence."""
    by_position: dict[int, list[int]] = defaultdict(list)
    for i, unit in enumerate(found):
        by_position[unit.position].append(i)
    answer = {}
    for reversal in set(reversals):
        holding = [
            (found[i].end - found[i].start, i)
            for i in by_position[reversal.position]
            if found[i].start <= reversal.start and reversal.end <= found[i].end
        ]
        if holding:
            answer[reversal] = min(holding)[1]
    return answer


def _reversals(window: Conversation) -> Iterator[Reversal]:
    before = -1
    for position, message in enumerate(window.messages):
        if not window.is_english(message.role):
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
                retracts_message=before if is_user and cues.RETRACTED_MESSAGE.search(words) else -1,
                replaces=is_user and kind_of_user(words) in NORMATIVE and bool(cues.REPLACING.search(words)),
                retracted=frozenset(w for m in cues.IN_PLACE_OF.finditer(words) for w in content_words(m[1])) - _WEAK,
            )
        before = position if is_user and own.strip() else before


def _standing_sentences(window: Conversation) -> Iterator[Reversal]:
    """What the user says themselves, in every language, with what it is about."""
    for position, message in enumerate(window.messages):
        if message.role == "user":
            own = message.own
            for sentence in sentences(own):
                if about := subject(own[sentence.start : sentence.end]):
                    yield Reversal(
                        position, sentence.start, sentence.end, about, text=own[sentence.start : sentence.end]
                    )


def _taken_back(unit: Unit, later: Sequence[Reversal]) -> Reversal | None:
    """What a user said later that is the same with the opposite sign."""
    if unit.form == "answer" or kind_of_user(unit.text) not in NORMATIVE:
        return None
    about = subject(unit.text)
    after = (r for r in later if r.position > unit.position and not about.isdisjoint(r.words))
    return next((r for r in after if takes_back(r.text, unit.text)), None)


def _may_reverse(words: str, is_user: bool) -> bool:
    mine = (cues.RETRACTION, cues.RETRACTED_MESSAGE, cues.REPLACING) if is_user else (cues.RETRACTION,)
    return any(cue.search(words) for cue in mine)


def _retracted(unit: Unit, retracting: Mapping[str, Sequence[Reversal]]) -> Reversal | None:
    """What says that this claim of the model was wrong."""
    words = content_words(unit.text)
    shared = Counter(r for w in words for r in retracting.get(w, ()) if r.position > unit.position)
    about = (r for r, count in shared.items() if count >= 2 and (count >= len(words) // 5 or 2 * count >= len(r.words)))
    by = min(about, key=_place, default=None)
    return by if by and kind_of_claim(unit.text) in CLAIMS else None


def _replaced(unit: Unit, replacing: Mapping[str, Sequence[Reversal]]) -> Reversal | None:
    """What a user set in place of this."""
    words = content_words(unit.text)
    shared = {r for w in words for r in replacing.get(w, ()) if r.position > unit.position}
    against = {w for m in cues.IN_PLACE_OF.finditer(unit.text) for w in content_words(m[1])} if shared else set()
    by = min(
        (r for r in shared if not r.retracted or (r.retracted & words and not r.retracted & against)),
        key=_place,
        default=None,
    )
    return by if by and (unit.form == "answer" or kind_of_user(unit.text) in NORMATIVE) else None


def _place(reversal: Reversal) -> tuple[int, int]:
    return reversal.position, reversal.start
