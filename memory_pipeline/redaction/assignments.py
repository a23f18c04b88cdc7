"""Values that are assigned to the name of a secret: in code, in environment listings, on command lines.

The last part of the module decides whether such a value is a literal secret, rather than a reference, a placeholder, a
path, a word or a checksum.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memory_pipeline.redaction.detectors import Span
from memory_pipeline.text.regex import deferred

# Names of secrets, in lower case. They are searched one by one, which is far faster than one pattern for all.
NAMES = ("pass", "pwd", "secret", "token", "key", "credential")
_KINDS = {"pass": "password", "pwd": "password", "token": "token", "key": "api-key"}
_KEYS = (
    *("api", "access", "private", "encryption", "signing", "auth", "account", "master", "service", "storage"),
    *("role", "client", "webhook", "deploy", "license", "subscription", "hmac", "jwt", "app", "admin", "shared"),
    *("iam", "ibm", "cloudant", "softlayer"),
)
_KEY_PREFIXES = tuple(kind + joint for kind in _KEYS for joint in ("", "_", "-"))
_NAMED = (
    r"(?:pass(?:w(?:or)?[dt]|phrase)?|pwd|secret(?:[_-]?(?:access[_-]?)?key(?:_base)?)?|token"
    rf"|(?:{'|'.join(_KEYS)})[_-]?key|credentials?)"
)
ASSIGNED = (
    # a sign after the name with a value, or its escape; or a flag
    _NAMED
    + r"(?:_\w{1,12})?[\\\"']*\]?\s*(?:[:=!>]+\s*(?:[brfu@]{0,2}\\*[\"'`][^\"'`\s]{3}|[^\s(){}\[\],;<>\"'`\\]{4}|\x1b)"
    r"|[%&\x1b]|\\+[xu0e]|,?(?:\s|\\+n)*\\*[\"']?value\\*[\"']?:)",
    rf"--[\w-]*{_NAMED}[\w-]* ",
)
"""The trigger of assignments, in the syntax of re2."""
_NAME = (
    r"(?:passw(?:or)?[dt]|passphrase|pass|pwd|secret(?:[_-]?(?:access[_-]?)?key(?:_base)?)?|token|key|credentials?)"
    r"(?:_(?:PROD(?:UCTION)?|STAGING|DEV|TEST|LIVE|MAIN|PRIMARY|SECONDARY|OLD|NEW|VALUE|\d{1,3}))?"
)
_ASSIGNMENT = deferred(
    _NAME + r"""\\*["']?\]?(?:"""
    r"""\s{0,40}(?P<sign>:=|=>|[!=]?==?|:)\s{0,40}|(?P<flag> +)|(?P<tag>>)|"""
    # a list of names and values, as in Kubernetes
    r"""(?:\s|\\+n){0,40},?(?:\s|\\+n){0,40}\\*["']?value\\*["']?(?P<pair>:)\s{0,40})"""
    r"""(?:[brfu@]{0,2}(?P<quote>\\*["'`])(?P<quoted>[^"'`\\\r\n]{4,})(?=\\*["'`])|"""
    r"""(?P<bare>[^\s"'`(){}\[\],;<>\\]{4,128}+)(?![(\[]))""",
    re.IGNORECASE,
)
_JUDGED = 128
_BARE_VALUE = deferred(r"[^\s\"'`(){}\[\],;<>\\]+")
_QUERY_VALUE = deferred(r"[^\s\"'`<>\\&#;]+")
_ENVIRONMENT_VALUE = deferred(r"[^\s\"'`\\]+")
_WORD_BACKWARDS = deferred(r"[\w.-]{0,60}")
# Tokens and keys for paging, caching, counting and the like; public ones; and tokens of a parser.
HARMLESS = deferred(
    r"(?:^|[_.-])(?:page|next|prev|previous|continuation|resume|sync|cursor|idempotency|cache|public|primary|foreign|"
    r"sort|partition|max|min|num|total|count|input|output|prompt|completion|eos|bos|pad|unk|mask|sep|cls|stop|by)"
    r"[_.-]?$",
    re.IGNORECASE,
)

_REFERENCE = deferred(
    # variables, paths, URLs and calls
    r"\$.*|%\w+%?|[{<\[(].*|@[\w./-]+|(?:[A-Za-z]:|~|\.{0,2})[\\/][\w.@-]+(?:[\\/].*)?|[a-z][a-z0-9+.-]*://.*|"
    r"(?:[a-z_]\w*\.)*[a-z_]\w*\(.*",
    re.IGNORECASE | re.DOTALL,
)
_PLACEHOLDER = deferred(
    r"(.)\1+|(?:my|your|some|the|a|insert|replace|enter|put|add|set|use|no|not|fake|dummy|sample|test|mock)[_-].*|"
    r"(?:.*[_.-])?(?:example|dummy|fake|sample|todo|tbd)(?:[_.-].*)?",
    re.IGNORECASE | re.DOTALL,
)
# Lower-case parts that identify a reference or a placeholder.
_TELLING = (
    *("environ", "getenv", "process.env", "import.meta", "secrets.", "${", "{{"),
    *("...", "…", "***", "xxxxx", "redacted", "placeholder", "changeme", "change_me", "change-me"),
)
_NAME_OF_VARIABLE = deferred(r"[A-Z]+(?:_[A-Z]+)+")
_WORDS = deferred(r"[A-Za-z]?[a-z]+(?:[-_. /][A-Za-z]?[a-z]+)*|[a-z]+(?:[A-Z][a-z]+)+")
# A name in code, possibly with a digit: `self.token2`, `secretKey1`.
_IDENTIFIER = deferred(
    r"[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+;?|[A-Za-z_]*(?:token|secret|passw|key|auth|cred)\w*;?", re.IGNORECASE
)
_CHECKSUM = deferred(
    r"(?:sha\d+[-:=])?(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})|sha\d+[-:=].+|"
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    re.IGNORECASE,
)
_ALPHANUMERIC = deferred("[A-Za-z0-9]")
# fmt: off
_PLAIN_WORDS = frozenset({
    "password", "passwords", "passwd", "passphrase", "undefined", "required", "optional", "disabled", "enabled",
    "nullable", "credentials", "description", "validation", "authentication", "authorization", "username", "user",
    "pass", "guest", "string", "number", "boolean", "null", "none", "true", "false", "secret", "token", "apikey",
    "hidden", "invalid", "missing", "default", "bearer", "basic", "unknown",
})
# fmt: on


class _Place(NamedTuple):
    """The name of a secret, with the word before it if that is part of the name."""

    name: str
    prefix: str
    start: int
    before: str


def assignments(text: str, folded: str) -> Iterator[Span]:
    """The spans of literal secrets that are assigned to such a name."""
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
    # a test that passed
    if text.endswith("--- ", 0, at):
        return None
    found = _ASSIGNMENT.match(text, at)
    if not found:
        return None
    # a preceding letter makes it another word, unless it begins with a capital: bypass, dbPass
    full = name not in ("pass", "pwd") or folded.startswith(("passw", "passphrase"), at)
    if not full and text[at - 1 : at].isalpha() and text[at].islower():
        return None
    word = _WORD_BACKWARDS.match(text[max(at - 60, 0) : at][::-1])
    prefix = word[0][::-1] if word else ""
    start = at - len(prefix)
    # the user in a URL, which has its own detector
    if text.endswith("://", 0, start):
        return None
    place = _Place(found[0][: len(name)], prefix, start, text[max(start - 8, 0) : start])
    if found["quoted"]:
        begin, end = found.span("quoted")
        return Span(begin, end, _kind(name)) if _is_secret(found["quoted"], found, place, _kind(name)) else None
    begin = found.start("bare")
    # an empty value before the next line
    if "\n" in text[at:begin] and found["sign"] and "=" in found["sign"]:
        return None
    run = _run_of(found, place)
    # judged by its first part, or a text of names only would take forever
    head = run.match(text, begin, begin + _JUDGED)
    whole = run.match(text, begin) if head and _is_secret(head[0], found, place, _kind(name)) else None
    return Span(begin, whole.end(), _kind(name)) if whole else None


def _kind(name: str) -> str:
    return _KINDS.get(name, "secret")


def _run_of(found: re.Match[str], place: _Place) -> re.Pattern[str]:
    """The end of a value without quotes."""
    if place.before.endswith(("?", "&", ";")):
        return _QUERY_VALUE
    listed = not place.before.strip(" ") or place.before.endswith(("\n", "\\", "export ", "-e ", "ENV "))
    return _ENVIRONMENT_VALUE if listed and _is_environment(found, place) else _BARE_VALUE


def _is_environment(found: re.Match[str], place: _Place) -> bool:
    """Whether it has the form of a shell variable or a connection string: `DB_PASSWORD=…`, `;Password=…`."""
    tight = found["sign"] == "=" and "= " not in found[0] and " =" not in found[0]
    return tight and (place.name.isupper() or place.before.endswith(("?", "&", ";")))


def _is_secret(value: str, found: re.Match[str], place: _Place, kind: str) -> bool:
    environment = _is_environment(found, place)
    # without quotes it may be code, except in a listing of the environment
    code = not (found["quoted"] or environment or found["flag"])
    if code and not is_mixed(value):
        return False
    if is_reference(value) or HARMLESS.search(place.prefix) or "[redacted" in value:
        return False
    if found["tag"] and not found.string.startswith("</", found.end()):
        return False
    if found["flag"] and (not place.prefix.startswith("--") or value.startswith("-") or is_words(value)):
        return False
    at_least = 4 if found["flag"] or (environment and place.before.endswith(("?", "&", ";"))) else 6
    if len(value) < (at_least if kind == "password" else 8):
        return False
    if kind != "password" and (value.isdigit() or (is_words(value) and not (environment and place.name.isupper()))):
        return False
    if kind == "token" and is_checksum(value) and not (environment or place.prefix.lower().endswith("_auth")):
        return False
    if found["quoted"]:
        return environment or not any(map(str.isspace, value))
    return not (code and is_identifier(value))


def is_reference(value: str) -> bool:
    """Whether the value refers to something else, or is a placeholder of a secret."""
    lowered = value.lower()
    return bool(
        any(part in lowered for part in _TELLING)
        or _REFERENCE.fullmatch(value)
        or _PLACEHOLDER.fullmatch(value)
        or _NAME_OF_VARIABLE.fullmatch(value)
        or lowered.rstrip(";,.") in _PLAIN_WORDS
        # words in another script
        or not _ALPHANUMERIC.search(value)
    )


def is_checksum(value: str) -> bool:
    """Whether the value is the hash of something, or a UUID."""
    return bool(_CHECKSUM.fullmatch(value))


def is_words(value: str) -> bool:
    """Whether the value consists of lower-case words, such as a name."""
    return bool(_WORDS.fullmatch(value))


def is_identifier(value: str) -> bool:
    """Whether the value is probably a name in code."""
    return bool(_IDENTIFIER.fullmatch(value))


def is_mixed(value: str) -> bool:
    """Whether the value has both letters and digits, as most secrets have."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def is_shown(value: str) -> bool:
    """Whether the value is complete, so that it is a secret in a place for one."""
    return not is_reference(value)
