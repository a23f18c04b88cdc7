"""The change of a friction fix in REVIEW.md: quoted below its item, so that none of its lines can be read as an item.

::

    - [ ] `f-20260222-001` **pip is used instead of uv** — 3 times in 3 sessions. Target: MEMORY.md, Hard Rules.
      > ```diff
      > + Always use uv, never pip.
      > ```

A user may edit an added line. Any other edit is unclear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from memory_pipeline.markdown.blocks import one_line

ADDS, REMOVES = "+ ", "- "
_QUOTED = re.compile(r"[ \t]+>[ ]?(?P<text>[^\r\n]*)")
_FENCE = re.compile(r"(?:`{3,}|~{3,})[ \t]*\w*$")
# a checkbox followed by an id within a line: not read as a proposal, but it looks like one when it is wrapped
_FAKE = re.compile(r"\[([ xX-]?)\](?=\s*`?[pf]-\d)")


@dataclass(frozen=True)
class Change:
    """The change of a fix; ``headline`` replaces the text of a proposal, ``lines`` follow it."""

    headline: str
    lines: tuple[str, ...]
    is_editable: bool
    """Whether it adds one line, whose words a user can edit."""


def unboxed(text: str) -> str:
    """The text without checkboxes that look like those of a proposal."""
    return _FAKE.sub(r"\\[\1\\]", text)


def shown_lines(change: Change) -> list[str]:
    """The lines as shown: without hidden characters, and with their spaces, which may be the indentation of a file."""
    return [unboxed(line) for line in visible("\n".join(change.lines)).split("\n")]


def visible(text: str) -> str:
    """The text without hidden characters; spaces are kept."""
    lines = (re.sub(r"[^ ]+", lambda word: one_line(word[0]), line.expandtabs(4)) for line in text.split("\n"))
    return "\n".join(line.rstrip() for line in lines)


def quoted(change: Change) -> list[str]:
    """The lines of REVIEW.md for the change."""
    lines = shown_lines(change)
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    kind = "diff" if any(line.startswith(("+", "-", "@@")) for line in lines) else "text"
    return [f"  > {line}".rstrip() for line in (f"{fence}{kind}", *lines, fence)]


def is_quoted(line: str) -> bool:
    return _QUOTED.match(line) is not None


def is_block(lines: Sequence[str]) -> bool:
    """Whether the lines are a complete change in the format of `quoted`."""
    texts = [found["text"].rstrip() if (found := _QUOTED.match(line)) else "" for line in lines]
    return (
        len(texts) > 2
        and texts[0].endswith(("`diff", "`text"))
        and all(_FENCE.match(text) for text in (texts[0], texts[-1]))
    )


def unquoted(lines: Sequence[str]) -> tuple[str, ...]:
    """The quoted lines of REVIEW.md, without the surrounding fence."""
    found = [re.sub(r"[\ud800-\udfff]", "\ufffd", m["text"]).rstrip() for line in lines if (m := _QUOTED.match(line))]
    if found and _FENCE.match(found[0]):
        found = found[1:]
    if found and _FENCE.match(found[-1]):
        found = found[:-1]
    return tuple(found)


def text_as_edited(change: Change, offered: str, read: Sequence[str]) -> str | None:
    """The approved text given these lines; ``offered`` if they are unchanged, and None if they are unclear."""
    shown, joined = _unwrapped(shown_lines(change)), _unwrapped(read)
    if joined == shown:
        return offered
    added = [line.removeprefix(ADDS).strip() for line in joined if line.startswith(ADDS)]
    removed = [line for line in joined if not line.startswith(ADDS)]
    is_clear = change.is_editable and len(added) == 1 and removed == [x for x in shown if x.startswith(REMOVES)]
    return (added[0] or None) if is_clear else None


def _unwrapped(lines: Sequence[str]) -> list[str]:
    """The lines with each added or removed one on a single line, as an editor may have wrapped it."""
    joined: list[str] = []
    for line in lines:
        if line.startswith((ADDS, REMOVES)) or not joined:
            joined.append(" ".join(line.split()))
        elif line.strip():
            joined[-1] += " " + " ".join(line.split())
    return joined
