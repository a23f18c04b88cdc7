"""The lines of a memory file, of ours or not, as an audit reads them: each with where it stands, none with a secret."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.friction.rules import MAX_BYTES, memory_lines
from memory_pipeline.redaction import Redactor
from memory_pipeline.redaction.redactor import find_secrets

MAX_ROUNDS = 8
"""How often a text is looked through: what a mark uncovers may be a secret on its own."""
_FENCE = re.compile(r"\s*(?:```|~~~)")
_OWN_LINE = re.compile(r"\s*(?:[-*+•‣>|#]|\d{1,3}[.)]\s|<!--|[-=_*]{3,}\s*$|\*\*[^*]+\*\*:?\s*$)")
"""Begins something of its own: an item, a heading, a row of a table, a quotation."""
_ENDED = re.compile(r"[.!?:;…。！？][\"'”’)`*_]*\s*$|[-=_*]{3,}\s*$|^\s*#|\|\s*$|-->\s*$")
_GOES_ON = re.compile(r"\s*[a-zà-ÿ`(\"“]|\s+\S")
_HEADING = re.compile(r"(?P<marks>#{1,6})\s+(?P<words>\S.*)")
_BULLET = re.compile(r"\s*(?:[-*+•‣]|\d{1,3}[.)])\s")


class NotAuditedError(MemoryPipelineError):
    """The file cannot be audited; the message says why and what to do."""


@dataclass(frozen=True)
class Line:
    """One statement of a file, as it stands there without bullet, day, project and id."""

    number: int
    """Of the line of the file, from 1."""
    text: str
    headings: tuple[str, ...] = ()
    """Those that it stands under, from the outermost."""
    is_item: bool = False
    """Whether it is all of an item of a list."""
    is_alone: bool = True
    """Whether no other sentence stands beside it."""
    proposal_id: str | None = None
    since: date | None = None
    """Since when it stands in the file, where that is known."""
    project: str | None = None


@dataclass(frozen=True)
class HiddenSecret:
    """Where a secret stands, and of what kind it is; never the secret."""

    number: int
    kind: str


@dataclass(frozen=True)
class MemoryText:
    """A file that was read: its lines, and the secrets that were taken out of them."""

    path: Path
    lines: tuple[Line, ...]
    secrets: tuple[HiddenSecret, ...]
    is_ours: bool = False
    """Whether lines of it were promoted."""


def read_memory_file(path: Path, redactor: Redactor, promoted: Mapping[str, date]) -> MemoryText:
    """Raises `NotAuditedError` for what is no text, or nothing to audit."""
    return taken_apart(path, text_of(path), redactor, promoted)


def taken_apart(path: Path, text: str, redactor: Redactor, promoted: Mapping[str, date]) -> MemoryText:
    """The same of a text that was read already."""
    shown, secrets = without_secrets(text, redactor)
    rows = shown.split("\n")
    unwrapped = _unwrapped(rows)
    found = list(memory_lines(unwrapped, promoted))
    begins = [unwrapped.rfind("\n", 0, line.start) + 1 for line in found]
    lines = []
    for line, begin in zip(found, begins, strict=True):
        is_alone = begins.count(begin) == 1
        is_item = is_alone and _BULLET.match(unwrapped, begin) is not None
        since = line.promoted or line.dated
        number = shown.count("\n", 0, line.start) + 1
        above = _headings_above(rows, number)
        lines.append(Line(number, line.text, above, is_item, is_alone, line.proposal_id, since, line.project))
    if not lines and not secrets:
        raise NotAuditedError(f"{path} has no line that says anything: headings, code and tables are not audited.")
    return MemoryText(path, tuple(lines), tuple(secrets), any(line.proposal_id for line in lines))


def text_of(path: Path) -> str:
    """The text of a memory file. Raises `NotAuditedError`, with a sentence, for what is none."""
    try:
        if path.is_dir():
            raise NotAuditedError(f"{path} is a directory; name a file in it, such as {path / 'AGENTS.md'}.")
        if not path.is_file():
            raise NotAuditedError(f"There is no file {path}; name a memory file, such as AGENTS.md.")
        if (size := path.stat().st_size) > MAX_BYTES:
            raise NotAuditedError(f"{path} has {size:,} bytes, more than the {MAX_BYTES:,} of a file that agents read.")
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise NotAuditedError(f"{path}: {reason}. Let it be read and run it again.") from None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise NotAuditedError(f"{path} is UTF-16; save it as UTF-8.")
    if b"\0" in data:
        raise NotAuditedError(f"{path} is no text; name a Markdown file, such as AGENTS.md.")
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise NotAuditedError(f"{path} is not UTF-8 (line {number}); save it as UTF-8.") from None
    if not text.strip():
        raise NotAuditedError(f"{path} is empty; there is nothing to read.")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def without_secrets(text: str, redactor: Redactor) -> tuple[str, list[HiddenSecret]]:
    """The text with marks in place of its secrets, on the same lines as before."""
    found: dict[tuple[int, str], HiddenSecret] = {}
    for _ in range(MAX_ROUNDS):
        spans = find_secrets(text)
        if not spans:
            break
        for span in reversed(spans):
            number = text.count("\n", 0, span.start) + 1
            found[number, span.kind] = HiddenSecret(number, span.kind)
            secret = text[span.start : span.end]
            mark = redactor.mark(span.kind, secret)
            text = text[: span.start] + mark + "\n" * secret.count("\n") + text[span.end :]
    kept = (
        secret for secret in found.values() if not secret.kind.startswith("[")
    )  # <private> is left out by its author
    return text, sorted(kept, key=lambda secret: (secret.number, secret.kind))


def _unwrapped(rows: list[str]) -> str:
    """The text with the lines of one sentence in a row, each character where it was."""
    return "".join(row + (" " if joins else "\n") for row, joins in zip(rows, _joins(rows), strict=True)).removesuffix(
        "\n"
    )


def _joins(rows: list[str]) -> Iterator[bool]:
    """Of each line whether the next goes on with its sentence."""
    fenced = False
    for row, after in zip(rows, [*rows[1:], ""], strict=True):
        fenced ^= bool(_FENCE.match(row))
        plain = not fenced and row.strip() and after.strip() and not _FENCE.match(row) and not _FENCE.match(after)
        yield bool(plain and not _ENDED.search(row) and not _OWN_LINE.match(after) and _GOES_ON.match(after))


def _headings_above(rows: list[str], number: int) -> tuple[str, ...]:
    found: list[str] = []
    level = 7
    for row in rows[number - 1 :: -1]:
        heading = _HEADING.match(row)
        if heading and len(heading["marks"]) < level:
            level = len(heading["marks"])
            found.append(heading["words"].strip())
    return tuple(reversed(found))
