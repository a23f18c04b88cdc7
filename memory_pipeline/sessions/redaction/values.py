"""Whether an assigned value is a literal secret, and not a reference, a placeholder, a path, a word or a checksum."""

from __future__ import annotations

import re

_REFERENCE = re.compile(
    # variables, paths, URLs and calls
    r"\$.*|%\w+%?|[{<\[(].*|@[\w./-]+|(?:[A-Za-z]:|~|\.{0,2})[\\/][\w.@-]+(?:[\\/].*)?|[a-z][a-z0-9+.-]*://.*|"
    r"(?:[a-z_]\w*\.)*[a-z_]\w*\(.*",
    re.IGNORECASE | re.DOTALL,
)
_PLACEHOLDER = re.compile(
    r"(.)\1+|(?:my|your|some|the|a|insert|replace|enter|put|add|set|use|no|not|fake|dummy|sample|test|mock)[_-].*|"
    r"(?:.*[_.-])?(?:example|dummy|fake|sample|todo|tbd)(?:[_.-].*)?",
    re.IGNORECASE | re.DOTALL,
)
# with one of these in it, in lower case, it is a reference or a placeholder
_TELLING = (
    *("environ", "getenv", "process.env", "import.meta", "secrets.", "${", "{{"),
    *("...", "…", "***", "xxxxx", "redacted", "placeholder", "changeme", "change_me", "change-me"),
)
_NAME_OF_VARIABLE = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
_WORDS = re.compile(r"[A-Za-z]?[a-z]+(?:[-_. /][A-Za-z]?[a-z]+)*|[a-z]+(?:[A-Z][a-z]+)+")
# a name in code, perhaps with a digit in it: `self.token2`, `secretKey1`
_IDENTIFIER = re.compile(
    r"[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+;?|[A-Za-z_]*(?:token|secret|passw|key|auth|cred)\w*;?", re.IGNORECASE
)
_CHECKSUM = re.compile(
    r"(?:sha\d+[-:=])?(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})|sha\d+[-:=].+|"
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}",
    re.IGNORECASE,
)
_ALPHANUMERIC = re.compile("[A-Za-z0-9]")
# fmt: off
_PLAIN_WORDS = frozenset({
    "password", "passwords", "passwd", "passphrase", "undefined", "required", "optional", "disabled", "enabled",
    "nullable", "credentials", "description", "validation", "authentication", "authorization", "username", "user",
    "pass", "guest", "string", "number", "boolean", "null", "none", "true", "false", "secret", "token", "apikey",
    "hidden", "invalid", "missing", "default", "bearer", "basic", "unknown",
})
# fmt: on


def is_reference(value: str) -> bool:
    """Whether the value stands for something else, or shows only what a secret would look like."""
    lowered = value.lower()
    return bool(
        any(part in lowered for part in _TELLING)
        or _REFERENCE.fullmatch(value)
        or _PLACEHOLDER.fullmatch(value)
        or _NAME_OF_VARIABLE.fullmatch(value)
        or lowered.rstrip(";,.") in _PLAIN_WORDS
        # words in a script of their own
        or not _ALPHANUMERIC.search(value)
    )


def is_checksum(value: str) -> bool:
    """Whether the value is the hash of something, or a UUID."""
    return bool(_CHECKSUM.fullmatch(value))


def is_words(value: str) -> bool:
    """Whether the value is made of words in lower case, such as the name of something."""
    return bool(_WORDS.fullmatch(value))


def is_identifier(value: str) -> bool:
    """Whether the value is rather a name in code."""
    return bool(_IDENTIFIER.fullmatch(value))


def is_mixed(value: str) -> bool:
    """Whether the value has both letters and digits, as most secrets have."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def is_shown(value: str) -> bool:
    """Whether the value is given in full, so that it is a secret where a secret is expected."""
    return not is_reference(value)
