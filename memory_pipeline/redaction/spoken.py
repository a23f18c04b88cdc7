"""Passwords in prose: "my gpg passphrase is …", "das Kennwort für den Tunnel lautet …", «密码是 …».

A sentence has a word for a secret, then a form of "is" or a sign, and then a value. If only the owner is between them
("for the tunnel"), a quoted value may be anything; an unquoted one must not be a word, unless the secret is the
speaker's own ("my …") or the value is a phrase of words without connecting words. If other words are between them, the
value must have the shape of a secret, quoted or not. "The password is stored in the vault" is a statement about it. In
the reverse order ("use … as the password") the value is quoted, or not a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import islice
from typing import NamedTuple

from memory_pipeline.redaction import spoken_words as words
from memory_pipeline.redaction.assignments import HARMLESS
from memory_pipeline.redaction.detectors import Span, fold
from memory_pipeline.redaction.shapes import (
    STRONG,
    TOGETHER,
    is_code,
    is_odd,
    is_phrase,
    is_quoted_value,
    is_strong,
    is_thing,
    is_value,
)
from memory_pipeline.redaction.spoken_words import any_of
from memory_pipeline.text.regex import deferred

SPOKEN = words.SPOKEN
_LETTERS = "a-zÀ-ɏͰ-ӿ"
_SCRIPT = "⺀-鿿가-힯"
_ENDING = deferred(rf"[{_LETTERS}]{{0,3}}(?![{_LETTERS}\d_])(?:[ -](?:code|number|nummer)\b)?", re.I)
_SHORT_ENDING = deferred(r"(?:s|e?n|es)?(?!\w)(?:[ -](?:code|number|nummer)\b)?|(?=[⺀-鿿가-힯])", re.I)
# Within the sentence: distant text is not the value of the secret.
_VERBS = 6
_SENTENCE = deferred(r"(?:[^\n.!?;。！？；]|[.!?](?=\S)){0,120}")
_FOR = deferred(rf"(?:[ \t](?:{any_of(words.PREPOSITIONS)})\b[^\n!?:;,，。：\"'`„«「“]{{1,60}})?[ \t]*", re.I)
# Other words, possibly with a remark between commas, but no code.
_OTHER = r"[^=;{}<>|,，、]*"
_BETWEEN = deferred(rf"(?:[ \t(（{_SCRIPT}]{_OTHER})?(?:[ \t]*[,，、]{_OTHER}[,，、])?[ \t]*(?:[,，、][ \t]*)?")
_QUOTES = (
    r"\"[^\"\n]{3,100}\"|'[^'\n]{3,100}'|`[^`\n]{3,100}`|“[^”\n]{3,100}”|„[^“”\n]{3,100}[“”]|«[^»\n]{3,100}»"
    r"|「[^」\n]{3,100}」|『[^』\n]{3,100}』|‘[^’\n]{3,100}’"
)
_VALUE = deferred(rf"(?P<quoted>{_QUOTES})|(?P<bare>[^\s\"'`„“«「『，。；！？、,;<>(){{}}\[\]]{{3,100}})(?!\()")
_FILLER = deferred(
    rf"(?:[ \t,]{{1,3}}(?:{any_of(words.FILLERS)})(?![\w-]),?){{0,3}}[ \t]*(?:[:：][ \t]*|(?:->|→)[ \t]*)?(?:\*\*)?",
    re.I,
)
_FILLER_TOGETHER = deferred(rf"[{_SCRIPT}]{{1,6}}[:：]?[ \t]*(?=[!-~]{{4}})")
_ASCII_RUN = deferred("[!-~]{3,100}")
_CHANGE = deferred(rf"\b{words.CHANGED}\b", re.I)
_END = deferred(r"[.!?](?!\S)|\n")
_USER = deferred(rf"(?:\b(?:{any_of(words.USER)})\b|{any_of(words.USER_TOGETHER)})[^\n]{{0,50}}\Z", re.I)
_CLAUSE = deferred(r"(?:[ \t]+[^\s,;，。；！？、()\[\]{}<>\"'`]{1,40}){1,7}")
_LINE = deferred(r"(?:[ \t]+[^\s,;()\[\]{}<>\"'`=:/]{1,40}){1,5}(?=\s*(?:\n|\Z))")
_OWN = deferred(rf"(?:\b(?:{any_of(words.OWN)})\b|{any_of(words.OWN_TOGETHER)})[^\n.!?。]{{0,40}}\Z", re.I)
_PHRASE = deferred(r"pass ?phrase|phrase", re.I)
_JAPANESE_END = deferred(r"(?:です|だ|である|でした|입니다|이에요|예요)\Z")
_ABOUT = deferred(rf"(?:(?:{any_of(words.JOINS | words.ADJECTIVES)})\b|{words.ABOUT_TOGETHER})", re.I)
_PIN = deferred(r"\d{4,8}(?![A-Za-z\d_-]|[.:]\w)")
_BEFORE = deferred(
    rf"(?:(?P<quoted>{_QUOTES})|(?<![^\s])(?P<bare>[^\s\"'`<>(){{}}\[\]=]{{6,100}}))[ \t]+(?:{any_of(words.AS)})"
    rf"[ \t]+(?:[^\W\d]{{1,12}}[ \t]+){{0,3}}[^\W\d]{{0,20}}\Z",
    re.I,
)
_LOGIN = deferred(
    rf"\b(?:{any_of(words.CREDENTIALS)})\b(?:[ \t]+[a-zà-ÿ]{{1,12}}){{0,3}}[ \t]*:?[ \t]*[\"'`]?[\w.@+-]{{2,60}}[\"'`]?"
    rf"(?:[ \t]+(?:[/|]|and|und|et|y|e|和)[ \t]+|[ \t]*:)[\"'`]?"
    r"(?P<secret>[^\s\"'`„“«「『，。；！？、,;<>(){}\[\]]{4,100}(?<![.:]))",
    re.I,
)
_CODE = ("token", "secret", "apikey", "api-key")
_VERB = rf" (?:{any_of(words.IS)})[ \t:]"
CREDENTIAL_LITERALS = (
    rf"(?:{any_of(words.CREDENTIALS)})[^\n]*(?: (?:[/|]|and|und|et|y|e|和) |\w:\S)",
    rf"(?:^|[^a-z])(?:{any_of(words.SHORT)})(?: [^\n:=]+)?(?:[ \t]*[:=]|{_VERB})",
    rf"(?:^|[^a-z])(?:{any_of(words.PINS)})[^a-z0-9][^\n]*[0-9]{{4}}",
)
KEYS = (
    rf"(?:{any_of(words.KEYS)})(?:s|e?n|es)?(?: [^\n]*)?(?:{_VERB}|{words.IS_TOGETHER})",
    rf"(?:{any_of(name for name in words.KEYS if name not in _CODE)})(?: [^\n:]*)?[:：]",
)
"""The trigger of spoken keys, in the syntax of re2."""


class _SpokenName(NamedTuple):
    """A word for a secret and the word that assigns its value; `near` if only the owner is between them."""

    text: str
    at: int
    name: str
    says: str
    near: bool


def spoken(text: str, folded: str) -> Iterator[Span]:
    """The spans of passwords in prose."""
    for name in SPOKEN:
        place = folded.find(name)
        while place >= 0:
            span = _secret_of(text, place, name)
            if span:
                yield span
            before = _secret_before(text, place)
            if before:
                yield before
            place = folded.find(name, span.end if span else place + len(name))


def credentials(text: str, folded: str) -> Iterator[Span]:
    """The spans of credentials given with a user, "login: ada / …", "user ada, pw: …", and of PINs in prose."""
    for literal in words.CREDENTIALS:
        place = folded.find(literal)
        while place >= 0:
            found = _LOGIN.match(text, place)
            if found and is_value(found["secret"]) and STRONG.match(found["secret"]):
                yield Span(*found.span("secret"), "password")
            place = folded.find(literal, found.end() if found else place + len(literal))
    yield from _separate_names((*words.SHORT, *words.PINS), text, folded)


def keys(text: str, folded: str) -> Iterator[Span]:
    """The spans of tokens and keys in prose."""
    yield from _separate_names(words.KEYS, text, folded)


def _separate_names(names: Iterable[str], text: str, folded: str) -> Iterator[Span]:
    """The spans of values of names that are separate words."""
    for name in names:
        place = folded.find(name)
        while place >= 0:
            alone = bool(TOGETHER.match(name[-1])) or not re.match(r"\w", text[place - 1 : place])
            span = _secret_of(text, place, name) if alone else None
            if span:
                yield span
            place = folded.find(name, span.end if span else place + len(name))


@cache
def _says(name: str) -> re.Pattern[str]:
    """The word that assigns: a sign, or a form of "is" in the languages that have this name."""
    verbs = any_of((*words.IS, *words.IS_AFTER.get(name, ())))
    return re.compile(
        rf"(?P<sign>[:：](?!:)|(?<![=!<>+-])=(?![=>])|[—–→]|[-=]>|(?<=[ \t])-(?=[ \t]))|{words.IS_TOGETHER}"
        rf"|(?:(?<![\w-])(?:(?:{any_of(words.PRONOUNS)})[ \t]?)?(?:{verbs})|(?<=\w)['’]s)(?![\w-])"
        rf"|(?<=[ \t])(?P<became>{any_of(words.BECAME)})(?=[ \t])",
        re.IGNORECASE,
    )


def _secret_of(text: str, at: int, name: str) -> Span | None:
    ending = (_ENDING if name in SPOKEN else _SHORT_ENDING).match(text, at + len(name))
    if not ending:
        return None
    start = ending.end()
    sentence = _SENTENCE.match(text, start)
    verbs = _says(name).finditer(text, start, sentence.end() if sentence else start)
    for found in islice(verbs, _VERBS):
        between = text[start : found.start()]
        near = bool(_FOR.fullmatch(between)) and found[0] not in words.OBJECT
        tight = found[0] == "=" and between[-1:].isalnum()
        if not near and (tight or not _is_between(between)):
            continue
        if not found["became"] or (name in SPOKEN and _is_changed(text, at, found)):
            span = _value(_SpokenName(text, at, name, found[0], near), found.end())
            if span:
                return span
        if found["sign"]:
            return None
    return _value(_SpokenName(text, at, name, "", near=True), start) if name in SPOKEN else None


def _is_changed(text: str, at: int, became: re.Match[str]) -> bool:
    """Whether a verb of change precedes the new value or, as in German, follows it."""
    before = text[max(at - 60, 0) : became.start()]
    behind = text[became.end() : became.end() + 60]
    return bool(_CHANGE.search(_END.split(before)[-1]) or _CHANGE.search(_END.split(behind)[0]))


def _is_between(between: str) -> bool:
    """Whether these words may be between a secret and its value, rather than about something else."""
    if not _BETWEEN.fullmatch(between):
        return False
    said = between.lower().split()
    return (not said or said[0] not in words.OTHER) and words.CONJUNCTIONS.isdisjoint(said)


def _value(said: _SpokenName, at: int) -> Span | None:
    text = said.text
    filler = _FILLER.match(text, at) if said.says else None
    at = filler.end() if filler else at
    if TOGETHER.match(text, at) and not _ABOUT.match(text, at):
        together = _FILLER_TOGETHER.match(text, at)
        said, at = (said._replace(near=False), together.end()) if together else (said, at)
    if not said.says:
        blank = re.compile(r"[ \t]+").match(text, at)
        if not blank:
            return None
        at = blank.end()
    found = _VALUE.match(text, at)
    if not found:
        return None
    if found["quoted"]:
        value, begin, end = _unquoted(text, *found.span("quoted"))
        return Span(begin, end, "password") if _fits_quoted(said, value) else None
    begin, end = found.span("bare")
    value = text[begin:end]
    if TOGETHER.match(text, said.at):
        run = _ASCII_RUN.match(value)
        value = run[0] if run else value
    value = _JAPANESE_END.sub("", value.rstrip(".:!?…*"))
    last = _end_of_value(said, value, begin) if len(value) >= 3 and is_value(value) else 0
    return Span(begin, last, "password") if last else None


def _fits_quoted(said: _SpokenName, value: str) -> bool:
    """Whether the value may be anything, as it is quoted; "=" before quotes is code, which `assignments` handles."""
    if "=" in said.says or not is_quoted_value(value):
        return False
    if not said.says or said.name in words.SHORT:
        return bool(STRONG.match(value)) and _is_user_name(said)
    if said.name in SPOKEN and said.near:
        return True
    return _is_number(said, value) or _is_key(said, value) or (said.name in SPOKEN and is_strong(value))


def _end_of_value(said: _SpokenName, value: str, begin: int) -> int:
    """The end of the password that begins with this word, or 0 if it is not one."""
    text, end = said.text, begin + len(value)
    if said.name in words.SHORT or not said.says:
        # "user ada and password X"; in code and headings there are words here
        is_secret = is_odd(value) and "=" not in value and (said.says or len(value) >= 6)
        return end if is_secret and ((STRONG.match(value) and "=" not in said.says) or _is_user_name(said)) else 0
    if said.name not in SPOKEN:
        number = _PIN.match(text, begin)
        return end if (number and _is_number(said, value)) or _is_key(said, value) else 0
    if "=" in said.says and said.near:
        return 0
    if not said.near:
        return end if is_strong(value) else 0
    colon = said.says in (":", "：")
    if is_odd(value) and not is_thing(value) and not (colon and is_code(value) and said.name.startswith(words.IN_CODE)):
        line = _LINE.match(text, end) if colon else None
        return end + len(line[0].rstrip(".!?…")) if line else end
    clause = _CLAUSE.match(text, end)
    last = end + len(clause[0].rstrip(".:!?…")) if clause else end
    phrase = not colon and is_phrase(text[begin:last], 3 if _PHRASE.match(text, said.at) else 4)
    own = not _ABOUT.match(value) and _OWN.search(text, max(said.at - 60, 0), said.at)
    return last if phrase or own else 0


def _is_number(said: _SpokenName, value: str) -> bool:
    """Whether the value is a PIN, not the number of a chip's pin or a version."""
    capital = said.text.startswith("PIN", said.at) or said.name != "pin"
    own = _OWN.search(said.text, max(said.at - 60, 0), said.at)
    return said.name in words.PINS and bool(_PIN.fullmatch(value)) and bool(capital or own or said.says[:1].isalpha())


def _is_key(said: _SpokenName, value: str) -> bool:
    """Whether the value is a token or a key; most are in code, which `assignments` handles."""
    assigned = not said.says[:1].isalpha() and (not said.near or said.name in _CODE)
    about = HARMLESS.search(said.text[max(said.at - 20, 0) : said.at].rstrip())
    return said.name not in SPOKEN and len(value) >= 8 and is_strong(value) and not assigned and not about


def _secret_before(text: str, at: int) -> Span | None:
    """ "Use … as the password"."""
    found = _BEFORE.search(text, max(at - 160, 0), at)
    if not found:
        return None
    if found["quoted"]:
        value, begin, end = _unquoted(text, *found.span("quoted"))
        return Span(begin, end, "password") if is_quoted_value(value) else None
    value = found["bare"]
    if is_value(value) and STRONG.match(value) and is_odd(value):
        return Span(*found.span("bare"), "password")
    return None


def _unquoted(text: str, begin: int, end: int) -> tuple[str, int, int]:
    begin, end = begin + 1, end - 1
    while begin < end and text[begin].isspace():
        begin += 1
    while end > begin and text[end - 1].isspace():
        end -= 1
    return text[begin:end], begin, end


def _is_user_name(said: _SpokenName) -> bool:
    return bool(_USER.search(said.text, max(said.at - 60, 0), said.at))


_NAMED = deferred(
    rf"(?:(?:{any_of(SPOKEN)})\w{{0,4}}|(?P<other>\b(?:secret|token|api[ -]?key|credentials?|pin|schlüssel|geheimnis"
    r"|clé|llave|chave)\b|\bchiave\b|密钥|密鑰|令牌|トークン|秘密|토큰))(?:[ \t][^\n.!?:;,]{1,60}?)?"
    rf"(?:\s*[:：—–]|\s+(?:{any_of(words.IS)})\b|\s*(?:是|为|為|は|은|는))\s*"
    r"(?P<what>[^\n]{0,80})",
    re.IGNORECASE,
)


def names_password(line: str) -> bool:
    """Whether the line gives a password, passphrase, secret or token, even if its value is redacted."""
    is_given = "[redacted:" in line or any(
        _gives_value(found["what"], not found["other"]) for found in _NAMED.finditer(line)
    )
    return is_given or any(spoken(line, fold(line))) or any(credentials(line, fold(line)))


def _gives_value(what: str, password: bool) -> bool:
    what = what.lstrip("\"'`“„«「*_ ")
    word = what.split(maxsplit=1)[0].rstrip(".,;。!?") if what else ""
    if not word or _ABOUT.match(what):
        return False
    # one plain word may be a password, but not a secret or token
    alone = password and len(what.split()) <= 2 and not word.endswith(("ed", "ing")) and not TOGETHER.search(word)
    return alone or is_odd(word)
