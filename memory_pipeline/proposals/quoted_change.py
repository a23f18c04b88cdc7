"""The change of a friction fix as it stands in REVIEW.md: quoted below its item, so that no line of it can be an item.

::

    - [ ] `f-20260222-001` **pip is used instead of uv** — 3 times in 3 sessions. Target: MEMORY.md, Hard Rules.
      > ```diff
      > + Always use uv, never pip.
      > ```

A user may edit what is quoted. What is read back says what they approve, or that it says nothing clear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from memory_pipeline.markdown.blocks import one_line

ADDS, REMOVES = "+ ", "- "
_QUOTED = re.compile(r"[ \t]+>[ ]?(?P<text>[^\r\n]*)")
_FENCE = re.compile(r"(?:`{3,}|~{3,})[ \t]*\w*$")
# a box with an id behind it, in the middle of a line: no proposal to us, but it looks like one when it is wrapped
_FAKE = re.compile(r"\[([ xX-]?)\](?=\s*`?[pf]-\d)")


@dataclass(frozen=True)
class Change:
    """The change of a fix; ``headline`` takes the place of a proposal's text, ``lines`` follow it.

    ``edits`` says how a user can edit the lines: of an added `line` the words, of a change in words or a diff `all`, of
    a removal `none`.
    """

    headline: str
    lines: tuple[str, ...]
    edits: Literal["line", "all", "none"]


def unboxed(text: str) -> str:
    """The text without boxes that look like those of a proposal."""
    return _FAKE.sub(r"\\[\1\\]", text)


def shown_lines(change: Change) -> list[str]:
    """The lines as they are shown: nothing hidden, spaces kept, for they may be a file's indentation."""
    return [unboxed(line) for line in visible("\n".join(change.lines)).split("\n")]


def visible(text: str) -> str:
    """The lines without anything hidden; their spaces stay."""
    lines = (re.sub(r"[^ ]+", lambda word: one_line(word[0]), line.expandtabs(4)) for line in text.split("\n"))
    return "\n".join(line.rstrip() for line in lines)


def quoted(change: Change) -> list[str]:
    """The lines of REVIEW.md that show it."""
    lines = shown_lines(change)
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    kind = "diff" if any(line.startswith(("+", "-", "@@")) for line in lines) else "text"
    return [f"  > {line}".rstrip() for line in (f"{fence}{kind}", *lines, fence)]


def is_quoted(line: str) -> bool:
    return _QUOTED.match(line) is not None


def is_block(lines: Sequence[str]) -> bool:
    """Whether they are a whole change as `quoted` puts it."""
    texts = [found["text"].rstrip() if (found := _QUOTED.match(line)) else "" for line in lines]
    return (
        len(texts) > 2
        and texts[0].endswith(("`diff", "`text"))
        and all(_FENCE.match(text) for text in (texts[0], texts[-1]))
    )


def unquoted(lines: Sequence[str]) -> tuple[str, ...]:
    """The quoted lines of REVIEW.md, without the fence around them."""
    found = [re.sub(r"[\ud800-\udfff]", "\ufffd", m["text"]).rstrip() for line in lines if (m := _QUOTED.match(line))]
    if found and _FENCE.match(found[0]):
        found = found[1:]
    if found and _FENCE.match(found[-1]):
        found = found[:-1]
    return tuple(found)


def text_as_edited(change: Change, offered: str, read: Sequence[str]) -> str | None:
    """The approved text with these lines; ``offered`` while they are unchanged, and None if they are unclear."""
    shown = shown_lines(change)
    if list(read) == shown:
        return offered
    if change.edits == "all":
        return "\n".join(read).strip("\n") or None
    joined = _unwrapped(read)
    removed = [line for line in joined if line.startswith(REMOVES)]
    added = [line.removeprefix(ADDS).strip() for line in joined if line.startswith(ADDS)]
    if removed != _unwrapped([line for line in shown if line.startswith(REMOVES)]):
        return None
    if change.edits == "none":
        return offered if joined == removed else None
    is_clear = len(added) == 1 and len(joined) == len(removed) + 1
    return (added[0] or None) if is_clear else None


def _unwrapped(lines: Sequence[str]) -> list[str]:
    """Each line that is added or removed on one line: an editor may have wrapped it."""
    joined: list[str] = []
    for line in lines:
        if line.startswith((ADDS, REMOVES)) or not joined:
            joined.append(" ".join(line.split()))
        elif line.strip():
            joined[-1] += " " + " ".join(line.split())
    return joined
