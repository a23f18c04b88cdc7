"""A short acceptance and the proposal that it answers: "ok, do nothing" is a decision only beside what it is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from memory_pipeline.observations.extractive import cues
from memory_pipeline.observations.extractive.kinds import is_question, length_of
from memory_pipeline.observations.extractive.units import UNIT, Unit
from memory_pipeline.observations.observer import Said
from memory_pipeline.text.sentences import Sentence, sentences, squeeze
from memory_pipeline.text.similarity import content_words

SHORT_ANSWER = 40
"""Characters, of which a Chinese one counts for three, of an answer that means nothing alone."""
SAYS_WHAT = 4
"""Words of content from which a question alone says what it proposes; "shall I go ahead?" does not."""
CHARACTERS = 3
"""Chinese characters that are as good as a word."""
_CHOICE = re.compile(r"^\W*(?:(?:ok|yes|go with|option|let'?s do|number|take)\W+)*([1-9]|[a-d])\W*$", re.I)
_OPTION = re.compile(r"\b(?:option|choice|variant|number)\s*#?([1-9]|[a-d])\b|(?:方案|选项|選項)\s*([1-9]|[a-d])", re.I)
"""A choice within a few words: "I like option C"."""
_ASKED = re.compile(r"^\W*((me|us|you|i|we|to|that|and|also)\W+)*", re.I)
_MARK = re.compile(r"^[\s#*•-]*(?:option\s+([1-9]|[a-d])\b|([1-9]|[a-d])[.):])", re.I)


def answers(messages: Sequence[Said], *, has_cues: bool) -> list[Unit]:
    """Each short acceptance of the person, joined with the proposal before it.

    Without cues for the language, any few words that answer a question are taken for one; in Chinese, those of
    consent.
    """
    found = []
    proposing = -1
    for position, message in enumerate(messages):
        if message.role == "assistant":
            proposing = position
        elif message.role == "user" and proposing >= 0:
            unit = _answer(position, message, proposing, messages[proposing].text, has_cues)
            if unit:
                found.append(unit)
            proposing = -1
    return found


def _answer(position: int, message: Said, proposing: int, text: str, has_cues: bool) -> Unit | None:
    own = message.own
    start, end = len(own) - len(own.lstrip()), len(own.rstrip())
    words = squeeze(own[start:end])
    if not words or length_of(words) > SHORT_ANSWER or is_question(words):
        return None
    if not _choice(words) and not _consents(words, has_cues):
        return None
    proposal = _proposal(text, words)
    if proposal is None or (has_cues and is_momentary_offer(squeeze(text[proposal.start : proposal.end]))):
        return None
    place = (proposing, proposal.start, proposal.end)
    joined = squeeze(f"{text[proposal.start : proposal.end]} {message.text[start:end]}")
    return Unit(position, start, end, joined, "answer", (joined,), before=place)


def _choice(words: str) -> str:
    found = _CHOICE.match(words) or _OPTION.search(words)
    return (found[1] or found[found.lastindex or 1]).lower() if found else ""


def _consents(words: str, has_cues: bool) -> bool:
    if cues.CHINESE.search(words):
        return bool(cues.CHINESE_CONSENT.match(words))
    return not has_cues or bool(cues.ACCEPTING.match(words))


def _proposal(text: str, answer: str) -> Sentence | None:
    """The list item that was chosen, the sentence that the answer takes up, or the question that it answers."""
    found = list(sentences(text))
    choice = _choice(answer)
    if choice:
        marked = [s for s in found if _mark_of(text, s) == choice]
        return _without_hashes(text, marked[-1]) if marked else None
    asking = [i for i, s in enumerate(found) if text.endswith(("?", "？"), s.start, s.end)]
    if not asking:
        return None
    taken_up = content_words(answer) - content_words("ok yes sure do it go please 好 可 以 是 的 對 对 行 要")
    shared = [_shared(taken_up, text[s.start : s.end]) for s in found]
    if max(shared, default=0) >= 1:
        return found[shared.index(max(shared))]
    last = asking[-1]
    question, before = found[last], found[last - 1] if last else None
    says_what = len(content_words(text[question.start : question.end])) >= SAYS_WHAT
    if says_what or before is None or before.kind == "heading" or question.end - before.start > UNIT:
        return question
    return Sentence(before.start, question.end, before.kind, before.paragraph)


def _without_hashes(text: str, heading: Sentence) -> Sentence:
    words = text[heading.start : heading.end]
    return replace(heading, start=heading.end - len(words.lstrip("# ")))


def _shared(taken_up: frozenset[str], words: str) -> float:
    """Words in common, of which a Chinese character is a part of one; an announcement ("I could:") proposes nothing."""
    if words.endswith((":", "：")):
        return 0
    return sum(1 / CHARACTERS if cues.CHINESE.match(word) else 1 for word in taken_up & content_words(words))


def _mark_of(text: str, sentence: Sentence) -> str:
    line = text[text.rfind("\n", 0, sentence.start) + 1 : sentence.end]
    mark = _MARK.match(line)
    return (mark[1] or mark[2]).lower() if mark else ""


def is_momentary_offer(words: str) -> bool:
    """An offer to do something right away: "Would you like me to commit this?"."""
    asked = words.rsplit(". ", 1)[-1]
    return asked.endswith("?") and bool(cues.MOMENTARY.match(_ASKED.sub("", cues.OFFER.sub("", asked))))
