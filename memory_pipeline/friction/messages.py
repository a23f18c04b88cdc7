"""Remarks of users, sentence by sentence, and whether a cue marks them as corrections."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from memory_pipeline.friction.attempts import (
    TOOL,
    USER,
    Session,
    Turn,
    canonical_name,
    only_reads,
)
from memory_pipeline.friction.patterns import FrictionEvent, cost, event_at, request_before
from memory_pipeline.lake.rows import ObservationRow, distinct
from memory_pipeline.scope import may_end
from memory_pipeline.text.kinds import MIN_SAID, PROSE, RULES, is_question, kind_of_user
from memory_pipeline.text.languages.identify import cues_of
from memory_pipeline.text.lines import supposes
from memory_pipeline.text.relation import gives_up, replaces, statement
from memory_pipeline.text.sentences import sentences
from memory_pipeline.text.similarity import CJK

MAX_SENTENCE = 400
MAX_OBSERVED = 1_000
"""Maximum characters of an observation about a single thing."""
MAX_MESSAGE = 6_000
"""Maximum characters of a typed message; longer ones are pasted."""
LAST_CALLS = 3
"""Number of last calls with side effects to which a remark may object."""


def messages_in(session: Session, observed: Sequence[ObservationRow]) -> list[FrictionEvent]:
    """The remarks of the user in a session: their observations, and the sentences without one."""
    said = list(_observed_remarks(session, observed))
    known: dict[str, list[tuple[int, int]]] = {}
    for message_id, start, end in (span for event in said for span in event.evidence):
        known.setdefault(message_id, []).append((start, end))
    for position, turn in enumerate(session.turns):
        if turn.role != USER or len(turn.text) > MAX_MESSAGE:
            continue
        skipped = [*session.quoted.get(turn.message_id, ()), *known.get(turn.message_id, ())]
        for start, end, kind in sentences_in(turn.text, skipped):
            words = turn.text[start:end]
            event = replace(
                event_at(session, turn, words, [(turn.message_id, start, end)]),
                event_id=f"{turn.message_id}:{start}",
                is_correction=kind == "correction" or corrects(words),
            )
            said.append(_with_cost(event, session.turns, position))
    return said


def _observed_remarks(session: Session, observed: Sequence[ObservationRow]) -> Iterator[FrictionEvent]:
    """Observations of what the user said."""
    positions = {turn.message_id: i for i, turn in enumerate(session.turns)}
    for o in observed:
        spans = tuple((s["message_id"], s["start"], s["end"]) for s in o["evidence"])
        if (
            o["trust"] != USER
            or not spans
            or len(o["text"]) > MAX_OBSERVED
            or cues_of(o["text"]).thanks.search(o["text"])
        ):
            continue
        event = FrictionEvent(
            *(o["observation_id"], o["day"], o["session_id"], o["observed_at"], o["text"], spans),
            *(o["cwd"] or session.cwd, o["project"] or session.project),
            is_correction=o["kind"] in RULES and corrects(o["text"]),
        )
        place = positions.get(spans[0][0])
        yield event if place is None else _with_cost(event, session.turns, place)


def _with_cost(event: FrictionEvent, turns: Sequence[Turn], position: int) -> FrictionEvent:
    """The event with the cost of the work between the request and these words."""
    request = request_before(turns, position)
    lost, minutes = cost(turns, request, position)
    heads = [turn.head for turn in turns[request:position] if turn.role == TOOL and turn.is_call]
    calls = [canonical_name(head) for head in heads if not only_reads(head)][-LAST_CALLS:]
    return replace(event, turns=lost, minutes=minutes, calls=tuple(calls))


def sentences_in(text: str, skipped: Collection[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """Start, end and kind of each typed sentence with content. A bare "no" is joined with the next sentence, which then
    is a correction."""
    before: int | None = None
    for sentence in sentences(text):
        start, end = sentence.start, sentence.end
        words = text[start:end]
        if sentence.kind == "heading" or end - start > MAX_SENTENCE or _is_covered(start, end, skipped):
            before = None
            continue
        kind = kind_of_user(words)
        if len(words) < MIN_SAID and not CJK.search(words):
            before = start if kind == "correction" else None
            continue
        if cues_of(words).thanks.search(words) or (len(words) <= SHORT and _is_consent(words)):
            before = None
            continue
        if _is_prose(words):
            yield (start, end, kind) if before is None else (before, end, "correction")
        before = None


SHORT = 40
"""Maximum characters of a sentence that only consents."""


def _is_consent(words: str) -> bool:
    """Whether the words are little more than consent."""
    cues = cues_of(words)
    return cues.accepting.match(words) is not None and not (cues.again.search(words) or cues.correction.search(words))


def _is_covered(start: int, end: int, spans: Collection[tuple[int, int]]) -> bool:
    return any(s < end and start < e for s, e in spans)


def _is_prose(words: str) -> bool:
    return sum(c.isalpha() or c.isspace() for c in words) >= PROSE * len(words)


def corrects(text: str) -> bool:
    """Whether a cue marks the text as a correction: a rule or wish alone may be about new work, and "who still uses
    it?" is a question."""
    if is_question(text):
        return False
    cues = cues_of(text)
    return bool(cues.correction.search(text) or cues.again.search(text) or gives_up(text))


def is_claim(text: str) -> bool:
    """Whether it states a fact, and neither asks nor supposes."""
    return not (is_question(text) or supposes(text))


def without_replaced(events: Sequence[FrictionEvent]) -> list[FrictionEvent]:
    """The events without corrections that a later event replaces: a user who changed their mind does not repeat
    themselves.

    Only texts that give up something named are compared, and each pair of texts once: comparing all pairs of a few
    thousand would take minutes.
    """
    giving_up: dict[str, dict[str, list[FrictionEvent]]] = {}
    for newer in filter(lambda event: is_claim(event.text), events):
        for word in frozenset[str]().union(*gives_up(newer.text)):
            giving_up.setdefault(word, {}).setdefault(newer.text, []).append(newer)
    over: dict[str, list[list[FrictionEvent]]] = {}
    for event in events:
        if event.is_correction and event.text not in over:
            stems = statement(event.text).stems
            texts = {text: found for word in stems for text, found in giving_up.get(word, {}).items()}
            over[event.text] = [found for text, found in texts.items() if replaces(text, event.text)]
    return [
        event
        for event in events
        if not (event.is_correction and any(ends(n, event) for found in over[event.text] for n in found))
    ]


def ends(newer: FrictionEvent, older: FrictionEvent) -> bool:
    """Whether the newer event is later and not of another project."""
    return age(older) < age(newer) and may_end(distinct([newer.project]), distinct([older.project]))


def age(event: FrictionEvent) -> tuple[datetime, str]:
    return event.at, event.event_id


MIN_BARE = 8
"""Minimum characters of the remainder; if it is shorter, the words stay unchanged."""


def bare(text: str) -> str:
    """The words without leading "no" and "again"."""
    whole = " ".join(text.split())
    left, lead = whole, cues_of(whole).interjection
    while found := lead.match(left):
        left = left[found.end() :].lstrip(" ,.:;!?—–-")
    return left[:1].upper() + left[1:] if len(left) >= MIN_BARE else whole
