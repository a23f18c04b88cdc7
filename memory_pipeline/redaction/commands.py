"""Secrets on command lines of programs that accept them there, and in text piped into programs that ask for them."""

from __future__ import annotations

import re

from memory_pipeline.redaction.assignments import is_shown
from memory_pipeline.redaction.detectors import Detector
from memory_pipeline.text.regex import deferred

# a quoted value may have blanks
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
