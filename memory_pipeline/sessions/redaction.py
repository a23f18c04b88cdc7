"""Secrets are replaced by typed marks, such as `[redacted:github-token]`, before anything is stored.

Known token formats, passwords in URLs, and literal values that are assigned to a name such as PASSWORD or API_KEY.
A secret with neither a known format nor such a name beside it is not found. What stands between `<private>` and
`</private>` is left out whatever it is.
"""

from __future__ import annotations

import re

# A text without any of these holds no token of a known format; most texts are done with after this search. Each begins
# with the rarest character of its format and looks back from there, which makes the search three times as fast.
_TRIGGER = re.compile(
    r"-(?:----BEGIN |(?<=glpat-)|(?<=xox[a-z]-)|(?<=xapp-)|(?<=pypi-)|(?<=sk-)|(?<=GOCSPX-))|"
    r"_(?:(?<=gh[opusr]_)|(?<=github_pat_)|(?<=npm_)|(?<=k_live_)|(?<=k_test_)|(?<=whsec_))|"
    r"A(?:KIA|SIA|Iza)|J(?<=eyJ)|9(?<=ya29)|\.(?<=hooks\.)slack|<private>"
)
# Names of secrets, in lower case. They are looked for one by one, which is far faster than one pattern for all.
_NAMES = ("passw", "passphrase", "_pwd", "secret", "token", "key")
_KEY_PREFIXES = tuple(
    kind + joint
    for kind in ("api", "access", "private", "encryption", "signing", "auth", "account")
    for joint in ("", "_", "-")
)

_TOKENS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (
            "private-key",
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----(?:(?:(?!-----BEGIN)[\s\S]){0,20000}?"
            r"-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|(?:(?:\\r|\\n|\s)+[A-Za-z0-9+/=]{16,}+)+)",
        ),
        ("aws-access-key-id", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
        ("github-token", r"\b(?:gh[opusr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
        ("gitlab-token", r"\bglpat-[A-Za-z0-9_.-]{16,}"),
        ("slack-token", r"\b(?:xox[a-z]-[A-Za-z0-9-]{10,}|xapp-\d-[A-Za-z0-9-]{10,})"),
        ("slack-webhook", r"(?<=hooks\.slack\.com/services/)[A-Za-z0-9/]{20,}"),
        ("stripe-key", r"\b(?:[sr]k_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{16,})"),
        ("google-key", r"\b(?:AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})"),
        ("npm-token", r"\bnpm_[A-Za-z0-9]{30,}"),
        ("pypi-token", r"\bpypi-[A-Za-z0-9_-]{30,}"),
        ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{16,}"),
        # names of CSS classes begin with sk- too, so a digit has to follow
        ("openai-key", r"\bsk-(?:(?:proj|or|svcacct|admin)-[A-Za-z0-9_-]{16,}|(?=[A-Za-z_]*\d)[A-Za-z0-9_]{20,})"),
        ("jwt", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"),
    )
)
_PRIVATE = re.compile(r"(?<=<private>).*?(?=</private>)", re.DOTALL)
_URL_PASSWORD = re.compile(r"""(://[^\s/:@"'`<>]*:)(?![$<{%*\[])([^\s/"'`<>]+)(?=@)""")
_BEARER = re.compile(
    r"""(authorization\\?["']?\s*[:=]\s*\\?["'`]?\s*(?:bearer|basic|token)\s+|\bbearer\s+(?=[^\s"'`]*\d[^\s"'`]{8}))"""
    r"""([A-Za-z0-9._~+/=-]{8,})""",
    re.IGNORECASE,
)
_ASSIGNMENT = re.compile(
    r"""(?P<name>passw(?:or)?d|passphrase|_pwd|secret(?:[_-]?(?:access[_-]?)?key(?:_base)?)?|token|key)"""
    r"""\\?["']?\s*(?P<sign>:=|=>|=|:)\s*"""
    r"""(?:\\?["'`](?P<quoted>[^\s"'`\\]{8,})(?=\\?["'`])|(?P<bare>[^\s"'`(){}\[\],;<>\\]{8,}+)(?![(\[]))""",
    re.IGNORECASE,
)
# References, placeholders, paths and URLs: what a name stands for, not the secret itself.
_NO_SECRET = re.compile(
    r"\$.*|%\w+%|[{<\[].*|.*(?:environ|getenv|process\.env|import\.meta|secrets\.).*|(.)\1+|\.\.\..*|"
    r".*redacted.*|your[_-].*|(?:[A-Za-z]:|~|\.{0,2})[\\/][\w.-]+(?:[\\/].*)?|[a-z][a-z0-9+.-]*://.*",
    re.IGNORECASE,
)
_KINDS = {"passw": "password", "passphrase": "password", "_pwd": "password", "token": "token", "key": "api-key"}
_NAME_OF_VARIABLE = re.compile(r"[A-Z]+(?:_[A-Z]+)+")
_PLAIN_WORDS = {
    "password",
    "passwords",
    "undefined",
    "required",
    "optional",
    "disabled",
    "enabled",
    "changeme",
    "nullable",
    "credentials",
    "placeholder",
    "description",
    "validation",
    "authentication",
    "authorization",
}
# What is redacted around an excerpt: longer than nearly any token. At its outer edge half a token may stand.
_MARGIN = 1024
_EDGE = 256
# These are known by their beginning, which may lie far before the end of the text.
_LONG_SECRETS = ("PRIVATE KEY-----", "<private>")


def redact(text: str) -> str:
    """The text with its secrets replaced; one without any comes back as it is."""
    if _TRIGGER.search(text):
        # what is behind the last closing mark cannot match, and looking there would take forever
        private = text.rfind("</private>") + len("</private>")
        text = _PRIVATE.sub("[private]", text[:private]) + text[private:]
        for kind, pattern in _TOKENS:
            text = pattern.sub(f"[redacted:{kind}]", text)
    if "://" in text and "@" in text:
        text = _URL_PASSWORD.sub(r"\1[redacted:password]", text)
    lowered = text.lower()
    if "earer" in lowered or "authorization" in lowered:
        text = _BEARER.sub(r"\1[redacted:bearer-token]", text)
        lowered = text.lower()
    return _redact_assignments(text, lowered)


def excerpt(text: str, limit: int) -> str:
    """The text, redacted; of one longer than `limit` its head and tail, with a mark that says how much is gone.

    It is redacted before it is cut: half a token at the cut would no longer be recognised as one.
    """
    if len(text) <= limit:
        return redact(text)
    mark = f"\n[… {len(text) - limit:,} characters left out …]\n"
    room = max(limit - len(mark), 0)
    tail_size = room // 3
    head_size = room - tail_size
    if len(text) <= limit + 2 * _MARGIN or any(opening in text for opening in _LONG_SECRETS):
        head = tail = redact(text)
        if len(head) <= limit:
            return head
    else:
        head = redact(text[: head_size + _MARGIN])[:-_EDGE]
        tail = redact(text[-tail_size - _MARGIN :])[_EDGE:]
    return head[:head_size] + mark + tail[len(tail) - tail_size :]


def _redact_assignments(text: str, lowered: str) -> str:
    if len(lowered) != len(text):
        # a few letters become longer in lower case, and then the positions would be wrong
        lowered = "".join(character.lower() if character.isascii() else character for character in text)
    values: dict[int, tuple[int, str]] = {}
    for name in _NAMES:
        start = lowered.find(name)
        while start >= 0:
            if name != "key" or lowered.endswith(_KEY_PREFIXES, 0, start):
                found = _ASSIGNMENT.match(text, start)
                if found and _is_secret(found):
                    group = "quoted" if found["quoted"] else "bare"
                    values.setdefault(found.start(group), (found.end(group), _KINDS.get(name, "secret")))
            start = lowered.find(name, start + len(name))
    for start in sorted(values, reverse=True):
        end, kind = values[start]
        text = f"{text[:start]}[redacted:{kind}]{text[end:]}"
    return text


def _is_secret(found: re.Match[str]) -> bool:
    """Whether the assigned value is a literal secret, and not a reference, a placeholder or a word."""
    value = found["quoted"] or found["bare"]
    if _NO_SECRET.fullmatch(value) or _NAME_OF_VARIABLE.fullmatch(value) or value.lower() in _PLAIN_WORDS:
        return False
    if found["quoted"] or (found["name"].isupper() and found["sign"] == "="):
        return True
    # without quotes it may as well be code, except in a listing of the environment
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))
