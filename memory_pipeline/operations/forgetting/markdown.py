"""Removal of lines from Markdown files and their copies: generated lines always, those of a user if they agree."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from memory_pipeline.markdown.blocks import body_of, keys_in, put_block, remove_block, split_lines
from memory_pipeline.markdown.safe_write import decode, encode, replace_file, update_file
from memory_pipeline.operations.forgetting.changes import Change
from memory_pipeline.operations.forgetting.request import ForgetRequest
from memory_pipeline.proposals.memory_file import PROPOSAL_ID, lines_of
from memory_pipeline.redaction.forgotten import SESSION
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.daily_log.render import OBSERVATIONS

_STAMPED = re.compile(r"(?P<name>.+)\.\d{8}T\d{6}\.\d{6}Z")
_MEMORY_LINE = re.compile(r"<!--[^>]*?\b(?P<id>[pf]-\d{8}-\d{3,})(?!\d)[^>]*?-->")
"""The comment with a proposal id after a generated line of MEMORY.md."""
_REVIEW_ITEM = re.compile(r"- \[[ xX-]\] `(?P<id>[pf]-\d{8}-\d{3,})` ")


class Cut(NamedTuple):
    """A cleaned text with the removed lines, and the matching lines of a user that were kept."""

    text: str
    taken: list[str]
    left: list[str]


_CutText = Callable[[str, ForgetRequest], Cut]


def markdown_changes(settings: Settings, request: ForgetRequest) -> Iterator[Change]:
    """The changes of all Markdown files of a workspace and of their backups."""
    yield from _change("MEMORY.md", settings.memory_file, cut_memory, request, settings.backups)
    yield from _change("REVIEW.md", settings.review_file, cut_review, request, settings.backups)
    yield from _change("backups", settings.review_shown, cut_review, request)
    for path in sorted(settings.log_dir.rglob("*.md")):
        yield from _change("daily logs", path, cut_log, request, settings.backups)
    known = {settings.memory_file.name: cut_memory, settings.review_file.name: cut_review}
    for path in sorted(settings.backups.rglob("*")):
        if path.is_file() and (found := _STAMPED.fullmatch(path.name)) and ".parquet" not in path.name:
            yield from _change("backups", path, known.get(found["name"], cut_log), request)
    for path in sorted(settings.workspace.glob("*.md")):  # a fix may have changed one
        if path not in (settings.memory_file, settings.review_file):
            yield from _change(path.name, path, cut_log, request, settings.backups)


def _change(
    place: str, path: Path, cut: _CutText, request: ForgetRequest, backups: Path | None = None
) -> Iterator[Change]:
    """The change of a file, if it matches. Without ``backups`` the file is a copy, which is overwritten."""
    text = decode(path.read_bytes()) if path.is_file() else ""
    found = cut(text, request)
    if found.text != text or (found.left and backups):
        if backups:
            apply = partial(update_file, path, partial(_cut_bytes, cut, request), backups=backups)
            yield Change(place, found.taken, apply, [f"{path}: {line}" for line in found.left])
        else:
            yield Change(place, found.taken, partial(_overwrite, path, found.text))


def _cut_bytes(cut: _CutText, request: ForgetRequest, now: bytes | None) -> bytes:
    return encode(cut(decode(now), request).text) if now is not None else b""


def _overwrite(path: Path, text: str) -> None:
    status = path.stat()
    replace_file(path, encode(text), like=path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


class _Cutter:
    """The kept and the removed parts of a text."""

    def __init__(self, request: ForgetRequest) -> None:
        self._request = request
        self._kept, self._taken, self._left = list[str](), list[str](), list[str]()

    def take(self, part: str, instead: str = "") -> None:
        """Remove or replace a generated part."""
        self._taken.append(part.strip())
        self._kept.append(instead)

    def take_by_hand(self, part: str) -> None:
        """Remove a user's part if it has the words and the user agreed; keep it otherwise."""
        if self._request.wanted.are_in(part):
            if self._request.by_hand:
                self.take(part)
                return
            self._left.append(part.strip())
        self._kept.append(part)

    @property
    def cut(self) -> Cut:
        return Cut("".join(self._kept), self._taken, self._left)


def cut_memory(text: str, request: ForgetRequest) -> Cut:
    """MEMORY.md without the lines to be removed: those with a proposal id are generated, all others a user's."""
    out, cutter = request.ids("proposals"), _Cutter(request)
    lines = split_lines(text)
    sizes = {item.line_number - 1: item.lines for item in lines_of(encode(text))}
    index = 0
    while index < len(lines):
        size = sizes.get(index, 1)
        part = "".join(lines[index : index + size])
        generated = _MEMORY_LINE.search(part)
        if generated and (generated["id"] in out or request.wanted.are_in(part)):
            cutter.take(part)
        else:
            cutter.take_by_hand(part)
        index += size
    return cutter.cut


def cut_review(text: str, request: ForgetRequest) -> Cut:
    """REVIEW.md without the proposals to be removed, and with marks for the words in other items and their evidence."""
    out, cutter = request.ids("proposals"), _Cutter(request)
    goes = False
    for line in split_lines(text):
        item = _REVIEW_ITEM.match(line)
        if item or not line.startswith((" ", "\t")):
            goes = item is not None and item["id"] in out
        if goes:
            cutter.take(line)
        elif (item or line.lstrip().startswith(("_", ">"))) and request.wanted.are_in(line):
            cutter.take(line, instead=request.wanted.without(line))
        else:
            cutter.take_by_hand(line)
    return cutter.cut


def cut_log(text: str, request: ForgetRequest) -> Cut:
    """A daily log whose generated blocks lose matching lines and references. A block that a user edited is theirs, as
    is every line outside blocks."""
    taken, cutter = list[str](), _Cutter(request)
    for key in keys_in(text, ""):
        body = body_of(text, key)
        if body is None:
            continue
        window = key.removeprefix(OBSERVATIONS)
        is_touched = key != window and any(name.startswith(window) for name in request.windows)
        lines = body.split("\n")
        gone = [line for line in lines if _is_removed(line, request, is_touched=is_touched or key == "reflection")]
        if is_touched and request.what == SESSION:  # the whole block belongs to the session
            gone, text = [line for line in lines if line.strip()], remove_block(text, key)
        elif gone:
            text = put_block(text, key, "\n".join(line for line in lines if line not in gone)).text
        taken += gone
    for line in split_lines(text):
        cutter.take_by_hand(line)
    rest = cutter.cut
    return rest._replace(taken=[*taken, *rest.taken])


def _is_removed(line: str, request: ForgetRequest, *, is_touched: bool) -> bool:
    named = request.ids("proposals").intersection(PROPOSAL_ID.findall(line))
    return request.wanted.are_in(line) or bool(named) or (is_touched and request.repeated.are_in(line))
