"""Passwords that are said: "my gpg passphrase is …", "das Passwort ist …", «密码是 …».

What follows a name of a secret and a word that says what it is, is one, unless it says something about it ("the
password is stored in the vault"). Quoted it may be anything; without quotes it has a digit or a sign within it, or
what it belongs to is the speaker's own ("my …"), or it is a phrase of words without any that joins them, and then it
may be of several words. The other way round ("use … as the password") it is quoted, or no word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memory_pipeline.sessions.redaction import spoken_words as words
from memory_pipeline.sessions.redaction.assignments import is_shown
from memory_pipeline.sessions.redaction.detectors import Span, fold


def _any(alternatives: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, alternatives), key=len, reverse=True))


SPOKEN = words.SPOKEN
_NAME = rf"(?:{_any(SPOKEN)}){words.ENDINGS}"
_FOR = rf"(?:[ \t](?:{_any(words.PREPOSITIONS)})\b[^\n.!?:;,，。：\"'`„«「“]{{1,50}}?)?"
_SAYS = (
    rf"(?:[ \t]*[:：=—–][ \t]*|[ \t]+(?:{_any(words.IS)})(?:[ \t]*[:：][ \t]*|[ \t]+)"
    r"|[ \t]*(?:是|为|為|は|が|은|는|이|가)[ \t]*[:：]?[ \t]*"
    + "".join(rf"|(?<={name})[ \t]+{verb}[ \t]+" for name, verb in words.IS_AFTER)
    + ")"
)
_QUOTES = (
    r"\"[^\"\n]{3,100}\"|'[^'\n]{3,100}'|`[^`\n]{3,100}`|“[^”\n]{3,100}”|„[^“”\n]{3,100}[“”]|«[^»\n]{3,100}»"
    r"|「[^」\n]{3,100}」|『[^』\n]{3,100}』|‘[^’\n]{3,100}’"
)
# where no blanks part the words, a value ends with its script
_TOGETHER = re.compile(r"[⺀-鿿가-힯]")
_BARE = r"[^\s\"'`„“«「『，。；！？、,;<>(){}\[\]]{3,100}"
_SAID = re.compile(
    rf"{_NAME}(?:{_FOR}(?P<says>{_SAYS})|[ \t]+)"
    rf"(?:(?P<quoted>{_QUOTES})|(?P<bare>{_BARE}))",
    re.IGNORECASE,
)
_ASCII_RUN = re.compile("[!-~]{3,100}")
_TO = re.compile(
    rf"{_NAME}{_FOR}[ \t]+(?:to|into|auf|à|en|a|para|in)[ \t]+(?:(?P<quoted>{_QUOTES})|(?P<bare>{_BARE}))", re.I
)
_CHANGE = re.compile(rf"\b{words.CHANGED}\b[^\n.!?]{{0,40}}\Z", re.I)
_USER = re.compile(rf"(?:\b(?:{_any(words.USER)})\b|{_any(words.USER_TOGETHER)})[^\n]{{0,50}}\Z", re.I)
_STRONG = re.compile(r"(?=.*\d)(?=.*[a-z])(?=.*(?:[A-Z]|[^\w\s])).+")
_CLAUSE = re.compile(r"(?:[ \t]+[^\s,;，。；！？、()\[\]{}<>\"'`]{1,40}){1,7}")
_SIGN = re.compile(r"\d|(?<=\w)[^\w\s.,:;/'’-](?=\w|$)|[a-z][A-Z]")
_OWN = re.compile(rf"(?:\b(?:{_any(words.OWN)})\b|{_any(words.OWN_TOGETHER)})[^\n.!?。]{{0,40}}\Z", re.I)
_PHRASE = re.compile(r"pass ?phrase|phrase", re.I)
_JAPANESE_END = re.compile(r"(?:です|だ|である|でした|입니다|이에요|예요)\Z")
_ABOUT = re.compile(rf"(?:(?:{_any(words.JOINS | words.ADJECTIVES)})\b|{words.ABOUT_TOGETHER})", re.I)
_BEFORE = re.compile(
    rf"(?:(?P<quoted>{_QUOTES})|(?<![^\s])(?P<bare>[^\s\"'`<>(){{}}\[\]=]{{6,100}}))[ \t]+(?:{_any(words.AS)})"
    rf"[ \t]+(?:[^\W\d]{{1,12}}[ \t]+){{0,3}}[^\W\d]{{0,20}}\Z",
    re.I,
)

_WORD = r"[^\s\"'`„“«「『，。；！？、,;<>(){}\[\]]{4,100}(?<![.:])"
_LOGIN = re.compile(
    rf"\b(?:{_any(words.CREDENTIALS)})\b(?:[ \t]+[a-zà-ÿ]{{1,12}}){{0,3}}[ \t]*:?[ \t]*[\"'`]?[\w.@+-]{{2,60}}[\"'`]?"
    rf"(?:[ \t]+(?:[/|]|and|und|et|y|e|和)[ \t]+|[ \t]*:)[\"'`]?(?P<secret>{_WORD})",
    re.I,
)
_SHORT = re.compile(
    rf"\b(?:{_any(words.SHORT)}){_FOR}(?:[ \t]*[:=][ \t]*|[ \t]+(?:is|ist|est)[ \t]+)[\"'`]?(?P<secret>{_WORD})", re.I
)
_PIN = re.compile(
    rf"\b(?:{_any(words.PINS)})(?:[ -](?:code|number|nummer))?{_FOR}{_SAYS}[\"'`]?(?P<secret>\d{{4,8}})\b", re.I
)
TOLD = (
    rf"(?:{_any(words.CREDENTIALS)})[^\n]*(?: (?:[/|]|and|und|et|y|e|和) |\w:\S)",
    rf"(?:^|[^a-z])(?:{_any(words.SHORT)})(?: [^\n:=]+)?(?:[ \t]*[:=]| is)",
    rf"(?:^|[^a-z])(?:{_any(words.PINS)})[^a-z0-9][^\n]*[0-9]{{4}}",
)
"""What tells that something may be, in the syntax of re2."""


def spoken(text: str, folded: str) -> Iterator[Span]:
    """What is said to be a password."""
    for name in SPOKEN:
        place = folded.find(name)
        while place >= 0:
            span = _said(text, place) or _set_to(text, place)
            if span:
                yield span
            before = _said_before(text, place)
            if before:
                yield before
            place = folded.find(name, span.end if span else place + len(name))


def told(text: str, folded: str) -> Iterator[Span]:
    """What is told with a user, "login: ada / …", "user ada, pw: …", and numbers that are said to be a PIN."""
    for found in _matches(_LOGIN, words.CREDENTIALS, text, folded):
        if _is_value(found["secret"]) and _STRONG.match(found["secret"]):
            yield Span(*found.span("secret"), "password")
    for found in _matches(_SHORT, words.SHORT, text, folded):
        strong = _STRONG.match(found["secret"]) and "=" not in found[0]
        if _is_value(found["secret"]) and _is_odd(found["secret"]) and (strong or _names_user(text, found.start())):
            yield Span(*found.span("secret"), "password")
    for found in _matches(_PIN, words.PINS, text, folded):
        if "PIN" in found[0] or _OWN.search(text, max(found.start() - 60, 0), found.start()):
            yield Span(*found.span("secret"), "password")


def _matches(pattern: re.Pattern[str], literals: Iterable[str], text: str, folded: str) -> Iterator[re.Match[str]]:
    for literal in literals:
        place = folded.find(literal)
        while place >= 0:
            found = pattern.match(text, place)
            if found:
                yield found
            place = folded.find(literal, found.end() if found else place + len(literal))


def _said(text: str, at: int) -> Span | None:
    found = _SAID.match(text, at)
    if not found:
        return None
    says = found["says"] or " "
    if found["quoted"]:
        begin, end = found.span("quoted")
        value, begin, end = _unquoted(text, begin, end)
        # a space alone is no verb, and "=" before quotes is code, which `assignments` judges
        if "=" in says or (says.isspace() and not (_STRONG.match(value) and _names_user(text, at))):
            return None
        return Span(begin, end, "password") if _is_quoted_value(value) else None
    begin, end = found.span("bare")
    value = text[begin:end]
    if _TOGETHER.match(text, at):
        run = _ASCII_RUN.match(value)
        value = run[0] if run else value
    value = _JAPANESE_END.sub("", value.rstrip(".:!?…"))
    end = begin + len(value)
    if len(value) < 3 or not _is_value(value) or "=" in says:
        return None
    if says.isspace():
        # "user ada and password X"; code and headings have words here
        told = (
            len(value) >= 6 and _is_odd(value) and "=" not in value and (_STRONG.match(value) or _names_user(text, at))
        )
        return Span(begin, end, "password") if told else None
    colon = says.strip() == ":"
    if _is_odd(value) and not (colon and _is_code(value) and text.startswith(words.IN_CODE, at)):
        return Span(begin, _end_of_words(text, end) if colon else end, "password")
    last = _end_of_clause(text, end)
    phrase = not colon and _is_phrase(text[begin:last], 3 if _PHRASE.match(text, at) else 4)
    own = not _ABOUT.match(value) and _OWN.search(text, max(at - 60, 0), at)
    return Span(begin, last, "password") if phrase or own else None


def _set_to(text: str, at: int) -> Span | None:
    """ "Change the password to …"."""
    found = _TO.match(text, at)
    if not found or not _CHANGE.search(text, max(at - 60, 0), at):
        return None
    if found["quoted"]:
        value, begin, end = _unquoted(text, *found.span("quoted"))
        return Span(begin, end, "password") if _is_quoted_value(value) else None
    value = found["bare"].rstrip(".:!?…")
    begin = found.start("bare")
    return Span(begin, begin + len(value), "password") if _is_value(value) and _is_odd(value) else None


def _said_before(text: str, at: int) -> Span | None:
    """ "Use … as the password"."""
    found = _BEFORE.search(text, max(at - 160, 0), at)
    if not found:
        return None
    if found["quoted"]:
        value, begin, end = _unquoted(text, *found.span("quoted"))
        return Span(begin, end, "password") if _is_quoted_value(value) else None
    value = found["bare"]
    if _is_value(value) and _STRONG.match(value) and _is_odd(value):
        return Span(*found.span("bare"), "password")
    return None


def _unquoted(text: str, begin: int, end: int) -> tuple[str, int, int]:
    begin, end = begin + 1, end - 1
    while begin < end and text[begin].isspace():
        begin += 1
    while end > begin and text[end - 1].isspace():
        end -= 1
    return text[begin:end], begin, end


def _names_user(text: str, at: int) -> bool:
    return bool(_USER.search(text, max(at - 60, 0), at))


def _end_of_clause(text: str, end: int) -> int:
    more = _CLAUSE.match(text, end)
    return end + len(more[0].rstrip(".:!?…")) if more else end


def _end_of_words(text: str, end: int) -> int:
    """Behind a colon the whole line is the password, where it is short."""
    more = re.compile(r"(?:[ \t]+[^\s,;()\[\]{}<>\"'`=:/]{1,40}){1,5}(?=\s*(?:\n|\Z))").match(text, end)
    return end + len(more[0].rstrip(".!?…")) if more else end


def _is_phrase(clause: str, at_least: int) -> bool:
    """Whether it is a row of words of which none joins the others."""
    said = clause.lower().split()
    return (
        at_least <= len(said) <= 8
        and all(word.isalpha() and len(word) >= 3 and word not in words.JOINS for word in said)
        and not said[0].endswith(("ed", "ing", "ly", "able", "ert", "tet"))
    )


def _is_odd(value: str) -> bool:
    """Whether it is no word: with a digit, or with a sign or a capital within it."""
    return len(value) >= 4 and bool(_SIGN.search(value)) and not _TOGETHER.search(value)


def _is_code(value: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z_][\w.]*[;,]?|.*[(){}].*", value))


def _is_value(value: str) -> bool:
    refers = value.startswith(("$", "<", "{", "%", "/", "~/", "-"))
    return is_shown(value.strip()) and "[redacted" not in value and not refers


def _is_quoted_value(value: str) -> bool:
    # words in a script of their own may be quoted as well
    return len(value) >= 3 and (_is_value(value) or (value.replace(" ", "").isalpha() and not value.isascii()))


_NAMED = re.compile(
    rf"(?:{_NAME}|(?P<other>\b(?:secret|token|api[ -]?key|credentials?|pin|schlüssel|geheimnis|clé|llave|chave)\b"
    r"|\bchiave\b|密钥|密鑰|令牌|トークン|秘密|토큰))(?:[ \t][^\n.!?:;,]{1,60}?)?"
    rf"(?:\s*[:：—–]|\s+(?:{_any(words.IS)})\b|\s*(?:是|为|為|は|은|는))\s*"
    r"(?P<what>[^\n]{0,80})",
    re.IGNORECASE,
)


def names_password(line: str) -> bool:
    """Whether it says what a password, passphrase, secret or token is; also when its value is redacted."""
    told_so = "[redacted:" in line or any(_tells(found["what"], not found["other"]) for found in _NAMED.finditer(line))
    return told_so or any(spoken(line, fold(line))) or any(told(line, fold(line)))


def _tells(what: str, password: bool) -> bool:
    what = what.lstrip("\"'`“„«「*_ ")
    word = what.split(maxsplit=1)[0].rstrip(".,;。!?") if what else ""
    if not word or _ABOUT.match(what):
        return False
    # one plain word may be a password, but not whatever else is called secret or token
    alone = password and len(what.split()) <= 2 and not word.endswith(("ed", "ing")) and not _TOGETHER.search(word)
    return alone or _is_odd(word)
