"""Markdown files and their copies without the lines that say it: ours go, those of a user only if they agree."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from memory_pipeline.markdown.blocks import body_of, keys_in, put_block, remove_block, split_lines
from memory_pipeline.markdown.safe_write import decode, encode, update_file, write_atomically
from memory_pipeline.operations.forgetting.request import ForgetRequest
from memory_pipeline.proposals.memory_file import PROPOSAL_ID, lines_of
from memory_pipeline.redaction.forgotten import SESSION
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.daily_log.render import OBSERVATIONS

_STAMPED = re.compile(r"(?P<name>.+)\.\d{8}T\d{6}\.\d{6}Z")
_OURS = re.compile(r"<!--[^>]*?\b(?P<id>[pf]-\d{8}-\d{3,})(?!\d)[^>]*?-->")
_ITEM = re.compile(r"- \[[ xX-]\] `(?P<id>[pf]-\d{8}-\d{3,})` ")


class Cut(NamedTuple):
    """A text without what goes: the lines that were taken, and those of a user that say it and stay."""

    text: str
    taken: list[str]
    left: list[str]


class File(NamedTuple):
    """A Markdown file: what it is, and how it is cut."""

    place: str
    path: Path
    cut: Callable[[str, ForgetRequest], Cut]
    is_copy: bool = False


def files_of(settings: Settings) -> Iterator[File]:
    """All of a workspace, with their backups."""
    yield File("MEMORY.md", settings.memory_file, cut_memory)
    yield File("REVIEW.md", settings.review_file, cut_review)
    yield File("backups", settings.review_shown, cut_review, is_copy=True)
    for path in sorted(settings.log_dir.rglob("*.md")):
        yield File("daily logs", path, cut_log)
    known = {settings.memory_file.name: cut_memory, settings.review_file.name: cut_review}
    for path in sorted(settings.backups.rglob("*")):
        if path.is_file() and (found := _STAMPED.fullmatch(path.name)) and ".parquet" not in path.name:
            yield File("backups", path, known.get(found["name"], cut_log), is_copy=True)
    named = {settings.memory_file, settings.review_file}
    for path in sorted(settings.workspace.glob("*.md")):  # a fix may have been written into one
        if path not in named:
            yield File(path.name, path, cut_log)


def find_lines(settings: Settings, request: ForgetRequest) -> Iterator[tuple[File, Cut]]:
    """The files that say it, with what becomes of each."""
    for file in files_of(settings):
        if file.path.is_file():
            text = decode(file.path.read_bytes())
            cut = file.cut(text, request)
            if cut.text != text or cut.left:
                yield file, cut


def clean_files(settings: Settings, request: ForgetRequest) -> None:
    """Take the lines out. A copy is written over: another one of it would have them."""
    for file, cut in find_lines(settings, request):
        if not file.is_copy:
            update_file(file.path, partial(_cut, file, request), backups=settings.backups)
        else:
            status = file.path.stat()
            write_atomically(file.path, encode(cut.text), expected=file.path.read_bytes(), backups=None)
            os.utime(file.path, ns=(status.st_atime_ns, status.st_mtime_ns))


def _cut(file: File, request: ForgetRequest, now: bytes | None) -> bytes:
    return encode(file.cut(decode(now), request).text) if now is not None else b""


def cut_memory(text: str, request: ForgetRequest) -> Cut:
    """Lines of MEMORY.md that carry the id of a proposal are ours, all others a user's."""
    lines, taken, left = split_lines(text), list[str](), list[str]()
    out = request.ids("proposals")
    drop = set[int]()
    covered = set[int]()
    for item in lines_of(encode(text)):
        own = range(item.line_number - 1, item.line_number - 1 + item.lines)
        covered.update(own)
        raw = "".join(lines[index] for index in own)
        if item.proposal_id in out or (item.proposal_id and request.wanted.are_in(raw)):
            drop.update(own)
            taken.append(raw.strip())
        elif request.wanted.are_in(raw):
            _by_hand(request, own, raw, drop, taken, left)
    for index, line in enumerate(lines):
        if index in covered:
            continue
        ours = _OURS.search(line)
        if ours and ours["id"] in out:
            drop.add(index)
            taken.append(line.strip())
        elif request.wanted.are_in(line):
            _by_hand(request, [index], line, drop, taken, left)
    return Cut("".join(line for index, line in enumerate(lines) if index not in drop), taken, left)


def cut_review(text: str, request: ForgetRequest) -> Cut:
    """Proposals that go, and what of others says it: their evidence is written anew."""
    out = [p for p in request.ids("proposals") if PROPOSAL_ID.fullmatch(p)]
    lines, kept, taken, left = split_lines(text), list[str](), list[str](), list[str]()
    drops = False
    for line in lines:
        item = _ITEM.match(line)
        if item or not line.startswith((" ", "\t")):
            drops = bool(item) and item["id"] in out  # type: ignore[index]
        if drops:
            taken.append(line.strip())
        elif request.wanted.are_in(line) and (item or line.lstrip().startswith(("_", ">"))):
            taken.append(line.strip())
            kept.append(request.wanted.without(line))
        elif request.wanted.are_in(line):
            _by_hand(request, [], line, set(), taken, left)
            kept += [] if request.by_hand else [line]
        else:
            kept.append(line)
    return Cut("".join(kept), taken, left)


def cut_log(text: str, request: ForgetRequest) -> Cut:
    """Blocks of ours lose the lines that say it or name what goes; a block that a user edited is theirs."""
    taken, left = list[str](), list[str]()
    out = request.ids("proposals")
    ours = list[str]()
    for key in keys_in(text, ""):
        body = body_of(text, key)
        if body is None:
            continue
        is_touched = key.startswith(OBSERVATIONS) and any(
            window.startswith(key.removeprefix(OBSERVATIONS)) for window in request.windows
        )
        lines = body.split("\n")
        gone = [line for line in lines if _goes(line, request, out, is_touched=is_touched or key == "reflection")]
        if is_touched and request.what == SESSION:  # all of it is the session's
            gone, text = [line for line in lines if line.strip()], remove_block(text, key)
        elif gone:
            text = put_block(text, key, "\n".join(line for line in lines if line not in gone)).text
        taken += gone
        ours.append(body_of(text, key) or "")
    inside = {line for body in ours for line in body.split("\n")}
    kept = list[str]()
    for line in split_lines(text):
        if line.rstrip("\r\n") not in inside and request.wanted.are_in(line):
            _by_hand(request, [], line, set(), taken, left)
            kept += [] if request.by_hand else [line]
        else:
            kept.append(line)
    return Cut("".join(kept), taken, left)


def _goes(line: str, request: ForgetRequest, out: set[str], *, is_touched: bool) -> bool:
    named = set(PROPOSAL_ID.findall(line))
    return request.wanted.are_in(line) or bool(named & out) or (is_touched and request.repeated.are_in(line))


def _by_hand(
    request: ForgetRequest, own: range | list[int], line: str, drop: set[int], taken: list[str], left: list[str]
) -> None:
    if request.by_hand:
        drop.update(own)
        taken.append(line.strip())
    else:
        left.append(line.strip())
