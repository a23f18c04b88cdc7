"""Passwords that are said: "my gpg passphrase is …", "das Passwort ist …", «密码是 …».

What follows a name of a secret and a word that says what it is, is one, unless it says something about it ("the
password is stored in the vault"). Quoted it may be anything; without quotes it has a digit or a sign within it, or
follows a colon, or what it belongs to is the speaker's own ("my …"), and then it may be of several words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_pipeline.sessions.redaction.assignments import is_shown
from memory_pipeline.sessions.redaction.detectors import Span, fold

SPOKEN = (
    *("password", "passwd", "passphrase", "passcode", "passwort", "kennwort", "mot de passe"),
    *("phrase secrète", "contraseña", "clave", "senha", "密码", "密碼", "口令", "パスワード", "パスフレーズ"),
)
_NAME = (
    r"(?:pass(?:word|wd|phrase|code)|passwort|kennwort|mot de passe|phrase secrète|contraseña|clave|senha"
    r"|密码|密碼|口令|パスワード|パスフレーズ)"
)
_FOR = (
    r"(?:[ \t](?:for|of|to|on|für|von|vom|zum|zur|der|des|du|de|del|pour|para|en)\b[^\n.!?:;,，。：\"'`„«「“]{1,50}?)?"
)
_SAYS = (
    r"(?:[ \t]*[:：=][ \t]*"
    r"|[ \t]+(?:is|was|are|will be|should be|is now|is set to|ist|war|lautet|heißt|est|es|era|é)"
    r"(?:[ \t]*[:：][ \t]*|[ \t]+)|[ \t]*(?:是|为|為|は|が)[ \t]*[:：]?[ \t]*)"
)
_QUOTES = (
    r"\"[^\"\n]{3,100}\"|'[^'\n]{3,100}'|`[^`\n]{3,100}`|“[^”\n]{3,100}”|„[^“”\n]{3,100}[“”]|«[^»\n]{3,100}»"
    r"|「[^」\n]{3,100}」"
)
_SAID = re.compile(
    rf"{_NAME}(?:{_FOR}(?P<says>{_SAYS})|[ \t]+)"
    rf"(?:(?P<quoted>{_QUOTES})|(?P<bare>[^\s\"'`„“«「，。；！？、,;<>(){{}}\[\]]{{3,100}}))",
    re.IGNORECASE,
)
_USER = re.compile(
    r"(?:\b(?:user(?:name)?|login|account|benutzer|nutzer|usuario|utilisateur)\b|用户)[^\n]{0,50}\Z", re.I
)
_STRONG = re.compile(r"(?=.*\d)(?=.*[a-z])(?=.*(?:[A-Z]|[^\w\s])).+")
_CLAUSE = re.compile(r"(?:[ \t]+[^\s,;，。；！？、()\[\]{}<>\"'`]{1,40}){1,7}")
_SIGN = re.compile(r"\d|(?<=\w)[^\w\s.,:;/'’-](?=\w|$)|[a-z][A-Z]")
_OWN = re.compile(r"(?:\b(?:my|our|mein|unser|mon|notre|mi|nuestra|minha)\b|我的|私の)[^\n.!?。]{0,40}\Z", re.I)
_JAPANESE_END = re.compile(r"(?:です|だ|である|でした)\Z")
_ABOUT = re.compile(
    r"(?:(?:not|never|no|stored|kept|saved|in|on|at|the|a|an|wrong|incorrect|required|optional|empty|missing|set|validated|checked|"
    r"needed|used|hashed|encrypted|invalid|expired|reset|changed|being|that|what|too|always|only|also|still|now|already|"
    r"read|sent|part|same|different|like|from|for|to|as|hard|case|nicht|im|in|falsch|richtig|leer|nötig|gespeichert|"
    r"der|die|das|ein|eine|dans|pas|le|la|un|une|en|incorrecta|requerida|no|el|obligatoire|incorrect|required)\b"
    r"|必|不|错|錯|存|空|没|正|无|無|必要|間|违|由|用|在|保)",
    re.I,
)


def spoken(text: str, folded: str) -> Iterator[Span]:
    """What is said to be a password."""
    for name in SPOKEN:
        place = folded.find(name)
        while place >= 0:
            span = _said(text, place)
            if span:
                yield span
            place = folded.find(name, span.end if span else place + len(name))


def _said(text: str, at: int) -> Span | None:
    found = _SAID.match(text, at)
    if not found:
        return None
    says = found["says"] or " "
    if found["quoted"]:
        begin, end = found.span("quoted")
        begin, end = begin + 1, end - 1
        value = text[begin:end]
        # a space alone is no verb, and "=" before quotes is code, which `assignments` judges
        if "=" in says or (says.isspace() and not (_STRONG.match(value) and _USER.search(text, max(at - 60, 0), at))):
            return None
        # words in a script of their own may be quoted as well
        return Span(begin, end, "password") if _is_value(value) or (value.isalpha() and not value.isascii()) else None
    begin, end = found.span("bare")
    value = text[begin:end].rstrip(".:!?…")
    value = _JAPANESE_END.sub("", value)
    end = begin + len(value)
    if len(value) < 3 or not _is_value(value) or "=" in says:
        return None
    colon = bool(re.search("[:：]", says))
    if says.isspace():
        # "user ada and password X"; code and headings have words here
        told = _STRONG.match(value) or _USER.search(text, max(at - 60, 0), at)
        return (
            Span(begin, end, "password") if len(value) >= 6 and _is_odd(value) and "=" not in value and told else None
        )
    if _is_odd(value) and not (colon and says.strip() == ":" and _is_code(value)):
        return Span(begin, end, "password")
    own = _OWN.search(text, max(at - 60, 0), at)
    if own and not _ABOUT.match(value):
        more = _CLAUSE.match(text, end)
        rest = more[0].rstrip(".:!?…") if more and not text[end : end + 1].strip(" \t") else ""
        return Span(begin, end + len(rest), "password")
    return None


def _is_odd(value: str) -> bool:
    """Whether it is no word: with a digit, or with a sign or a capital within it."""
    return len(value) >= 4 and bool(_SIGN.search(value)) and value.isascii()


def _is_code(value: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z_][\w.]*[;,]?|.*[(){}].*", value))


def _is_value(value: str) -> bool:
    refers = value.startswith(("$", "<", "{", "%", "/", "~/", "-"))
    return is_shown(value.strip()) and "[redacted" not in value and not refers


_NAMED = re.compile(
    rf"(?:{_NAME}|\b(?:secret|token|api[ -]?key|credentials?|pin|schlüssel|geheimnis|clé|llave|chave)\b"
    r"|密钥|密鑰|令牌|トークン|秘密)(?:[ \t][^\n.!?:;,]{1,60}?)?"
    r"(?:\s*[:：]|\s+(?:is|was|ist|war|lautet|heißt|est|es|era|é)\b|\s*(?:是|为|為|は))\s*"
    r"(?P<what>[^\n]{0,80})",
    re.IGNORECASE,
)


def names_password(line: str) -> bool:
    """Whether it says what a password, passphrase, secret or token is; also when its value is redacted."""
    told = "[redacted:" in line or any(_tells(found["what"]) for found in _NAMED.finditer(line))
    return told or any(spoken(line, fold(line)))


def _tells(what: str) -> bool:
    what = what.lstrip("\"'`“„«「*_ ")
    word = what.split(maxsplit=1)[0] if what else ""
    return bool(word) and not _ABOUT.match(what) and _is_odd(word.rstrip(".,;。"))
