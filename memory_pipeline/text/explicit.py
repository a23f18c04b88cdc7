"""Sentences in which a person explicitly states a rule, a preference, a decision or a request to remember.

The phrases are roles in `languages/*.toml`. A sentence must match one of five (`sets_rule`, `sets_preference`,
`sets_decision`, `remembers`, `prohibits`), and none that cancels it: a question, a doubt, a supposition, a complaint, a
restriction to the moment. A prohibition counts if it is most of its message, or says that it is general ("never",
"unless"); within a longer request it restricts that request. A sentence without such phrases never counts, however
often it is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from memory_pipeline.text.kinds import is_momentary_question, is_prose, is_question
from memory_pipeline.text.languages.identify import ENGLISH, cues_in, cues_of, language_of
from memory_pipeline.text.phrases import Cues, word_list
from memory_pipeline.text.sentences import Sentence, sentences, squeeze
from memory_pipeline.text.similarity import CJK, content_words

PROHIBITION = "prohibition"
"""A prohibition without a word such as "never": a rule, unless it restricts the request that it is part of."""
MAX_BESIDE = 1.0
"""Maximum characters beside a prohibition, as a multiple of its own. In longer messages it restricts the request: of 61
such prohibitions, typed by people, a reader kept 13 as rules."""
_SETS = (
    ("sets_rule", "rule"),
    ("sets_preference", "preference"),
    ("sets_decision", "decision"),
    ("remembers", "rule"),
    ("prohibits", PROHIBITION),
)
"""Roles in order of precedence, each with the kind of its statement."""
_OF_SPEAKER = ("preference", "decision")
"""Kinds that state the speaker's will in a main clause: "the logic that we're using" decides nothing."""
_CANCELLING = ("open", "doubt", "guess", "supposes", "for_now", "complaint", "offer", "unsettled")
_CLAUSE_END = re.compile(r"[,;:](?=\s|[^\x00-\x7f])|[，；：、]|\s[-–—]\s")  # Chinese is typed with ASCII commas, too
_FIRST_CLAUSE = re.compile(rf"{_CLAUSE_END.pattern}|[.!…](?=\s|$)|[。！\n]")
_QUOTED = re.compile(r'"[^"\n]+"|„[^“”"\n]+[“”"]|“[^”\n]+”|«[^»\n]+»|「[^」\n]+」|『[^』\n]+』')
_JSON = re.compile(r'\{\s*"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}')
"""An object of JSON, as in a pasted error: with up to two levels of objects in it."""
_BOLD = re.compile(r"\*\*[^*\n]+\*\*")
_OPENING = '"“„«「『'
_FIGURES = re.compile(r"\d+")
_ASKED_AFTER = re.compile(r"(?<=\w)\W+¿[^?]*\?+\s*$")
"""A question after a statement, where a mark shows where it begins."""
_VAGUE = word_list("vague")
MAX_NAME = 2
"""Maximum words between quotation marks that are a name; more are what somebody else says."""
MAX_NAME_CJK = 7
"""The same in characters of Chinese or Japanese."""
MIN_WORDS = 2
"""Minimum content words, which name an object and what applies to it: "answer in English"."""
MAX_REQUEST = 160
"""Maximum characters of a sentence that begins with a request; a longer one describes a task, whatever phrases it
has."""
MAX_TYPED = 2500
"""Maximum characters of a typed message; a longer one is a pasted prompt."""
MAX_BOLD = 3
"""Maximum phrases in bold type of a typed message; one with more was written by a program."""
MAX_CAST = 200
"""Maximum characters of a typed message that casts the model in a role; a longer one is a prompt for one task."""
MAX_STATEMENT = 600
"""Maximum characters of a statement with the sentences that qualify it."""


@dataclass(frozen=True)
class Statement:
    """An explicit statement: `text[start:end]` of a message."""

    start: int
    end: int
    kind: str
    """`rule`, `preference` or `decision`."""


def explicit_kind(sentence: str, language: str = ENGLISH) -> str | None:
    """The kind of the explicit statement in this sentence, or None. ``language`` is the speaker's, as a few words do
    not always identify it. Quoted text does not count."""
    sentence = without_quotes(sentence).lstrip(_OPENING)
    return _kind(sentence, cues_of(sentence)) or (_kind(sentence, cues_in(language)) if language != ENGLISH else None)


def _kind(sentence: str, cues: Cues) -> str | None:
    """The kind by the phrases of one language. Phrases that cancel a statement count only up to the end of its clause:
    a later "..., I guess that broke it" does not affect it."""
    sentence = _before_question(cues.tag.sub("", sentence), cues)
    if sentence.rstrip().endswith(("...", ":", "：")):
        return None  # an unfinished thought, or the announcement of a list
    is_long_request = len(sentence) > MAX_REQUEST and cues.momentary.search(sentence)
    is_asked = sentence.rstrip("\"')”’*_` ").endswith(("?", "？"))
    if is_long_request or is_asked or cues.withdraws.search(sentence):
        return None
    found = [
        (match, kind)
        for role, kind in _SETS
        if (match := getattr(cues, role).search(sentence))
        and not (kind in _OF_SPEAKER and cues.subordinate.search(sentence[: match.start()]))
    ]
    accepts_work = cues.accepting.search(sentence) and cues.momentary.search(sentence)  # "yes please add ..."
    for match, kind in found:
        if accepts_work and kind == "preference":
            continue
        end = _CLAUSE_END.search(sentence, match.end())
        if _is_vague(sentence[_clause_start(sentence, match.end()) : end.start() if end else None]):
            continue
        is_last = end is None or not sentence[end.end() :].strip()
        if not _leaves_open(sentence if is_last or end is None else sentence[: end.start()], cues):
            return "rule" if kind == PROHIBITION and cues.general.search(sentence) else kind
    return None


def _clause_start(sentence: str, place: int) -> int:
    return max((end.end() for end in _CLAUSE_END.finditer(sentence, 0, place)), default=0)


def _is_vague(clause: str) -> bool:
    """Whether no word of a clause names an object: "don't write any code", "let's go with that"."""
    said = content_words(clause)
    return len(said) > 1 and said <= _VAGUE


def _before_question(sentence: str, cues: Cues) -> str:
    """The sentence without a last clause that asks or requests: "I prefer tabs, can you change it?"."""
    sentence = _ASKED_AFTER.sub("", sentence)
    if not sentence.rstrip().endswith(("?", "？")) or cues.premise.search(sentence):
        return sentence
    ends = list(_CLAUSE_END.finditer(sentence))
    asked = sentence[ends[-1].end() :] if ends else ""
    is_asked = any(getattr(cues, role).search(asked) for role in ("asking", "request", "momentary"))
    return sentence[: ends[-1].start()] if is_asked else sentence


def without_quotes(text: str) -> str:
    """The text with its quotations and objects of JSON blanked, of the same length. A quoted name remains, and so does
    a text in quotation marks as a whole: nothing around it says that it is somebody else's."""
    text = _JSON.sub(_blank, text)
    return text if _QUOTED.fullmatch(text.strip()) else _QUOTED.sub(_blank, text)


def is_in_json(text: str, place: int) -> bool:
    """Whether the place is inside an object of JSON, as in a pasted error."""
    return any(found.start() < place < found.end() for found in _JSON.finditer(text))


def _blank(quoted: re.Match[str]) -> str:
    words = quoted[0][1:-1]
    is_name = len(words.split()) <= MAX_NAME and len(CJK.findall(words)) <= MAX_NAME_CJK
    return quoted[0] if is_name else re.sub(r"\w", "·", quoted[0])


def statements(text: str, language: str = "") -> Iterator[Statement]:
    """The explicit statements of a message, in order, each with the following sentences that qualify it. ``language``
    is the speaker's, if known."""
    if len(text) > MAX_TYPED or len(_BOLD.findall(text)) > MAX_BOLD:
        return
    language = language or language_of(text)
    if len(text) > MAX_CAST and any(cues.casts.search(text) for cues in (cues_of(text), cues_in(language))):
        return
    found: Statement | None = None
    last: Sentence | None = None
    own = without_quotes(text)
    size = len(text.strip())
    for sentence in sentences(text):
        words = squeeze(own[sentence.start : sentence.end])
        kind = explicit_kind(words, language) if sentence.kind != "heading" and _has_enough_words(words) else None
        if kind == PROHIBITION:
            kind = "rule" if size <= (1 + MAX_BESIDE) * (sentence.end - sentence.start) else None
        if (
            found
            and last
            and _qualifies_statement(found, last, squeeze(own[last.start : last.end]), sentence, words, kind)
        ):
            found = Statement(found.start, sentence.end, found.kind)
        else:
            if found:
                yield found
            found = Statement(sentence.start, sentence.end, kind) if kind else None
        last = sentence
    if found:
        yield found


def answers_question(question: str, answer: str) -> bool:
    """Whether an answer settles a question about how things should be: one that offers alternatives or asks which. A
    question about the agent's next step only asks for permission."""
    asking, cues = cues_of(question), cues_of(answer)
    first = _FIRST_CLAUSE.split(answer.strip(), maxsplit=1)[0]
    if leaves_open(first) or cues.accepting.match(answer) or is_momentary_question(question):
        return False
    if picks(question, answer):
        return True
    chosen, offered = asking.chooses.search(question), asking.offer.search(question)
    if cues.momentary.search(answer) or chosen is None or (offered and offered.start() < chosen.end()):
        return False
    return bool(content_words(answer))


def picks(question: str, answer: str) -> bool:
    """Whether the first clause of an answer picks an alternative of a question: "with JUnit or with Spock?"."""
    asking = cues_of(question)
    if not asking.alternatives.search(question):
        return False
    first = asking.picking.sub(" ", _FIRST_CLAUSE.split(answer.strip(), maxsplit=1)[0])
    if asking.momentary.search(first):
        return False
    if asking.ordinal.search(first) or first.strip().isdigit():
        return not re.search(r"\w", asking.ordinal.sub("", first).strip(" 0123456789"))
    said = content_words(first)
    return bool(said) and said <= content_words(question)


def leaves_open(words: str) -> bool:
    """Whether the words leave the matter open."""
    return _leaves_open(words, cues_of(words))


def _leaves_open(words: str, cues: Cues) -> bool:
    return is_question(words) or any(getattr(cues, role).search(words) for role in _CANCELLING)


def _has_enough_words(words: str) -> bool:
    """Whether it names an object and what applies to it; figures do not make it less readable."""
    return is_prose(_FIGURES.sub("", words)) and len(content_words(words)) >= MIN_WORDS


def _qualifies_statement(
    found: Statement, last: Sentence, last_words: str, sentence: Sentence, words: str, kind: str | None
) -> bool:
    """Whether a sentence qualifies the statement before it: it is in the same paragraph and no question."""
    if sentence.paragraph != last.paragraph or sentence.end - found.start > MAX_STATEMENT or is_question(words):
        return False
    cues: Cues = cues_of(words)
    if cues_of(last_words).amends.search(last_words):
        return True  # the last sentence only announced this one
    return bool(cues.qualifies.search(words)) and (kind is not None or not cues.momentary.search(words))
