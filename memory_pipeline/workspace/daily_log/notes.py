"""Notes: text that a user wrote into a day's log by hand, which is reflected on like observations.

A note is a paragraph or list item outside our blocks. Headings, code, tables, quotes, comments, front matter, to-do
boxes, and links or tags alone are not notes. Generated text must never be read as a user's: a block that lost one of
its fences counts as generated as far as it may extend, and so does everything under a generated heading without a
fence.

The table `notes` has the notes read last. A note is identified by its words, not its position: a log that was updated
or archived has the same notes. Notes of a missing log are kept; notes removed from a log are deleted.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from functools import lru_cache
from pathlib import Path

import polars as pl

from memory_pipeline.days import days_named
from memory_pipeline.lake.rows import NoteRow, SourceRow, typed_rows
from memory_pipeline.lake.store import fingerprint_of
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.markdown.blocks import one_line, split_lines
from memory_pipeline.markdown.safe_write import decode
from memory_pipeline.redaction import Redactor, redactor_of
from memory_pipeline.redaction.redactor import Unredacted, find_secrets
from memory_pipeline.settings import Settings
from memory_pipeline.text.hidden import without_hidden
from memory_pipeline.text.kinds import NORMATIVE, kind_of_user
from memory_pipeline.text.priorities import HIGH, MEDIUM
from memory_pipeline.text.regex import deferred
from memory_pipeline.text.sentences import sentences, squeeze
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.workspace import Workspace

LONG = 300
"""Minimum characters of a paragraph whose sentences are separate notes."""

_FENCE = deferred(r"<!--\s*(?P<closing>/)?\s*memory:")
_OUR_HEADING = deferred(
    r"#{2,4} +(🔭 *(?:Observations|Reflected)\b|💭 *Reflection\b|Decisions on memory proposals\b"
    r"|Memory proposals that ended\b)"
)
_SECTION = deferred(r"#{1,3}\s")
_COMMENT = deferred(r"<!--.*?-->", re.DOTALL)
_CODE = deferred(r"\s*(?P<fence>`{3,}|~{3,})")
_INDENTED = deferred(r" {4}|\t")
_ITEM = deferred(r"\s*(?:[-*+•‣]|\d{1,3}[.)])\s+(?P<box>\[[^\]]?\](?:\s|$))?")
_NO_TEXT = deferred(
    r"\s*(#{1,6}(\s|$)|[>|]|\*\*[^*]*[^*.!]\*\*:?\s*$|__[^_]*[^_.!]__:?\s*$|([-*_=+]\s*){3,}$|\[[^\]]+\]:\s|:?-{2,}:?(\s*\|.*)?$)"
)
"""A heading, a quote or table, a rule, or a link definition; a bold line that is a sentence is not included."""
_UNDERLINE = deferred(r"\s{0,3}(=+|-+)\s*$")
_LINKS = deferred(
    r"!?\[\[[^\]]*\]\]|!?\[[^\]]*\]\([^)]*\)|<?\b[a-z][a-z0-9+.-]*://\S+|\bwww\.\S+|\[(redacted:[^\]]*|private)\]"
    r"|(?<!\S)[#@][\w/-]+|</?private>",
    re.I,
)
"""Elements without meaning of their own: links, tags, and marks of omissions."""
_WORD = deferred(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\d_]{2,}")
"""A word, or a character of a language without spaces."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph, list item or sentence, verbatim."""

    line: int
    """The number of the first line, from 1."""
    text: str


def own_words(log: str) -> str:
    """The log with blank lines in place of generated blocks and comments, so that line numbers stay the same."""
    lines = split_lines(log.removeprefix("\ufeff"))
    ours = [False] * len(lines)
    since, is_open, is_our_section = 0, False, False
    for number, line in enumerate(lines):
        if "<!--" in line and (fence := _FENCE.search(line)):
            # its opening fence is gone, so it may begin anywhere since the last one
            if fence["closing"] and not is_open:
                ours[since:number] = [True] * (number - since)
            is_open, is_our_section, since = not fence["closing"], False, number + 1
            ours[number] = True
            continue
        if line.startswith("#") and (_SECTION.match(line) or _OUR_HEADING.match(line)):
            is_our_section = bool(_OUR_HEADING.match(line))
        ours[number] = is_open or is_our_section
    text = "".join("\n" if is_ours else line for line, is_ours in zip(lines, ours, strict=True))
    return _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)


def paragraphs(own: str) -> list[Paragraph]:
    """The notes in the result of `own_words`, in order."""
    return [note for block in _blocks(own) for note in _parts(block) if _has_content(note.text)]


def _blocks(own: str) -> Iterator[Paragraph]:
    """Paragraphs and items, without code, to-do boxes and the like."""
    lines = own.split("\n")
    taken: list[str] = []
    begin, is_box, in_list, code = 0, False, False, ""
    start = _after_front_matter(lines)

    def block() -> Iterator[Paragraph]:
        if taken and not is_box:
            yield Paragraph(begin + 1, "\n".join(taken))
        taken.clear()

    for number, line in enumerate(lines[start:], start):
        if code:
            code = "" if line.strip().startswith(code) and not line.strip().strip(code[0]) else code
            continue
        if not line.strip():  # tested first, as most lines are blank: generated blocks were blanked
            if taken:
                yield from block()
            continue
        item = _ITEM.match(line)
        if fence := _CODE.match(line):
            yield from block()
            code = fence["fence"]
        elif taken and not in_list and _UNDERLINE.match(line):
            taken.clear()  # the text above is a heading
        elif _NO_TEXT.match(line):
            yield from block()
            in_list, is_box = False, False
        elif item:
            yield from block()
            begin, is_box, in_list = number, bool(item["box"]), True
            taken.append(line[item.end() :])
        elif taken:
            taken.append(line)
        elif _INDENTED.match(line) and not in_list:
            continue
        else:
            if not line[0].isspace():
                in_list, is_box = False, False
            begin = number
            taken.append(line)
    yield from block()


def _after_front_matter(lines: list[str]) -> int:
    if lines[0].rstrip() != "---":
        return 0
    ends = (n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "..."))
    return next(ends, -1) + 1


def _parts(block: Paragraph) -> Iterator[Paragraph]:
    if len(block.text) <= LONG:
        yield block
        return
    for sentence in sentences(block.text):
        above = block.text.count("\n", 0, sentence.start)
        yield Paragraph(block.line + above, block.text[sentence.start : sentence.end])


def _has_content(text: str) -> bool:
    """Whether the text is more than a link, a tag, a number or a single word."""
    words = _WORD.findall(_LINKS.sub(" ", text))
    return len(words) > 1


VERSION = "2"
SESSION = "notes"
"""The session id of rows that come from notes."""
NOON = time(12)
"""The time assigned to a note, as a log does not have it."""
_PRIVATE = re.compile(r"<private>.*?</private>", re.DOTALL)
_ID = re.compile(r"n-(\d{8})-[0-9a-f]{12}")


def notes_fingerprint(workspace: Workspace, days: Iterable[date]) -> str:
    """A hash of all notes of these days; empty if there are none, so that a log without notes changes nothing."""
    digests = [f"{day} {digest}" for day in days if (digest := _digest(workspace, day))]
    return fingerprint_of(*digests) if digests else ""


def has_notes(workspace: Workspace, day: date) -> bool:
    return bool(_digest(workspace, day))


def days_with_notes(workspace: Workspace) -> list[date]:
    """The days that have a log with notes, oldest first."""
    logs = workspace.settings.log_dir
    days = days_named([*logs.glob("????-??-??.md"), *logs.glob("archive/????-??-??.md")])
    return [day for day in days if has_notes(workspace, day)]


def keep_notes(workspace: Workspace, days: Iterable[date]) -> None:
    """Update the table `notes` from the logs of these days. Raises OSError for an unreadable log."""
    for day in days:
        digest = _digest(workspace, day, strict=True)
        if digest != (workspace.lake.fingerprint("notes", day) or ""):
            workspace.lake.replace("notes", _frame(_read(workspace.settings, day)), [day], {day: digest})


def put_back_notes(workspace: Workspace, days: Iterable[date]) -> None:
    """Restore rows of a lost or damaged file of the table from the logs, for days that were read before."""
    for day in days:
        if workspace.lake.fingerprint("notes", day) is None and has_notes(workspace, day):
            with contextlib.suppress(OSError):
                keep_notes(workspace, [day])


def notes_in(workspace: Workspace, days: Sequence[date]) -> list[SourceRow]:
    """The notes of these days as stored by `keep_notes`, in the form of rows of `observations`."""
    return [
        {
            "day": row["day"],
            "observation_id": row["note_id"],
            "session_id": SESSION,
            "priority": row["priority"],
            "kind": row["kind"],
            "trust": "user",
            "observed_at": datetime.combine(row["day"], NOON, workspace.settings.zone).astimezone(UTC),
            "text": row["text"],
            "tokens": estimate(row["text"]),
            "flags": [],
            "evidence": [],
            "untimed": None,
            "cwd": None,
            "project": None,
        }
        for row in typed_rows(workspace.lake.read("notes", days), NoteRow)
    ]


def written_notes(workspace: Workspace, ids: Iterable[str]) -> list[NoteRow]:
    """The notes among these ids: rows of `notes` with their current file and line. A log grows above a note, so the
    line is looked up; a deleted note keeps its last one."""
    wanted: dict[date, set[str]] = {}
    for note_id in ids:
        if found := _ID.fullmatch(note_id):
            with contextlib.suppress(ValueError):
                wanted.setdefault(date.fromisoformat(found[1]), set()).add(note_id)
    rows = []
    for day in sorted(wanted):
        stored = {row["note_id"]: row for row in typed_rows(workspace.lake.read("notes", [day]), NoteRow)}
        try:
            now = {row["note_id"]: row for row in _read(workspace.settings, day)}
        except OSError:
            now = {}
        known = stored | now
        rows += [known[note_id] for note_id in sorted(wanted[day] & set(known))]
    return rows


def _read(settings: Settings, day: date) -> list[NoteRow]:
    """The unique notes of the day's current log. Raises OSError, and FileNotFoundError if there is no log."""
    path = settings.daily_log(day)
    redactor = redactor_of(settings)
    rows: dict[str, NoteRow] = {}
    for note in paragraphs(_redacted(without_hidden(own_words(decode(path.read_bytes())))[0], redactor)):
        text = one_line(squeeze(note.text))
        note_id = f"n-{day:%Y%m%d}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"
        kind = kind_of_user(text)
        rows.setdefault(
            note_id,
            {
                "day": day,
                "note_id": note_id,
                "line": note.line,
                "text": text,
                "kind": kind,
                "priority": HIGH if kind in NORMATIVE else MEDIUM,  # somebody wrote it by hand
                "source_file": str(path),
            },
        )
    return list(rows.values())


def _redacted(own: str, redactor: Redactor) -> str:
    """The redacted text, with the same number of lines even if a secret spans several."""
    if not isinstance(redactor, Unredacted):
        own = _PRIVATE.sub(lambda private: "\n" * private[0].count("\n"), own)
    redacted = redactor.redact(own)
    if redacted.count("\n") == own.count("\n"):
        return redacted
    pieces, end = [], 0
    for span in find_secrets(own):
        secret = own[span.start : span.end]
        pieces += [own[end : span.start], redactor.mark(span.kind, secret), "\n" * secret.count("\n")]
        end = span.end
    return redactor.redact("".join(pieces) + own[end:])


def _digest(workspace: Workspace, day: date, *, strict: bool = False) -> str:
    """A hash of the notes in the day's log, else of the stored ones; empty if there are none."""
    path = workspace.settings.daily_log(day)
    try:
        stat = os.stat(path)  # noqa: PTH116
        texts = _texts(str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        return workspace.lake.fingerprint("notes", day) or ""
    except OSError:
        if strict:
            raise
        return "unreadable"  # reported by the run that tries to read it
    return fingerprint_of(VERSION, workspace.settings.redact, *texts) if texts else ""


@lru_cache(maxsize=5_000)
def _texts(path: str, inode: int, size: int, modified_ns: int) -> tuple[str, ...]:
    """The texts of the notes in the file, cached because a plan reads them repeatedly."""
    own = own_words(decode(Path(path).read_bytes()))
    found = {squeeze(note.text).encode("utf-8", "replace").decode() for note in paragraphs(own)}
    return tuple(sorted(found))


def _frame(rows: list[NoteRow]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TABLES["notes"].columns)
