"""Claims that the session retracts later. Only the retraction is kept, not the claim."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from memory_pipeline.observations.quotes.features import Conversation
from memory_pipeline.observations.quotes.units import Unit
from memory_pipeline.text.kinds import NORMATIVE, is_question, kind_of_claim, kind_of_user
from memory_pipeline.text.languages.identify import english
from memory_pipeline.text.relation import replaces, statement
from memory_pipeline.text.sentences import sentences

CLAIMS = ("root_cause", "statement", "decision")
"""Kinds of the model's statements that a retraction can end."""


@dataclass(frozen=True, slots=True, eq=False)
class Reversal:
    """A sentence that may retract something: `messages[position]` from `start` to `end`."""

    position: int
    start: int
    end: int
    text: str
    about: frozenset[str]
    """Stems of the content words of the sentence and the next one."""
    retracts: bool
    """Whether it says that something was wrong."""
    retracted_message: int
    """Position of the user's message that it retracts as a whole, or -1."""
    changes_mind: bool
    """Whether the user replaces an earlier statement."""


def retracted_units(found: Sequence[Unit], window: Conversation) -> dict[int, int | None]:
    """The units that are retracted later, by index, each with the index of the smallest unit that contains the first
    sentence that retracts it, if there is one."""
    by_stem: dict[str, list[Reversal]] = defaultdict(list)
    by_message: dict[int, Reversal] = {}
    for reversal in _reversals(window):
        by_message.setdefault(reversal.retracted_message, reversal)
        for stem in reversal.about:
            by_stem[stem].append(reversal)
    by_position: dict[int, list[int]] = defaultdict(list)
    for i, unit in enumerate(found):
        by_position[unit.position].append(i)
    answer: dict[int, int | None] = {}
    for i, unit in enumerate(found):
        if unit.form == "paste":
            continue
        subject = statement(unit.text).subject
        shared = Counter(r for stem in subject for r in by_stem.get(stem, ()) if r.position > unit.position)
        if unit.form == "said":
            ending = _retractions(unit, shared) if any(r.retracts for r in shared) else []
        else:
            ending = _replacements(unit, shared) if shared else []
            ending += [by_message[unit.position]] if unit.position in by_message else []
        if ending:
            first = min(ending, key=lambda r: (r.position, r.start))
            answer[i] = _smallest_holding(first, [(n, found[n]) for n in by_position[first.position]])
    return answer


def _smallest_holding(reversal: Reversal, among: Iterable[tuple[int, Unit]]) -> int | None:
    """The index of the smallest of these units that contains the sentence; None if none does."""
    holding = [(u.end - u.start, i) for i, u in among if u.start <= reversal.start and reversal.end <= u.end]
    return min(holding)[1] if holding else None


def _reversals(window: Conversation) -> Iterator[Reversal]:
    """Every sentence of the user, and those in which the model says that it was wrong. A retraction that does not name
    its object is recognised only in English."""
    cues, before = english(), -1
    for position, message in enumerate(window.messages):
        is_user, own = message.role == "user", message.own
        is_english = window.is_english(message.role)
        if not is_user and not (message.role == "assistant" and is_english and cues.retraction.search(own)):
            continue
        found = list(sentences(own))
        for sentence, following in zip(found, [*found[1:], *found[-1:]], strict=True):
            text = own[sentence.start : sentence.end]
            retracts = is_english and bool(cues.retraction.search(text))
            if is_question(text) or not (is_user or retracts):
                continue
            is_message = is_user and is_english and cues.takes_back.search(text)
            yield Reversal(
                *(position, sentence.start, sentence.end, text),
                about=statement(own[sentence.start : following.end]).subject,
                retracts=retracts,
                retracted_message=before if is_message else -1,
                changes_mind=is_english and bool(cues.changes_mind.search(text)) and kind_of_user(text) in NORMATIVE,
            )
        before = position if is_user and own.strip() else before


def _retractions(unit: Unit, shared: Counter[Reversal]) -> list[Reversal]:
    """The reversals that say that this claim of the model was wrong."""
    if kind_of_claim(unit.text) not in CLAIMS:
        return []
    size = len(statement(unit.text).words)
    return [r for r, n in shared.items() if r.retracts and n >= 2 and (n >= size // 5 or 2 * n >= len(r.about))]


def _replacements(unit: Unit, shared: Iterable[Reversal]) -> list[Reversal]:
    """The reversals by which a user replaced something that they wanted or agreed to."""
    if unit.form != "answer" and kind_of_user(unit.text) not in NORMATIVE:
        return []
    said = statement(unit.text)

    def ends(reversal: Reversal) -> bool:
        given_up = statement(reversal.text).denied
        if reversal.changes_mind and (not given_up or (given_up & said.stems and not given_up & said.denied)):
            return True
        return unit.form != "answer" and replaces(reversal.text, unit.text)

    return [reversal for reversal in shared if ends(reversal)]
