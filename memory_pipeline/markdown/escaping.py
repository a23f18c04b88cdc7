"""What was said, as Markdown that shows it: nothing in it becomes a link, an image, HTML or structure."""

from __future__ import annotations

import html
import re

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$])")
_ESCAPE = re.compile(r"\\(.)")
_START = re.compile(r"^([-=]|\d+(?=[.)]))")


def escaped(text: str) -> str:
    """On one line; a reader of the rendered Markdown sees the text as it is. Addresses alone may still be linked."""
    line = _SPECIAL.sub(r"\\\1", " ".join(text.split()).translate(_HTML))
    return _START.sub(lambda found: f"\\{found[0]}" if not found[0].isdigit() else f"{found[0]}\\", line)


def unescaped(line: str) -> str:
    """The text that `escaped` was given, on one line."""
    return html.unescape(_ESCAPE.sub(r"\1", line))
