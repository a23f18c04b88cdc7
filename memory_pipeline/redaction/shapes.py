"""Shapes of passwords in prose: whether a token is not an ordinary word."""

from __future__ import annotations

import re

from memory_pipeline.redaction import spoken_words as words
from memory_pipeline.redaction.assignments import is_checksum, is_identifier, is_shown
from memory_pipeline.text.regex import deferred

TOGETHER = deferred(r"[⺀-鿿가-힯]")
"""A character of a script without blanks between words, which ends a value."""
STRONG = deferred(r"(?=.*\d)(?=.*[a-z])(?=.*(?:[A-Z]|[^\w\s])).+")
_SIGN = deferred(r"\d|(?<=\w)[^\w\s.,:;/'’-](?=\w|$)|[a-z][A-Z]")
_CODE = deferred(r"[A-Za-z_][\w.]*[;,]?|.*[(){}].*")
# Versions, times and sizes, algorithms, files and hosts, addresses, and paths, which also have digits or signs.
_THING = deferred(
    r"v?\d+(?:\.\d+)+[-.]?\w{0,8}|(?:[v~≥≤]\d{1,4}|\d+[.:/×-]\d+)(?:[.:/×-]\d+)*\+?|\d{1,4}(?:[.:]\d+)?(?:-[^\W\d]+|ms|[smhdkx%]|[kmgt]i?b|px|st|nd|rd|th|bits?|bytes?|chars?|stellig\w*|\+)"
    r"|(?:sha|md|rs|hs|es|ps|aes|rsa|utf|base|oauth|argon|bcrypt|scrypt|pbkdf|ed|x|p|ipv|http|tls|totp|iso|k|s|i)"
    r"[-_]?v?\d{1,5}(?:id|[iden]|ed|url)?(?:[-_/].+)?"
    r"|.+\.(?:pyi?|[cm]?[jt]sx?|jsonl?|ya?ml|toml|md|txt|sh|env|go|rs|rb|php|java|sql|html?|s?css|conf|cfg|ini|log"
    r"|pem|key|kdbx|xml|csv|db|zip|gz|dev|com|org|net|io|local|internal)(?::\d+)*"
    r"|\.env.*|1password|[\w.+-]+@[\w-]+(?:\.[\w-]+)+|[\w.-]+/[\w./-]+",
    re.IGNORECASE,
)
_NAME_IN_CODE = deferred(
    r"[A-Za-z]+(?:_[A-Za-z]+)*(?:_?\d{1,2}|_[A-Za-z]\w*)|[a-z]+(?:-[a-z]+)*-v?\d{1,2}|\w+(?:\.\w+)+"
)
_SECRET = deferred(r"(?=.*\d)(?=.*[^\W\d_]).{6,}|(?=.*\w[!@#$%^&*?~€§]\w)(?=.*[a-z])(?=.*[A-Z]).{6,}")


def is_odd(value: str) -> bool:
    """Whether the value is not a word: it has a digit, or an inner sign or capital."""
    return len(value) >= 4 and bool(_SIGN.search(value)) and not TOGETHER.search(value)


def is_strong(value: str) -> bool:
    """Whether the token has the shape of a secret, so that it counts as one even after other words."""
    return is_phrase(value.replace("-", " "), 4) or (
        bool(_SECRET.match(value))
        and not TOGETHER.search(value)
        and not is_thing(value)
        and not is_checksum(value)
        and not is_identifier(value)
        and (not _NAME_IN_CODE.fullmatch(value) or bool(STRONG.match(value)))
    )


def is_thing(value: str) -> bool:
    """Whether the value is a version, a size, an algorithm, a file, a host or an address."""
    return bool(_THING.fullmatch(value))


def is_code(value: str) -> bool:
    """Whether the value is probably a name or a call in code."""
    return bool(_CODE.fullmatch(value))


def is_phrase(clause: str, at_least: int) -> bool:
    """Whether the clause is a sequence of words without a connecting word."""
    said = clause.lower().split()
    return (
        at_least <= len(said) <= 8
        and all(word.isalpha() and len(word) >= 3 and word not in words.JOINS for word in said)
        and not said[0].endswith(("ed", "ing", "ly", "able", "ert", "tet"))
    )


def is_value(value: str) -> bool:
    """Whether the value is complete, and not a reference."""
    refers = value.startswith(("$", "<", "{", "%", "/", "~/", "-"))
    return is_shown(value.strip()) and "[redacted" not in value and not refers


def is_quoted_value(value: str) -> bool:
    """Whether the value may be a password if it is quoted, including words in another script."""
    return len(value) >= 3 and (is_value(value) or (value.replace(" ", "").isalpha() and not value.isascii()))
