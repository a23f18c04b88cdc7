"""A text on one line, for a list or a table."""

from __future__ import annotations

import re

CODE = re.compile(r"(`[^`\n]{1,300}`)")
"""Inline code in Markdown; the odd parts of `split` are code."""
_CODE_OVER_LINES = re.compile(r"(`[^`]{1,300}`)")
_BREAK = re.compile(r"\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def run_together(text: str) -> str:
    """The text on one line with runs of white space reduced to one space, except inside code, where each character
    counts.

    The function is idempotent.
    """
    if "`" not in text:
        return " ".join(text.split())
    parts = _CODE_OVER_LINES.split(text)
    parts = [_BREAK.sub(" ", part) if i % 2 else _squeezed(part) for i, part in enumerate(parts)]
    return "".join(parts).strip()


def _squeezed(text: str) -> str:
    """The text with runs of spaces reduced to one space."""
    words = " ".join(text.split())
    if not words:
        return " " if text else ""
    return f"{' ' if text[0].isspace() else ''}{words}{' ' if text[-1].isspace() else ''}"
