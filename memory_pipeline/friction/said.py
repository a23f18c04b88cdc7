"""What users had to say again: corrections and rules in their own words, and which of them are about one thing."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from memory_pipeline.friction.attempts import ASSISTANT, USER, Turn
from memory_pipeline.friction.deeds import deeds_before
from memory_pipeline.friction.events import FrictionEvent, cost, request_before
from memory_pipeline.lake.rows import ObservationRow, distinct
from memory_pipeline.scope import may_end
from memory_pipeline.text import cues
from memory_pipeline.text.kinds import MIN_SAID, PROSE, kind_of_user
from memory_pipeline.text.languages.cues import foreign_cues
from memory_pipeline.text.sentences import sentences
from memory_pipeline.text.similarity import CJK, content_words
from memory_pipeline.text.wording import breaks_with, retracted_names, stem, takes_place_of

CORRECTING = ("correction", "rule", "preference")
CHANGING = ("decision", "state_change")
"""Kinds with which a user ends what they said before, without correcting anybody."""
MAX_SENTENCE = 400
MAX_OBSERVED = 1_000
"""Characters of an observation that says one thing."""
MAX_MESSAGE = 6_000
"""Characters of a message of a user's that somebody typed; longer ones are pasted."""
NEXT_TURNS = 12
"""Messages after a user's, tools' included, in which the agent's next words are looked for."""


class Said(NamedTuple):
    """What users said in a window of days."""

    corrections: list[FrictionEvent]
    changes: list[FrictionEvent]
    """What says that something is over or decided anew: it ends what was said before."""
    remarks: list[FrictionEvent]
    """What else was said while the work went on: with a rule beside it, it may say that the rule was broken."""


AGAIN = re.compile(
    r"\b(?:again|still|keep(?:s)? (?:on )?\w+ing|how (?:many times|often)|i(?:'ve|"
    r" have)? (?:already )?(?:told|said|asked|"
    r"mentioned)|as (?:i )?(?:said|mentioned|told)|remember (?:to|that)|told you|reminder|once more|every time|"
    r"should have been|(?:we|i) (?:do not|don't|never) use|use \S+ (?:here|,? not)|"
    r"wieder|wie oft|zum \w+ten mal|wie (?:gesagt|besprochen)|otra vez|de nuevo|cuántas veces|ya (?:te|os) dije|"
    r"te he dicho|encore une fois|à nouveau|combien de fois|je t'ai (?:déjà )?dit)\b|又|说过|再说一次|何度も|言った",
    re.I,
)
"""Says in passing that it was said before."""
ENDING = re.compile(
    r"\b(?:no longer|any ?more|any longer|moved|migrated|switched|replaced|retired|forget|dropped|closed|"
    r"shut down|gone|"
    r"(?:has|have|we) left|is out|is off|turned off|(?:these|nowadays) days?|from (?:now|today) on|changed my mind|"
    r"new decision|after all|since (?:last|yesterday|the|this)|instead of|deprecated|now|"
    r"nicht mehr|gibt es nicht|kein\w* \S+ mehr|umgezogen|gewechselt|abgeschaltet|vergiss|weg|raus|"
    r"inzwischen|ab (?:jetzt|heute)|"
    r"seit|jetzt|statt|doch|überlegt|neue entscheidung|"
    r"ya no|dej(?:amos|é|ó)|cerrad[oa]|apagad[oa]|olvida|pasamos|pasó|migramos|cambi(?:é|amos)|ahora|fuera|desde|"
    r"en (?:vez|lugar) de|se fue|désormais|maintenant|oublie|ne \S+ plus)\b|不再|已经|换成|改用|现在|もう|やめ|今は",
    re.I,
)
"""Says that something else holds now, in words that alone prove nothing."""
REVERSAL = re.compile(
    r"\b(?:changed? my mind|after all|new decision|(?:we )?decided (?:today|to)|from (?:now|today) on|"
    r"überlegt|neue entscheidung|"
    r"heute entschieden|ab (?:jetzt|heute)|cambi(?:é|amos) de (?:idea|opinión)|decidimos|desde (?:ahora|"
    r"hoy)|nueva decisión|"
    r"changé d'avis|désormais)\b|改主意|从今天起|これからは",
    re.I,
)
"""Says that the user themselves wants it otherwise from now on."""


def said_in(
    turns: Sequence[Turn],
    observed: Sequence[ObservationRow],
    quoted: Mapping[str, Sequence[tuple[int, int]]],
    cwd: str | None,
    project: str | None,
) -> Said:
    """Of one session: what was observed of its user, and sentences of theirs that were not."""
    positions = {turn.message_id: i for i, turn in enumerate(turns)}
    said = Said([], [], [])
    known: dict[str, list[tuple[int, int]]] = {}
    for o in observed:
        spans = tuple((s["message_id"], s["start"], s["end"]) for s in o["evidence"])
        if o["trust"] != USER or not spans or len(o["text"]) > MAX_OBSERVED or _THANKS.search(o["text"]):
            continue
        place = positions.get(spans[0][0])
        before = _before(turns, place) if place is not None else (0, 0.0, frozenset[str](), False, False)
        event = FrictionEvent(
            *(o["observation_id"], o["day"], o["session_id"], o["observed_at"], o["text"], spans),
            *(o["cwd"] or cwd, o["project"] or project, *before[:2]),
            did=before[2],
            is_owned=before[3],
            opens=before[4],
        )
        if o["kind"] in CORRECTING:
            said.corrections.append(event)
        elif o["kind"] in CHANGING:
            said.changes.append(event)
        else:
            said.remarks.append(event)
        for message_id, start, end in spans:
            known.setdefault(message_id, []).append((start, end))
    for position, turn in enumerate(turns):
        if turn.role != USER or len(turn.text) > MAX_MESSAGE:
            continue
        skipped = [*quoted.get(turn.message_id, ()), *known.get(turn.message_id, ())]
        for start, end, kind in sentences_in(turn.text, skipped):
            words, before = turn.text[start:end], _before(turns, position)
            span = (turn.message_id, start, end)
            event = FrictionEvent(
                *(f"{turn.message_id}:{start}", turn.day, turn.session_id, turn.at, words, (span,)),
                cwd,
                project,
                *before[:2],
                did=before[2],
                is_owned=before[3],
                opens=before[4],
            )
            if kind in CORRECTING or (AGAIN.search(words) and not (kind == "question" and words.endswith("?"))):
                said.corrections.append(event)
            elif kind in CHANGING or ENDING.search(words):
                said.changes.append(event)
            else:
                said.remarks.append(event)
    return said


def sentences_in(text: str, skipped: Collection[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
    """Start, end and kind of each sentence that somebody typed and that says something. A bare "no" belongs to the
    sentence behind it, which it makes a correction."""
    before: int | None = None
    for sentence in sentences(text):
        start, end = sentence.start, sentence.end
        words = text[start:end]
        if sentence.kind == "heading" or end - start > MAX_SENTENCE or _covered(start, end, skipped):
            before = None
            continue
        kind = kind_of_user(words)
        if len(words) < MIN_SAID and not CJK.search(words):
            before = start if kind == "correction" else None
            continue
        if _THANKS.search(words) or (len(words) <= SHORT and _consents(words)):
            before = None
            continue
        if _is_prose(words):
            yield (start, end, kind) if before is None else (before, end, "correction")
        before = None


_THANKS = re.compile(
    r"\b(?:thanks?|thank you|thx|danke\w*|gracias|merci|great work|well done|good job|perfect(?:o)?|no worries|"
    r"passt schon|no hace falta|no te preocupes)\b|谢谢|ありがとう",
    re.I,
)
SHORT = 40
"""Characters of a sentence that does no more than begin with consent."""


def _consents(words: str) -> bool:
    """Whether it is consent and hardly more."""
    foreign = foreign_cues(words)
    accepting, correcting = (foreign.accepting, foreign.correction) if foreign else (cues.ACCEPTING, cues.CORRECTION)
    return accepting.match(words) is not None and not (AGAIN.search(words) or correcting.search(words))


def _covered(start: int, end: int, spans: Collection[tuple[int, int]]) -> bool:
    return any(s < end and start < e for s, e in spans)


def _is_prose(words: str) -> bool:
    return sum(c.isalpha() or c.isspace() for c in words) >= PROSE * len(words)


_OWNS = re.compile(
    r"\b(?:you(?:'re| are)(?: absolutely| completely)? right|right[,.!]|sorry|apologi[sz]e|apologies|"
    r"my (?:mistake|bad|fault)|understood|got it|noted|good (?:catch|point)|fair (?:point|enough)|oops|"
    r"i should (?:have|not have)|i shouldn't have|i missed|i forgot|i overlooked|will (?:not|stop|keep)|"
    r"won't (?:happen|do)|from now on|i(?:'ll| will) (?:undo|revert|redo)|"
    r"stimmt|(?:du hast|hast du) recht|entschuldig\w+|tut mir leid|mein fehler|verstanden|alles klar|mein versehen|"
    r"tienes razón|perdón|disculp\w+|lo siento|entendido|cierto|mi error|"
    r"tu as raison|désolé\w*|compris|mon erreur|pardon)"
    r"|抱歉|对不起|你说得对|明白了|すみません|申し訳|おっしゃる通り|了解",
    re.I,
)
"""How an agent answers when it is told that it did something wrong."""


def _is_owned(turns: Sequence[Turn], position: int) -> bool:
    """Whether the agent's next words own to a mistake."""
    answer = next((turn for turn in turns[position + 1 :][:NEXT_TURNS] if turn.role in (USER, ASSISTANT)), None)
    return answer is not None and answer.role == ASSISTANT and _OWNS.search(answer.text) is not None


def _before(turns: Sequence[Turn], position: int) -> tuple[int, float, frozenset[str], bool, bool]:
    """Turns and minutes between the request and what is said of it, which was done in vain; what was done; whether the
    agent owned to a mistake; and whether there was no request before."""
    request = request_before(turns, position)
    deeds = deeds_before(turns, request, position)
    return *cost(turns, request, position), deeds, _is_owned(turns, position), request == position


def standing(events: Sequence[FrictionEvent], said: Sequence[FrictionEvent]) -> list[FrictionEvent]:
    """Those whose place nothing took that was said later: a changed mind is no recurrence."""
    return list(_not_ended(events, said, takes_place_of))


def of_one_mind(members: Sequence[FrictionEvent]) -> tuple[FrictionEvent, ...]:
    """Without those that hold on to what a later one gives up; oldest first, as they come."""
    return tuple(_not_ended(members, members, breaks_with))


def _not_ended(
    events: Sequence[FrictionEvent], said: Sequence[FrictionEvent], is_over: Callable[[str, str], bool]
) -> Iterator[FrictionEvent]:
    """Only words that give up something which is named are compared, each text with another once: all with all would
    take minutes for a few thousand."""
    giving_up: dict[str, dict[str, list[FrictionEvent]]] = {}
    for newer in said:
        for word in {stem(word) for name in retracted_names(newer.text) for word in name}:
            giving_up.setdefault(word, {}).setdefault(newer.text, []).append(newer)
    over: dict[str, list[list[FrictionEvent]]] = {}
    for event in events:
        if event.text not in over:
            named = {stem(word) for word in content_words(event.text)}
            texts = {text: found for word in named for text, found in giving_up.get(word, {}).items()}
            over[event.text] = [found for text, found in texts.items() if is_over(text, event.text)]
        if not any(ends(newer, event) for found in over[event.text] for newer in found):
            yield event


def ends(newer: FrictionEvent, older: FrictionEvent) -> bool:
    """Whether it was said later, and not of another project."""
    return age(older) < age(newer) and may_end(distinct([newer.project]), distinct([older.project]))


def age(event: FrictionEvent) -> tuple[datetime, str]:
    return event.at, event.event_id


_LEAD = re.compile(
    r"^(?:\W*\b(?:no|nope|nein|nee|again|wrong|stop|wait|please|hey|ok(?:ay)?|sorry|once more|otra vez|bitte|nochmal|"
    r"schon wieder|i (?:already )?(?:told|said)(?: you)?(?: to| that)?|as i said|remember|reminder|by the way|"
    r"still)\b)+[\s,.:;!?—–-]*",
    re.I,
)
MIN_BARE = 8
"""Characters of what is left, below which the words stay as they are."""


def bare(text: str) -> str:
    """The words without "no" and "again" before them."""
    whole = " ".join(text.split())
    left = _LEAD.sub("", whole)
    return left[:1].upper() + left[1:] if len(left) >= MIN_BARE else whole
