"""Our words inside markdown: blocks in a user's file that we may replace, and text that cannot break out of its line.

A block is fenced by two HTML comments, each on a line of its own::

    <!-- memory:KEY HASH -->
    body
    <!-- /memory:KEY -->

HASH is the first 12 hex digits of the sha256 of the body (with ``\\n`` as line ending). It tells a block that is still
ours from one that a user edited. What lies outside the block is never changed by a byte.
"""

from __future__ import annotations

import hashlib
import html
import re
import unicodedata
from dataclasses import dataclass
from typing import Literal

from memory_pipeline.text.hidden import without_hidden
from memory_pipeline.text.sentences import run_together

BlockState = Literal["added", "replaced", "unchanged", "edited"]

_KEY = re.compile(r"[\w.:-]+", re.ASCII)
_ANY_FENCE = re.compile(r"<!--\s*/?\s*memory:")
# they join emoji and Persian letters: invisible, but not hidden
_JOINERS = "\u200c\u200d"
_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$])")
_ESCAPE = re.compile(r"\\(.)")
_START = re.compile(r"^([-=]|\d+(?=[.)]))")


@dataclass(frozen=True)
class BlockResult:
    """The text after `put_block`, and what became of the block."""

    text: str
    state: BlockState


def put_block(text: str, key: str, body: str) -> BlockResult:
    """Put ``body`` into the block ``key`` of ``text``: in place if the block exists, else at the end.

    A block that a user edited, left open or doubled is left exactly as it is ("edited"). Raises ValueError for a key
    with other characters than letters, digits and ``._:-``, and for a body that contains a block's fence.
    """
    if not _KEY.fullmatch(key) or _ANY_FENCE.search(body):
        raise ValueError(f"block {key!r}: its key has forbidden characters, or its body contains a block's fence")
    newline = newline_of(text)
    body = _with_newlines(body, "\n").strip("\n")
    opening, closing = f"<!-- memory:{key} {_hash(body)} -->", f"<!-- /memory:{key} -->"

    if not _fences_of(text, key):
        block = _with_newlines(f"{opening}\n{body}\n{closing}\n", newline)
        return BlockResult(text + _gap_after(text, newline) + block, "added")
    found = _find_untouched(text, key)
    if found is None:
        return BlockResult(text, "edited")
    if found["hash"] == _hash(body):
        return BlockResult(text, "unchanged")
    inside = _with_newlines(f"{opening}\n{body}\n", newline)
    return BlockResult(text[: found.start("ours")] + inside + text[found.end("ours") :], "replaced")


def remove_block(text: str, key: str) -> str:
    """The text without the block and the blank line before it; as it is when the block is missing or was edited."""
    found = _find_untouched(text, key)
    if found is None:
        return text
    before, after = text[: found.start("ours")], text[found.end() :]
    newline = newline_of(text)
    return before.removesuffix(newline) + after.removeprefix("\r").removeprefix("\n")


def append_block(text: str | None, key: str, body: str) -> str:
    """The text (None: there is no file) with the block behind it, so that `cut_block` gives it back by the byte.

    The block gets a line ending behind it only where the text had one, or there was no file: that is how `cut_block`
    knows whose the line ending before the block is. Raises ValueError as `put_block` does.
    """
    newline = newline_of(text or "")
    block = _with_newlines(put_block("", key, body).text, newline)
    if text is None or text.endswith("\n"):
        return (text or "") + block
    return text + (newline if text else "") + block.removesuffix(newline)


def cut_block(text: str, key: str) -> str | None:
    """The inverse of `append_block`, also after edits around the block; None if the file would be empty and did not
    exist before. Raises ValueError if `damage` finds something, or if there is no such block."""
    found = _find_untouched(text, key)
    if found is None:
        raise ValueError(f"block {key!r} is not there, or not as it was written")
    before, after = text[: found.start("ours")], text[found.end() :]
    if after:  # it begins with the line ending
        return (before + after[1:]) or None
    ending = "\r\n" if found["ours"].partition("\n")[0].endswith("\r") else "\n"
    return before.removesuffix(ending)


def damage(text: str, key: str) -> tuple[int, str] | None:
    """The line (from 1) and the damage of the block; None if it is intact or missing."""
    places = [text.count("\n", 0, found.start()) + 1 for found in _fences_of(text, key)]
    if not places or _find_untouched(text, key):
        return None
    if len(places) == 1:
        return places[0], "a mark without the other that belongs to it"
    if len(places) > 2:
        return places[2], f"one more mark of the block that begins in line {places[0]}"
    return places[0], f"a block that was edited by hand, down to line {places[1]}"


def has_block(text: str, key: str) -> bool:
    """Whether the text contains a fence of the block, damaged or not."""
    return bool(_fences_of(text, key))


def body_of(text: str, key: str) -> str | None:
    """The content of the block, with ``\\n`` as line ending; None if it is missing or edited."""
    found = _find_untouched(text, key)
    return _with_newlines(found["body"], "\n").removesuffix("\n") if found else None


def keys_in(text: str, prefix: str) -> list[str]:
    """Keys of the blocks that begin with the prefix, in order."""
    return re.findall(
        rf"^\ufeff?<!-- memory:({re.escape(prefix)}[\w.:-]*) [0-9a-f]{{12}} -->", text, re.ASCII | re.MULTILINE
    )


def split_lines(text: str) -> list[str]:
    """The lines of a text with their endings; only ``\\n`` (also after ``\\r``) ends one, unlike in str.splitlines."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def newline_of(text: str) -> str:
    """The line ending that most lines of the text have; ``\\n`` if there are none."""
    windows = text.count("\r\n")
    return "\r\n" if windows > text.count("\n") - windows else "\n"


def insert_lines(lines: list[str], index: int, new: list[str], newline: str) -> None:
    """Insert lines (given without endings) in place; a text without a final line ending stays without one."""
    ended = [line + newline for line in new]
    if ended and index and index == len(lines) and not lines[-1].endswith("\n"):
        lines[-1] += newline
        ended[-1] = new[-1]
    lines[index:index] = ended


def one_line(text: str) -> str:
    """The visible text on one line: no line breaks, no hidden characters, and no way to open or close a comment.

    Hidden are control and format characters and all that `without_hidden` takes out: what a user reviews is what they
    see. Half characters (lone surrogates) become U+FFFD, so that the line can be written as UTF-8.
    """
    visible = run_together("".join(map(_visible, without_hidden(text)[0])))
    return visible.replace("<!--", "&lt;!--").replace("-->", "--&gt;")


def escaped(text: str) -> str:
    """The text on one line, displayed unchanged by a renderer of Markdown. Bare URLs may still become links."""
    line = _SPECIAL.sub(r"\\\1", " ".join(text.split()).translate(_HTML))
    return _START.sub(lambda found: f"\\{found[0]}" if not found[0].isdigit() else f"{found[0]}\\", line)


def unescaped(line: str) -> str:
    """The text that `escaped` was given, on one line."""
    return html.unescape(_ESCAPE.sub(r"\1", line))


def _visible(character: str) -> str:
    if character.isspace() or character in _JOINERS:
        return character
    category = unicodedata.category(character)
    if category == "Cs":
        return "\ufffd"
    return "" if category in ("Cc", "Cf") else character


def _fences_of(text: str, key: str) -> list[re.Match[str]]:
    """Everything that looks like a fence of this block, also when a user or a formatter bent it."""
    return [*re.finditer(rf"<!--\s*/?\s*memory:{re.escape(key)}(?![\w.:]|-(?!->))", text, re.ASCII)]


def _find_untouched(text: str, key: str) -> re.Match[str] | None:
    """The one well-formed block ``key`` whose hash matches its body; None when a user has had a hand in it."""
    name = re.escape(key)
    found = re.search(
        rf"^\ufeff?(?P<ours><!-- memory:{name} (?P<hash>[0-9a-f]{{12}}) -->\r?\n(?P<body>(?:.*\n)*?))"
        rf"<!-- /memory:{name} -->\r?$",
        text,
        re.MULTILINE,
    )
    if found is None or len(_fences_of(text, key)) != 2:
        return None
    body = _with_newlines(found["body"], "\n").removesuffix("\n")
    return found if _hash(body) == found["hash"] else None


def _gap_after(text: str, newline: str) -> str:
    """The line endings to add so that a blank line precedes what follows."""
    if text in ("", "\ufeff"):
        return ""
    lines = split_lines(text)
    gap = "" if lines[-1].endswith("\n") else newline
    return gap + (newline if lines[-1].strip() else "")


def _with_newlines(text: str, newline: str) -> str:
    return re.sub(r"\r\n|\r|\n", newline, text)


def _hash(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()[:12]
