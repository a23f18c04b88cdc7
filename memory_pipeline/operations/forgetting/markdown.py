"""Markdown files and their copies without the lines that go: generated lines always, those of a user if they agree."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from memory_pipeline.markdown.blocks import body_of, keys_in, put_block, remove_block, split_lines
from memory_pipeline.markdown.safe_write import decode, encode, update_file, write_atomically
from memory_pipeline.operations.forgetting.changes import Change
from memory_pipeline.operations.forgetting.request import ForgetRequest
from memory_pipeline.proposals.memory_file import PROPOSAL_ID
from memory_pipeline.redaction.forgotten import SESSION
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.daily_log.render import OBSERVATIONS

_STAMPED = re.compile(r"(?P<name>.+)\.\d{8}T\d{6}\.\d{6}Z")
_GENERATED = re.compile(
    r"<!--[^>]*?\b(?P<memory>[pf]-\d{8}-\d{3,})(?!\d)[^>]*?-->|- \[[ xX-]\] `(?P<review>[pf]-\d{8}-\d{3,})` "
)
"""A line of MEMORY.md or an item of REVIEW.md that we wrote, with the id of its proposal."""
_ALONE = re.compile(r"#{1,6}\s|\s*(?:```|~~~)|<!--\s*/?\s*memory:")
"""A heading, a fence, or a marker of a generated block."""
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s")


class Cut(NamedTuple):
    """A text without what goes: the lines that were taken, and those of a user that say it and stay."""

    text: str
    taken: list[str]
    left: list[str]


_CutText = Callable[[str, ForgetRequest], Cut]


def markdown_changes(settings: Settings, request: ForgetRequest) -> Iterator[Change]:
    """The changes of all Markdown files of a workspace and of their backups."""
    for path in (settings.memory_file, settings.review_file):
        yield from _change(path.name, path, cut_items, request, settings.backups)
    yield from _change("backups", settings.review_shown, cut_items, request)
    for path in sorted(settings.log_dir.rglob("*.md")):
        yield from _change("daily logs", path, cut_log, request, settings.backups)
    for path in sorted(settings.backups.rglob("*")):
        if path.is_file() and (found := _STAMPED.fullmatch(path.name)) and ".parquet" not in path.name:
            is_log = found["name"] not in (settings.memory_file.name, settings.review_file.name)
            yield from _change("backups", path, cut_log if is_log else cut_items, request)
    for path in sorted(settings.workspace.glob("*.md")):  # a fix may have been written into one
        if path not in (settings.memory_file, settings.review_file):
            yield from _change(path.name, path, cut_log, request, settings.backups)


def _change(
    place: str, path: Path, cut: _CutText, request: ForgetRequest, backups: Path | None = None
) -> Iterator[Change]:
    """The change of a file, if it says it. Without ``backups`` it is a copy, which is written over."""
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
    write_atomically(path, encode(text), expected=path.read_bytes(), backups=None)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def cut_items(text: str, request: ForgetRequest) -> Cut:
    """MEMORY.md or REVIEW.md. Generated lines go with their proposal; of another proposal in REVIEW.md the words go,
    and its line in MEMORY.md as a whole. All other lines are a user's."""
    out, kept, taken, left = request.ids("proposals"), list[str](), list[str](), list[str]()
    for unit in _units(text):
        generated, says_it = _GENERATED.search(unit), request.wanted.are_in(unit)
        if generated and (generated["memory"] or generated["review"]) in out:
            taken.append(unit.strip())
        elif not says_it:
            kept.append(unit)
        elif generated and generated["review"]:
            taken.append(unit.strip())
            kept.append(request.wanted.without(unit))
        elif generated or request.by_hand:
            taken.append(unit.strip())
        else:
            left.append(unit.strip())
            kept.append(unit)
    return Cut("".join(kept), taken, left)


def _units(text: str) -> Iterator[str]:
    """Items and paragraphs with the lines that continue them, and all other lines one by one."""
    unit = ""
    for line in split_lines(text):
        begins = not line.strip() or _ITEM.match(line) or _ALONE.match(line)
        if unit and (begins or not unit.strip() or _ALONE.match(unit)):
            yield unit
            unit = ""
        unit += line
    if unit:
        yield unit


def cut_log(text: str, request: ForgetRequest) -> Cut:
    """A daily log: its generated blocks lose the lines that say it or name what goes. A block that a user edited is
    theirs, as is every line outside of blocks."""
    taken = list[str]()
    for key in keys_in(text, ""):
        body = body_of(text, key)
        if body is None:
            continue
        window = key.removeprefix(OBSERVATIONS)
        is_touched = key != window and any(name.startswith(window) for name in request.windows)
        lines = body.split("\n")
        gone = [line for line in lines if _goes(line, request, is_touched=is_touched or key == "reflection")]
        if is_touched and request.what == SESSION:  # all of it is the session's
            gone, text = [line for line in lines if line.strip()], remove_block(text, key)
        elif gone:
            text = put_block(text, key, "\n".join(line for line in lines if line not in gone)).text
        taken += gone
    rest = cut_items(text, request)
    return Cut(rest.text, [*taken, *rest.taken], rest.left)


def _goes(line: str, request: ForgetRequest, *, is_touched: bool) -> bool:
    named = request.ids("proposals").intersection(PROPOSAL_ID.findall(line))
    return request.wanted.are_in(line) or bool(named) or (is_touched and request.repeated.are_in(line))
