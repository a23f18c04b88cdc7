"""Secrets that are recognised by their context: URLs, headers, cookies, command lines, password files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from memory_pipeline.redaction.assignments import is_mixed, is_shown
from memory_pipeline.redaction.detectors import Detector, Span
from memory_pipeline.text.regex import deferred

_USER_IN_URL = "://[^\\s/@\"'`<>]+@"
_AUTHORIZATION = r"""authorization\\*["']?\s{0,9}[:=,]\s{0,9}\\*["'`]?\s{0,9}"""
_COOKIE = deferred(r"""([\w.-]{1,60})(?:=|["']:\s?["'])([^;,\s"'`\\]{12,})""")
_COOKIE_HEADER = deferred(
    r"""s?\\*["']?\s{0,9}(?:[:=]\s{0,9}|\s)\\*["']?(?:(?P<cookies>[\w.-]{1,60}=[^\r\n"'`\\]{12,8192}"""
    r"""|\{\s{0,9}["'][^\r\n}]{12,4096}))"""
)


def _is_token(secret: str) -> bool:
    return is_shown(secret) and is_mixed(secret)


def _near(
    kind: str, literals: str, pattern: str, accepts: Callable[[str], bool] | None = is_shown, hint: str = ""
) -> Detector:
    """A detector of a pattern at one of the literals, which are separated by `¦` and in lower case."""
    hints = (hint,) if hint else ()
    return Detector(kind, tuple(literals.split("¦")), deferred(pattern, re.I), accepts=accepts, hints=hints)


# Matched case-sensitively.
CONTEXTS: tuple[Detector, ...] = (
    Detector(
        "password",
        ("://",),
        deferred(r"""://[^\s/:@"'`<>]*:(?P<secret>[^\s/"'`<>]+)(?=@)"""),
        accepts=is_shown,
        hints=(_USER_IN_URL,),
    ),
    Detector(
        "token",
        ("://",),
        deferred(r"""://(?P<secret>[A-Za-z0-9_-]{20,})(?=@(?!\w+\.ingest\.|sentry))"""),
        accepts=_is_token,
        hints=(_USER_IN_URL,),
    ),
    Detector("password", (":thin:",), deferred(r""":thin:\w+/(?P<secret>[^\s/@"']+)(?=@)"""), accepts=is_shown),
    Detector(
        "password",
        (":",),
        deferred(r":(?:\d{4,5}|\*):[A-Za-z_*][\w*-]*:[A-Za-z_*][\w*.-]*:(?P<secret>[^:\s\"'`]{4,})(?=\s|$|\\n|[\"'`])"),
        accepts=is_shown,
        hints=(r"[\w*]:(?:[0-9]{4,5}|\*):[A-Za-z_*][\w*-]*:[A-Za-z_*][\w*.-]*:[^:\s]{4}",),
    ),
    Detector(
        "password",
        (" -u ", " --user "),
        deferred(r""" --?u(?:ser)? (?:\\?["'])?[^\s:"'`$]{1,100}:(?P<secret>[^\s"'`\\]{3,})"""),
        before=deferred(r"(?:\b|\\n)(?:curl|wget|http|https)\b[^\n|;]*\Z"),
        accepts=is_shown,
        hints=(r" --?u(?:ser)? \S+:",),
    ),
)

_CODE = r"(?=[a-z]{0,12}\d)[a-z0-9]{4,12}(?:-[a-z0-9]{3,12}){0,3}"
# Matched in lower case.
FOLDED_CONTEXTS: tuple[Detector, ...] = (
    _near(
        "bearer-token",
        "authorization",
        _AUTHORIZATION + r"(?:bearer|basic|token|apikey|bot)\s{1,9}(?P<secret>[\w.~+/=-]{8,})",
    ),
    _near("bearer-token", "authorization", _AUTHORIZATION + r"(?P<secret>[\w.~+/=-]{20,})", _is_token),
    _near("bearer-token", "bearer", r"""\bbearer\s{1,9}(?P<secret>(?=[^\s"'`\d]{0,60}\d)[A-Za-z0-9._~+/=-]{10,})"""),
    Detector(
        "registry-login",
        ('"auth', '\\"auth', "_auth"),
        deferred(r"""[\\"_]*auth\\?"?\s{0,9}[:=]\s{0,9}\\?"?(?P<secret>[A-Za-z0-9+/]{12,}={0,2})(?![\w(.])"""),
        accepts=_is_token,
    ),
    _near("api-key", "authorization", _AUTHORIZATION + r"key=(?P<secret>[\w:-]{20,})", _is_token),
    _near(
        "cookie",
        "phpsessid¦jsessionid¦connect.sid¦asp.net_sessionid",
        r"(?:phpsessid|jsessionid|connect\.sid|asp\.net_sessionid)[=\t](?P<secret>[\w%.-]{16,})",
        _is_token,
    ),
    _near(
        "secret",
        "define(",
        r"""define\(\s{0,9}["']\w{0,60}(?:pass|passwd|password|secret|key|salt|token)["']\s{0,9},\s{0,9}"""
        r"""(?P<quote>["'])(?P<secret>[^"'\r\n]{4,200})(?P=quote)""",
    ),
    _near(
        "secret",
        'password" value="¦secret" value="¦apikey" value="¦token" value="',
        r"""[a-z]+" value="(?P<secret>[^"\s]{6,200})\"""",
    ),
    _near(
        "secret",
        "secret access key [",
        r"secret access key \[[^\]\n]{0,40}\]:\s{0,9}(?P<secret>[A-Za-z0-9/+=]{30,})",
        None,
    ),
    _near("password", "identified by ", r"identified by (?:password )?['\"](?P<secret>[^'\"\r\n]{3,200})['\"]"),
    # prompts of programs
    _near(
        "password",
        "enter ¦retype ¦new ¦current ",
        r"(?:enter|retype|new|current) [\w ]{0,30}pass(?:word|phrase)[^\n:]{0,80}: ?"
        r"(?P<secret>[^\s<$]{4,100})(?=\s|\Z)",
        _is_token,
        hint=r"(?:enter|retype|new|current) [\w ]*pass(?:word|phrase)[^\n:]*: ?\S",
    ),
    _near("password", "wifi:", r"wifi:[^\n]{0,200}?;p:(?P<secret>[^;\n]{4,100});", None),
    _near(
        "secret",
        "unseal key¦master.key¦recovery key¦master key",
        r"\w{6,8}[. ]key(?: \d{1,2})?:? (?:is )?(?P<secret>[A-Za-z0-9+/=-]{24,})",
        _is_token,
    ),
    # seed words of a wallet
    _near(
        "secret",
        "seed phrase¦recovery phrase¦mnemonic¦secret phrase¦backup phrase",
        r"(?:\w+ phrase|mnemonic)[\w ]{0,30}(?:\s*[:=]\s*|\s+is\s+)[\"'`]?"
        r"(?P<secret>[a-z]{3,8}(?:\s+[a-z]{3,8}){11,23})\b",
        None,
    ),
    _near(
        "secret",
        "recovery code¦backup code",
        rf"(?:recovery|backup) codes?[^\n:]{{0,40}}:?\s+(?P<secret>{_CODE}(?:\s{{1,4}}{_CODE}){{0,20}})",
        _is_token,
    ),
    _near(
        "secret",
        "$ansible_vault;",
        r"\$ansible_vault;[\w.;-]{1,60}\s+(?P<secret>[0-9a-f]{16,}(?:\s+[0-9a-f]{8,})*)",
        None,
    ),
    _near("password", "psk=", r"""psk=(?P<quote>")?(?P<secret>(?(quote)[^"\n]|[^\s"\\]){8,64})"""),
    _near(
        "secret",
        "¦".join(f"{name}: {sign}" for name in ("password", "passphrase", "secret", "token") for sign in ">|"),
        r"[a-z]+: [>|][+-]?[ \t]{0,9}\r?\n[ \t]{1,20}(?P<secret>[^\s#]{6,200})(?=\s|\Z)",
        _is_token,
    ),
    Detector(
        "password",
        ("password ", "passwd "),
        deferred(r"passw(?:or)?d (?:\\?['\"])?(?P<secret>[^\s'\"`\\]{4,})", re.I),
        before=deferred(r"(?:login|account|machine)\s{1,9}\S{1,60}\s{1,9}\Z"),
        reach=80,
        accepts=is_shown,
    ),
)

SECRET_OBJECTS = (r"kind[\"']?: *[\"']?secret\b",)
"""The trigger of Kubernetes secrets, in the syntax of re2."""
_DATA = deferred(r"(?:\A|\n)([ \t]*)(?:string)?data:[ \t]*\r?(?=\n)", re.IGNORECASE)
_ENTRY = deferred(r"\n([ \t]+)[\w.-]{1,200}:[ \t]*[\"']?(?P<secret>[^\s\"'|>]{4,8192})[^\n]*")


def secret_objects(text: str, folded: str) -> Iterator[Span]:
    """The spans of values in Kubernetes secrets, regardless of their names."""
    place = folded.find("secret")
    while place >= 0:
        if folded[max(place - 9, 0) : place].strip().rstrip("\"' ").endswith(":"):
            for data in _DATA.finditer(
                text, max(folded.rfind("\n---", max(place - 4096, 0), place), place - 4096, 0), place + 4096
            ):
                after = data.end()
                while (entry := _ENTRY.match(text, after)) and len(entry[1]) > len(data[1]):
                    if is_shown(entry["secret"]):
                        yield Span(*entry.span("secret"), "secret")
                    after = entry.end()
        place = folded.find("secret", place + 4096)


COOKIES = ("cookie", r" -b ['\"\\]*[\w.-]+=", r"(?:true|false)(?:\t|\\+t)[0-9]+")
"""The trigger of cookies, in the syntax of re2."""
_JAR = deferred(
    r"(?:true|false)\t/[^\t\n]{0,200}\t(?:true|false)\t\d{1,12}\t[^\t\n]{1,100}\t(?P<secret>[^\s]{12,4096})"
)
_OPTION = deferred(r""" -b ['"]?(?P<cookies>[\w.-]{1,60}=[^\r\n"'`]{12,8192})""")
_CURL = deferred(r"\b(?:curl|http|https|xh)\b[^\n|]*\Z")


def cookies(text: str, folded: str) -> Iterator[Span]:
    """The spans of cookie values in headers, command lines and files; short ones are settings."""
    place = folded.find("cookie")
    while place >= 0:
        after = place + len("cookie")
        header = _COOKIE_HEADER.match(text, after)
        if header:
            after = header.end()
            yield from _values(text, *header.span("cookies"))
        place = folded.find("cookie", after)
    place = folded.find(" -b ")
    while place >= 0:
        option = _OPTION.match(text, place)
        if option and _CURL.search(text, max(place - 200, 0), place):
            yield from _values(text, *option.span("cookies"))
        place = folded.find(" -b ", option.end() if option else place + 4)
    if "\t" in text:
        yield from (
            Span(*found.span("secret"), "cookie") for found in _JAR.finditer(folded) if is_shown(found["secret"])
        )


def _values(text: str, start: int, end: int) -> Iterator[Span]:
    for found in _COOKIE.finditer(text, start, end):
        if is_shown(found[2]) and is_mixed(found[2]):
            yield Span(*found.span(2), "cookie")


# Command lines of programs that accept a secret there, and text piped into programs that ask for one; a quoted value
# may have blanks.
_QUOTED = r"""(?P<quote>['"])?(?P<secret>(?(quote)[^'"\r\n\\$]{3,200}|"""
_VALUE = _QUOTED + r"""[^\s'"`\\$<|;&-][^\s'"`\\|;&]{2,200}))"""
_PIPED = _QUOTED + r"""[^\s'"`\\|$]{3,200}))(?(quote)['"])\s{0,9}\|\s{0,9}"""
_READS = r"(?:sudo (?:-\w+ ){0,3}-S\b|[\w-]+ (?:\w+ ){0,3}login\b|(?:sudo )?(?:cryptsetup|passwd|gpg2?)\b)"

_TIGHT = "mysql|mysqldump|mysqladmin|mysqlimport|mysqlshow|mariadb|mariadb-dump|sshpass|7z|7za|7zr|unrar|rar"
_APART = r"sshpass|[\w-]+ (?:\w+ ){0,2}login|mongo\w*|cqlsh|ipmitool"
_JAVA = "keytool|jarsigner|apksigner"


def _is_password(secret: str) -> bool:
    """Whether the value is complete, and not a path, flag or redaction mark."""
    return is_shown(secret) and not secret.startswith(("-", "./", "~/", "../")) and "[redacted" not in secret


def _flag(literal: str, programs: str, *, gap: str = "[ =]", hint: str = "") -> Detector:
    """A flag of these programs; the gap is the text between it and the secret."""
    return Detector(
        "password",
        (literal,),
        deferred(re.escape(literal) + gap + _VALUE),
        before=deferred(rf"(?:\b|\\n)(?:{programs})\b[^\n|;]*\Z") if programs else None,
        accepts=_is_password,
        hints=(hint or rf"{literal}{gap}['\"\\]*[^\s/.<|-]",),
    )


COMMANDS: tuple[Detector, ...] = (
    _flag(" -p", _TIGHT, gap="", hint=r" -p['\"\\\w]"),
    _flag(" -p", _APART, hint=r" -p[ =]['\"\\]*[^\s/.-]{4}"),
    _flag(" -a", "redis-cli", gap=" ?"),
    _flag(" -a", "https?|xh", gap=r"[ =]['\"]?[^\s:'\"]{1,60}:", hint=r" -a['\" ]+[^\s:]+:"),
    _flag(" -w", r"ldap\w+", gap=" ?"),
    _flag(" -P", "unzip|zip|sqlcmd|isql|bcp|tsql", gap=" ?"),
    _flag(" -U", r"smb\w+|rpcclient|net", gap=r" ?['\"]?[^\s%'\"]{1,60}%"),
    _flag(" pass:", "openssl", gap="", hint=r" pass:[^\s*]"),
    *(_flag(f" -{name}", _JAVA) for name in ("storepass", "keypass", "srcstorepass", "deststorepass")),
    _flag(" -b", "htpasswd", gap=r"\w{0,4} \S{1,200} [^\s:]{1,60} ", hint="htpasswd "),
    _flag(" password", "nmcli|wpa_cli", gap=" ", hint="nmcli|wpa_cli"),
    *(_flag(f" -{name}", "ssh-keygen", gap=" ?", hint="ssh-keygen ") for name in "NP"),
    _flag("net user ", "", gap=r"[^\s/]{1,60} (?!/)", hint="net user "),
    _flag(" -u", "lftp|ncftp", gap=r" ?[^\s,]{1,60},", hint=r" -u ?[^\s,]+,"),
    _flag("ConvertTo-SecureString", "", gap=r" (?:-String )?", hint="ConvertTo-SecureString "),
    *(
        _flag(f" --{name}", r"secrets? (?:[\w-]+ )?(?:set|create|put|add)(?:-\w+)?", hint=f" --{name}[ =]")
        for name in ("value", "body", "secret-string")
    ),
    *(
        Detector(
            "password",
            (f"{program} ",),
            deferred(rf"{program} (?:-\w+ )?(?:['\"]?%s(?:\\+n)?['\"]? )?{_PIPED}{_READS}"),
            accepts=is_shown,
            hints=(r"\|\s*(?:sudo|cryptsetup|passwd|gpg|[\w-]+ (?:\w+ )*login)",),
        )
        for program in ("echo", "printf")
    ),
    Detector(
        "password",
        ("echo ", "printf "),
        deferred(
            r"(?:echo|printf) (?:-\w+ )?['\"]?[\w.-]{1,40}:(?P<secret>[^\s'\"`\\|$]{3,200})['\"]?\s{0,9}\|\s{0,9}"
            r"(?:sudo )?chpasswd"
        ),
        accepts=is_shown,
        hints=("chpasswd",),
    ),
    Detector(
        "password",
        ("<<<",),
        deferred(r"<<<\s?" + _VALUE),
        before=deferred(rf"(?:{_READS}|--password-stdin)[^\n|;]*\Z"),
        accepts=_is_password,
    ),
)
