"""Spans of messages that could be facts: sentences with their neighbours, and a user's short message as a whole.

A short acceptance is joined with the proposal that it answers: "ok, do nothing" is a decision only with its object.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from memory_pipeline.harnesses.model import CHOICES
from memory_pipeline.observations.types import WindowMessage, choice_line
from memory_pipeline.text.explicit import Statement, answers_question, is_in_json, statements
from memory_pipeline.text.kinds import is_momentary_offer, is_noise, is_passing, is_prose, is_question, length_of
from memory_pipeline.text.languages.identify import ENGLISH, cues_in, cues_of, english, has_cues
from memory_pipeline.text.sentences import Sentence, sentences, squeeze
from memory_pipeline.text.similarity import CJK, content_words

WHOLE_MESSAGE = 400
"""Maximum characters of a user's message that is one unit; longer ones are mostly pasted."""
CLOSING = 200
"""Maximum characters of a last paragraph after a paste that can be the user's own."""
NEIGHBOURS, UNIT = 3, 420
"""Maximum sentences and characters of one unit of the model's words."""
MIN_ASSISTANT = 30
"""Minimum characters of a unit of the model's words."""
OPENING = 400
"""Characters of a paste that are read."""
_IMAGE = re.compile(r"\W*\[image: [^\]]*\]\W*")
"""The mark that the reader inserts in place of an image."""
OWN_LINES = 3
"""Maximum line breaks of a typed message; one with more contains something pasted."""


@dataclass(frozen=True, slots=True)
class Unit:
    """`messages[position].text[start:end]`, squeezed into `text`; `parts` are its sentences."""

    position: int
    start: int
    end: int
    text: str
    form: str
    """`whole`: a user's short message; `own`: a user's words around a paste; `dense`: a message of many lines;
    `answer`: an acceptance with its proposal; `choice`: the answer to a tool's question; `explicit`: a user's explicit
    statement; `paste`; `said`: by the model."""
    parts: tuple[str, ...] = ()
    before: tuple[int, int, int] | None = None
    """Position, start and end of the proposal or question that an answer responds to; its words come first in
    `text`."""
    sets: str | None = None
    """The kind of an explicit statement: rule, preference or decision."""

    @property
    def places(self) -> tuple[tuple[int, int, int], ...]:
        """Position, start and end of every span that `text` is made of, in order."""
        own = (self.position, self.start, self.end)
        return (self.before, own) if self.before else (own,)

    def overlaps(self, other: Unit) -> bool:
        """Whether a span of the unit overlaps one of the other."""
        return any(
            one[0] == two[0] and one[1] < two[2] and two[1] < one[2] for one in self.places for two in other.places
        )


def units(messages: Sequence[WindowMessage], language: str) -> Iterator[Unit]:
    """Every span of the window that might be kept, in order; ``language`` is the user's."""
    for position, message in enumerate(messages):
        if choice := _choice_unit(position, message):
            yield choice
        elif message.role == "user":
            # own words have the recognised lines of a paste blanked, and with them the beginning of an object
            laid_down = [s for s in statements(message.own, language) if not is_in_json(message.text, s.start)]
            yield from _user_units(position, message, laid_down)
            yield from _explicit_units(position, message, laid_down)
            yield from _paste_units(position, message)
        elif message.role == "assistant":
            yield from _assistant_units(position, message)


def _user_units(position: int, message: WindowMessage, laid_down: Sequence[Statement]) -> Iterator[Unit]:
    text = message.own
    places = [0, *(place for span in message.quoted for place in span), len(text)]
    parts = [text[start:end].strip() for start, end in zip(places[::2], places[1::2], strict=True)]
    is_short = sum(map(len, parts)) <= WHOLE_MESSAGE
    is_dense = sum(part.count("\n") for part in parts) > OWN_LINES
    form = "own" if not is_short else "dense" if is_dense else "whole"
    for found in _spans_of_user(message, is_short, laid_down):
        words = squeeze(text[found.start : found.end])
        if is_prose(words) and not is_passing(words):
            yield Unit(position, found.start, found.end, words, form, (words,))


def _explicit_units(position: int, message: WindowMessage, laid_down: Sequence[Statement]) -> Iterator[Unit]:
    """Explicit statements anywhere in a user's message, with the sentences that qualify them."""
    for found in laid_down:
        words = squeeze(message.text[found.start : found.end])
        yield Unit(position, found.start, found.end, words, "explicit", (words,), sets=found.kind)


def _choice_unit(position: int, message: WindowMessage) -> Unit | None:
    """The user's choice with the tool's question; the span is that of the user's words."""
    if message.role != "user" or message.answer_to not in CHOICES or not message.answered:
        return None
    start, end = len(message.text) - len(message.text.lstrip()), len(message.text.rstrip())
    words = squeeze(message.text[start:end])
    if len(words) > WHOLE_MESSAGE or not any(map(str.isalnum, words)):
        return None
    text = choice_line(message.answer_to, message.answered, words)
    return Unit(position, start, end, text, "choice", (words,))


def _paste_units(position: int, message: WindowMessage) -> Iterator[Unit]:
    """The beginning of each longer paste. It shows what the user passed on, and is never the user's statement."""
    for start, end in message.quoted:
        first = next(sentences(message.text[start : min(end, start + OPENING)]), None)
        words = squeeze(message.text[start + first.start : start + first.end]) if first else ""
        if first and is_prose(words) and len(words) >= MIN_ASSISTANT:
            yield Unit(position, start + first.start, start + first.end, words, "paste", (words,))


def _spans_of_user(message: WindowMessage, is_short: bool, laid_down: Sequence[Statement]) -> list[Sentence]:
    """A short message as one span, without consent and momentary orders around its content; of a longer one, which is
    mostly pasted, the first sentences and a short last paragraph. A question is a span of its own, and text above,
    between and below known pastes is not joined. Explicit statements are left out of all spans."""
    text = message.own
    found = [s for s in sentences(text) if s.kind != "heading" and not _is_mark(message, s)]
    explicit = {s.start for s in found if any(one.start <= s.start < one.end for one in laid_down)}
    if not is_short:
        found = [s for s in found if s.start not in explicit]
        opening = [s for s in found if s.paragraph == found[0].paragraph][:2]
        closing = [s for s in found if s.paragraph == found[-1].paragraph != found[0].paragraph]
        return opening + (closing if closing and closing[-1].end - closing[0].start <= CLOSING else [])
    spans: list[Sentence] = []
    run: list[Sentence] = []
    for sentence in [*found, None]:
        words = squeeze(text[sentence.start : sentence.end]) if sentence else ""
        stands_alone = is_question(words) or bool(cues_of(words).open.search(words))
        is_explicit = sentence is not None and sentence.start in explicit
        if not sentence or stands_alone or is_explicit or _is_paste_between(message, run, sentence):
            spans += _joined(text, run)
            run = []
        if is_explicit:
            continue
        if sentence and stands_alone:
            spans.append(sentence)
        elif sentence:
            run.append(sentence)
    return spans


def _is_paste_between(message: WindowMessage, run: Sequence[Sentence], sentence: Sentence) -> bool:
    return bool(run) and any(run[-1].end <= start < sentence.start for start, _ in message.quoted)


def _is_mark(message: WindowMessage, sentence: Sentence) -> bool:
    """Whether the sentence is only the mark of an image, or announces a paste: "the log:"."""
    if _IMAGE.fullmatch(message.text, sentence.start, sentence.end):
        return True
    if not message.text.endswith((":", "："), sentence.start, sentence.end):
        return False
    return any(start >= sentence.end and not message.text[sentence.end : start].strip() for start, _ in message.quoted)


def _joined(text: str, run: Sequence[Sentence]) -> list[Sentence]:
    """The sentences from the first to the last with lasting content; all of them if none has any."""
    said = [i for i, s in enumerate(run) if not is_passing(squeeze(text[s.start : s.end]))]
    kept = run[said[0] : said[-1] + 1] if said else run
    return [Sentence(kept[0].start, kept[-1].end, "prose", kept[0].paragraph)] if kept else []


def _assistant_units(position: int, message: WindowMessage) -> Iterator[Unit]:
    """Single sentences, and runs of two or three, as the sentence after a claim often explains it. Plans, offers and
    praise are left out."""
    text = message.text
    found = [(s, squeeze(text[s.start : s.end])) for s in sentences(text)]
    keep = [s.kind != "heading" and bool(words) and not is_noise(words) for s, words in found]
    for i in range(len(found)):
        parts: list[str] = []
        for j in range(i, min(i + NEIGHBOURS, len(found))):
            if not keep[j] or (parts and not _follows(text, found[j - 1][0], found[j][0])):
                break
            first, last = found[i][0], found[j][0]
            if parts and last.end - first.start > UNIT:
                break
            parts.append(found[j][1])
            words = squeeze(text[first.start : last.end])
            if length_of(words) >= MIN_ASSISTANT and not words.endswith(("?", "？", ":", "：")):
                yield Unit(position, first.start, last.end, words, "said", tuple(parts))


def _follows(text: str, one: Sentence, other: Sentence) -> bool:
    """Whether only space and a list marker separate the sentences, and the list has not ended."""
    if one.kind == "bullet" and other.kind != "bullet":
        return one.paragraph == other.paragraph
    return not text[one.end : other.start].strip(" \t\n-*•0123456789.)")


SHORT_ANSWER = 40
"""Maximum characters of an answer that means nothing alone; a Chinese character counts as three."""
MAX_ANSWER = 240
"""Maximum characters of an answer that is joined with its question."""
SAYS_WHAT = 4
"""Minimum content words of a question that states what it proposes; "shall I go ahead?" does not."""
CHARACTERS = 3
"""Number of pairs of Chinese characters that count as a word."""
_CHOICE = re.compile(r"^\W*(?:(?:ok|yes|go with|option|let'?s do|number|take)\W+)*([1-9]|[a-d])\W*$", re.I)
_OPTION = re.compile(r"\b(?:option|choice|variant|number)\s*#?([1-9]|[a-d])\b|(?:方案|选项|選項)\s*([1-9]|[a-d])", re.I)
"""A choice within a few words: "I like option C"."""
_MARK = re.compile(r"^[\s#*•-]*(?:option\s+([1-9]|[a-d])\b|([1-9]|[a-d])[.):])", re.I)


def answers(messages: Sequence[WindowMessage], *, language: str) -> list[Unit]:
    """Each short acceptance of the user, joined with the proposal before it.

    Without cues for the user's language, any few words after a question count as acceptance.
    """
    found: list[Unit | None] = []
    proposing = -1
    for position, message in enumerate(messages):
        if message.role == "assistant":
            proposing = position
        elif message.role == "user" and proposing >= 0:
            if not message.answer_to and messages[proposing].text:
                found.append(_answer(position, message, proposing, messages[proposing].text, language))
            proposing = -1
    return list(filter(None, found))


def _answer(position: int, message: WindowMessage, proposing: int, text: str, language: str) -> Unit | None:
    """The explicit answer with its question, else the acceptance with its proposal."""
    start, end = message.own_span
    reply = Unit(position, start, end, squeeze(message.own[start:end]), "answer")
    if not reply.text or is_question(reply.text):
        return None
    return _explicit_answer(reply, proposing, text, language) or _acceptance(reply, message, proposing, text, language)


def _explicit_answer(reply: Unit, proposing: int, text: str, language: str) -> Unit | None:
    """A short answer with the model's question, without which it has no object."""
    words, asked = reply.text, _last_question(text)
    if len(words) > MAX_ANSWER or asked is None:
        return None
    question = squeeze(text[asked.start : asked.end])
    explicit = next(statements(words, language), None)
    names_an_item = bool(_choice(words)) and any(_mark_of(text, sentence) for sentence in sentences(text))
    if explicit is None and (names_an_item or not answers_question(question, words)):
        return None
    kind = explicit.kind if explicit else "decision"
    return replace(_joined_with(reply, proposing, asked, f"{question} {words}"), form="explicit", sets=kind)


def _joined_with(reply: Unit, proposing: int, proposal: Sentence, joined: str) -> Unit:
    """The answer with the question or proposal that it responds to."""
    return replace(reply, text=joined, parts=(joined,), before=(proposing, proposal.start, proposal.end))


def _last_question(text: str) -> Sentence | None:
    """The question at the end of the model's message, if at most one sentence follows it."""
    found = [s for s in sentences(text) if s.kind != "heading"]
    asking = [i for i, s in enumerate(found) if is_question(squeeze(text[s.start : s.end]))]
    return _with_its_subject(text, found, asking[-1]) if asking and asking[-1] >= len(found) - 2 else None


def _with_its_subject(text: str, found: Sequence[Sentence], number: int) -> Sentence:
    """A question, with the sentence before it if it does not say by itself what it is about: "which one?"."""
    question, before = found[number], found[number - 1] if number else None
    says_what = len(content_words(text[question.start : question.end])) >= SAYS_WHAT
    if says_what or before is None or before.kind == "heading" or question.end - before.start > UNIT:
        return question
    return Sentence(before.start, question.end, before.kind, before.paragraph)


def _acceptance(reply: Unit, message: WindowMessage, proposing: int, text: str, language: str) -> Unit | None:
    words = reply.text
    if length_of(words) > SHORT_ANSWER or not (_choice(words) or _consents(words, language)):
        return None
    proposal = _proposal(text, words)
    if proposal is None or (language == ENGLISH and is_momentary_offer(squeeze(text[proposal.start : proposal.end]))):
        return None
    joined = squeeze(f"{text[proposal.start : proposal.end]} {message.text[reply.start : reply.end]}")
    return _joined_with(reply, proposing, proposal, joined)


def _choice(words: str) -> str:
    found = _CHOICE.match(words) or _OPTION.search(words)
    return (found[1] or found[found.lastindex or 1]).lower() if found else ""


def _consents(words: str, language: str) -> bool:
    own = cues_of(words)
    cues = cues_in(language) if own is english() else own
    return not has_cues(language) or bool(cues.accepting.match(words))


def _proposal(text: str, answer: str) -> Sentence | None:
    """The list item that was chosen, the sentence whose words the answer repeats, or the question that it answers."""
    found = list(sentences(text))
    choice = _choice(answer)
    if choice:
        marked = [s for s in found if _mark_of(text, s) == choice]
        return _without_hashes(text, marked[-1]) if marked else None
    asking = [i for i, s in enumerate(found) if text.endswith(("?", "？"), s.start, s.end)]
    if not asking:
        return None
    taken_up = content_words(answer) - content_words("ok yes sure do it go please 好 好的 行 可以 是的 要")
    shared = [_common_words(taken_up, text[s.start : s.end]) for s in found]
    if max(shared, default=0) >= 1:
        return found[shared.index(max(shared))]
    return _with_its_subject(text, found, asking[-1])


def _without_hashes(text: str, heading: Sentence) -> Sentence:
    words = text[heading.start : heading.end]
    return replace(heading, start=heading.end - len(words.lstrip("# ")))


def _common_words(taken_up: frozenset[str], words: str) -> float:
    """Number of common words, where a pair of Chinese characters counts as a fraction; a mere announcement ("I could:")
    proposes nothing."""
    if words.endswith((":", "：")):
        return 0
    return sum(1 / CHARACTERS if CJK.match(word) else 1 for word in taken_up & content_words(words))


def _mark_of(text: str, sentence: Sentence) -> str:
    line = text[text.rfind("\n", 0, sentence.start) + 1 : sentence.end]
    mark = _MARK.match(line)
    return (mark[1] or mark[2]).lower() if mark else ""
