"""Secrets in columns: comma-separated values, tables of Markdown and of databases, lists of names and values."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_pipeline.redaction.assignments import is_checksum, is_mixed, is_shown
from memory_pipeline.redaction.detectors import Span
from memory_pipeline.text.regex import deferred

_NAME = (
    r"(?:passw(?:or)?d|passphrase|passwort|kennwort|mot de passe|contrase(?:ñ|n)a|senha|pwd|密码|パスワード"
    r"|secret(?:[ _.-]?(?:access[ _.-]?)?key)?|(?:api|access|auth|refresh|bearer|personal)[ _.-]?(?:token|key)|token"
    r"|private[ _.-]?key|client[ _.-]?secret|credential)"
)
COLUMNS = (
    # the head of a column
    rf"{_NAME}[\"\\]* *[,;|\t\r\n\\]",
    # a name and its value, separated by at least two blanks
    rf"{_NAME}  +\S",
)
"""The trigger of such columns, in the syntax of re2."""
_HEADS = deferred(rf"(?:[\w-]{{1,20}}[ _.-]){{0,3}}{_NAME}", re.IGNORECASE)
_NAMES = (
    *("pass", "kennwort", "mot de", "contrase", "senha", "pwd", "密码", "パスワード"),
    *("secret", "token", "key", "credential"),
)
_PLACE = deferred(rf"(?:{_NAME}|key|access[ _.-]?key)\"?(?:[ \t]*(?:[,;|\t\r\n]|\Z)|  +\S)", re.IGNORECASE)
_PASSWORD = deferred(r"pass|pwd|kennwort|contrase|senha|密码|パスワード", re.IGNORECASE)
_HEADING = deferred(r"[^\W\d][\w .#/-]{0,40}|#|")
_RULE = deferred(r"[\s|+:=-]*")
_CELLS = {sign: deferred(rf'"(?:[^"\n]|"")*"|[^{sign}\n]+') for sign in (",", ";", "|", "\t")}
_NAME_AND_VALUE = deferred(
    rf"[ \t|]*(?:[\w-]{{1,20}}[ _.-]){{0,3}}{_NAME}(?:[ \t]*\|[ \t]*| {{2,40}}|\t)(\S{{6,}})[ \t|]*", re.IGNORECASE
)
_OPENS = deferred(r"[=(]|: ?\"")
_SIGNS = {",": re.compile(",(?! )"), ";": re.compile(";(?! )"), "|": re.compile(r"\|"), "\t": deferred("\t")}
# the last words before the first head
_LAST_WORDS = deferred(r"[\w.-]*\Z")
_TOKEN = deferred(r"[\w.~+/=-]{16,}")
INSERTED = (r"insert into [^\n(]*\(",)
_INSERT = deferred(r"insert into [^\n(]{1,100}\((?P<heads>[^()]{1,1000})\)\s*values\s*(?=\()", re.IGNORECASE)
_VALUES = deferred(r",?\s*\((?P<row>(?:'(?:[^'\n]|'')*'|[^()'\n]){1,4000})\)")
_SQL_VALUE = deferred(r"'(?:[^'\n]|'')*'|[^,'\s][^,'\n]*")
_LINE = 4096


def columns(text: str, folded: str) -> Iterator[Span]:
    """The spans of secrets below or next to such a name."""
    lines: dict[int, int] = {}
    for name in _NAMES:
        place = folded.find(name)
        while place >= 0:
            if _PLACE.match(text, place):
                start = text.rfind("\n", max(place - _LINE, 0), place) + 1
                if start or place < _LINE:
                    lines.setdefault(start, place)
            place = folded.find(name, place + len(name))
    read = 0
    for start in sorted(lines):
        # a row of the previous table is not a head
        if start >= read:
            spans, read = _line(text, start, lines[start])
            yield from spans


def inserted(text: str, _folded: str) -> Iterator[Span]:
    """The spans of secrets among the values that SQL inserts into columns with such names."""
    for found in _INSERT.finditer(text):
        heads = [head.strip(' \t\r\n"`[]') for head in found["heads"].split(",")]
        named = {n: head for n, head in enumerate(heads) if _HEADS.fullmatch(head)}
        after = found.end()
        while named and (row := _VALUES.match(text, after)):
            after = row.end()
            values = [value.span() for value in _SQL_VALUE.finditer(text, *row.span("row"))]
            for number, head in named.items():
                if number < len(values) and len(values) == len(heads):
                    begin, end = values[number]
                    quoted = text[begin] in "'\""
                    begin, end = (begin + 1, end - 1) if quoted else (begin, end)
                    if quoted and _is_secret(text[begin:end], bool(_PASSWORD.search(head)), ";"):
                        yield Span(begin, end, _kind(head))


def _line(text: str, start: int, mention: int) -> tuple[list[Span], int]:
    """The spans of secrets in or below the line, and the end of the text that was read."""
    end = text.find("\n", mention, start + _LINE)
    end = end if end >= 0 else min(len(text), start + _LINE)
    # a tool call or JSON that contains the text
    opened = [found.end() for found in _OPENS.finditer(text, start, mention)]
    start = opened[-1] if opened else start
    beside = _NAME_AND_VALUE.fullmatch(text, start, end)
    if not beside:
        return _secrets_below(text, start, end)
    shown = is_shown(beside[1]) and is_mixed(beside[1]) and not is_checksum(beside[1])
    return [Span(*beside.span(1), _kind(beside[0]))] if shown else [], end


def _secrets_below(text: str, start: int, end: int) -> tuple[list[Span], int]:
    line = text[start:end].rstrip("\r")
    # the most frequent separator; a comma within text is followed by a blank
    sign, heads = max(((sign, split.split(line)) for sign, split in _SIGNS.items()), key=lambda pair: len(pair[1]))
    heads = [head.strip(" \t\"'`*") for head in heads]
    heads[0] = _LAST_WORDS.search(heads[0])[0]  # type: ignore[index] # it matches ""
    named = {n: head for n, head in enumerate(heads) if _HEADS.fullmatch(head)}
    spans: list[Span] = []
    if sum(map(bool, heads)) < 2 or not named or not all(map(_HEADING.fullmatch, heads[1:])):
        return spans, end
    while end < len(text):
        start = end + 1
        last = text.find("\n", start, start + _LINE)
        last = last if last >= 0 else min(len(text), start + _LINE)
        if not _RULE.fullmatch(text, start, last) or last == start:
            cells = list(_cells(text, start, last, sign))
            if len(cells) != len(heads):
                break
            for number, head in named.items():
                if _is_secret(text[slice(*cells[number])], bool(_PASSWORD.search(head)), sign):
                    spans.append(Span(*cells[number], _kind(head)))
        end = last
    return spans, end


def _is_secret(value: str, password: bool, sign: str) -> bool:
    if len(value) < (4 if password else 12) or not is_shown(value) or "[redacted" in value or value.split() != [value]:
        return False
    if sign == "|" and not password:
        # such tables explain code
        return bool(_TOKEN.fullmatch(value)) and is_mixed(value) and not is_checksum(value)
    return is_mixed(value) or not value.isalnum() or (password and sign != "|")


def _cells(text: str, start: int, end: int, sign: str) -> Iterator[tuple[int, int]]:
    """The cells of a row, without the blanks and quotes around them."""
    pattern = _CELLS[sign]
    place = start
    while True:
        found = pattern.match(text, place, end)
        begin, stop = found.span() if found else (place, place)
        place = stop
        while begin < stop and text[begin] in " \t\r\"'`":
            begin += 1
        while begin < stop and text[stop - 1] in " \t\r\"'`":
            stop -= 1
        yield begin, stop
        if place >= end or text[place] != sign:
            return
        place += 1


def _kind(name: str) -> str:
    return "password" if _PASSWORD.search(name) else "secret"
