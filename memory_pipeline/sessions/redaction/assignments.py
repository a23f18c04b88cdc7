"""Values that are assigned to the name of a secret: in code, in listings of the environment, on command lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memory_pipeline.sessions.redaction import values
from memory_pipeline.sessions.redaction.detectors import Span

# Names of secrets, in lower case. They are looked for one by one, which is far faster than one pattern for all.
NAMES = ("pass", "pwd", "secret", "token", "key", "credential")
_KINDS = {"pass": "password", "pwd": "password", "token": "token", "key": "api-key"}
_KEY_PREFIXES = tuple(
    kind + joint
    for kind in (
        *("api", "access", "private", "encryption", "signing", "auth", "account", "master", "service", "storage"),
        *("role", "client", "webhook", "deploy", "license", "subscription", "hmac", "jwt", "app", "admin", "shared"),
    )
    for joint in ("", "_", "-")
)
_NAME = (
    r"(?:passw(?:or)?d|passphrase|pass|pwd|secret(?:[_-]?(?:access[_-]?)?key(?:_base)?)?|token|key|credentials?)"
    r"(?:_(?:PROD(?:UCTION)?|STAGING|DEV|TEST|LIVE|MAIN|PRIMARY|SECONDARY|OLD|NEW|VALUE|\d{1,3}))?"
)
_ASSIGNMENT = re.compile(
    _NAME + r"""\\*["']?\]?(?:"""
    r"""\s{0,40}(?P<sign>:=|=>|[!=]?==?|:)\s{0,40}|(?P<flag> +)|(?P<tag>>)|"""
    # a list of names and values, as in Kubernetes
    r"""(?:\s|\\+n){0,40},?(?:\s|\\+n){0,40}\\*["']?value\\*["']?(?P<pair>:)\s{0,40})"""
    r"""(?:[brfu@]{0,2}(?P<quote>\\*["'`])(?P<quoted>[^"'`\\\r\n]{4,400})(?=\\*["'`])|"""
    r"""(?P<bare>[^\s"'`(){}\[\],;<>\\]{4,}+)(?![(\[]))""",
    re.IGNORECASE,
)
_ENVIRONMENT_VALUE = re.compile(r"[^\s\"'`\\]{6,}")
_WORD_BACKWARDS = re.compile(r"[\w.-]{0,60}")
# Tokens and keys of paging, caching, counting and the like; what is public; and what a parser calls a token.
_HARMLESS = re.compile(
    r"(?:^|[_.-])(?:page|next|prev|previous|continuation|resume|sync|cursor|idempotency|cache|public|primary|foreign|"
    r"sort|partition|max|min|num|total|count|input|output|prompt|completion|eos|bos|pad|unk|mask|sep|cls|stop|by)"
    r"[_.-]?$",
    re.IGNORECASE,
)


class _Place(NamedTuple):
    """A name of a secret with the word before it, as far as it belongs to the name."""

    name: str
    prefix: str
    start: int
    before: str


def assignments(text: str, folded: str) -> Iterator[Span]:
    """The literal secrets that are assigned to such a name."""
    for name in NAMES:
        place = folded.find(name)
        while place >= 0:
            span = _assigned(text, folded, name, place)
            if span:
                yield span
            place = folded.find(name, span.end if span else place + len(name))


def _assigned(text: str, folded: str, name: str, at: int) -> Span | None:
    if name == "key" and not folded.endswith(_KEY_PREFIXES, max(at - 20, 0), at):
        return None
    found = _ASSIGNMENT.match(text, at)
    if not found:
        return None
    # a letter before it makes it another word, unless a capital begins it: bypass, dbPass
    full = name not in ("pass", "pwd") or folded.startswith(("passw", "passphrase"), at)
    if not full and text[at - 1 : at].isalpha() and text[at].islower():
        return None
    word = _WORD_BACKWARDS.match(text[max(at - 60, 0) : at][::-1])
    prefix = word[0][::-1] if word else ""
    start = at - len(prefix)
    # the user of a URL, which has a detector of its own
    if text.endswith("://", 0, start):
        return None
    place = _Place(found[0][: len(name)], prefix, start, text[max(start - 8, 0) : start])
    group = "quoted" if found["quoted"] else "bare"
    begin, end = found.span(group)
    if group == "bare":
        end = _end_of_bare(text, found, place)
    if not _is_secret(text[begin:end], found, place, _KINDS.get(name, "secret")):
        return None
    return Span(begin, end, _KINDS.get(name, "secret"))


def _end_of_bare(text: str, found: re.Match[str], place: _Place) -> int:
    begin, end = found.span("bare")
    if place.before.endswith(("?", "&", ";")):
        return begin + len(re.split("[&#;]", text[begin:end], maxsplit=1)[0])
    listed = not place.before.strip(" ") or place.before.endswith(("\n", "\\", "export ", "-e ", "ENV "))
    if listed and _is_environment(found, place):
        whole = _ENVIRONMENT_VALUE.match(text, begin)
        return whole.end() if whole else end
    return end


def _is_environment(found: re.Match[str], place: _Place) -> bool:
    """Whether it is written as a shell or a connection string does: `DB_PASSWORD=…`, `;Password=…`."""
    tight = found["sign"] == "=" and "= " not in found[0] and " =" not in found[0]
    return tight and (place.name.isupper() or place.before.endswith(("?", "&", ";")))


def _is_secret(value: str, found: re.Match[str], place: _Place, kind: str) -> bool:
    if values.is_reference(value) or _HARMLESS.search(place.prefix) or "[redacted" in value:
        return False
    if found["tag"] and not found.string.startswith("</", found.end()):
        return False
    if found["flag"] and (not place.prefix.startswith("--") or value.startswith("-") or values.is_words(value)):
        return False
    environment = _is_environment(found, place)
    at_least = 4 if found["flag"] or environment and place.before.endswith(("?", "&", ";")) else 6
    if len(value) < (at_least if kind == "password" else 8):
        return False
    if kind != "password" and (
        value.isdigit() or values.is_words(value) and not (environment and place.name.isupper())
    ):
        return False
    if kind == "token" and values.is_checksum(value) and not (environment or place.prefix.lower().endswith("_auth")):
        return False
    if found["quoted"]:
        return environment or not any(map(str.isspace, value))
    if environment or found["flag"]:
        return not value.isspace()
    # without quotes it may as well be code, except in a listing of the environment
    return values.is_mixed(value) and not values.is_identifier(value)
