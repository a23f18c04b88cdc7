"""Text as Markdown that displays it: nothing in it becomes a link, an image, HTML or structure."""

from __future__ import annotations

import html
import re

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~$])")
_ESCAPE = re.compile(r"\\(.)")
_START = re.compile(r"^([-=]|\d+(?=[.)]))")


def escaped(text: str) -> str:
    """The text on one line, displayed unchanged by a renderer of Markdown. Bare URLs may still become links."""
    line = _SPECIAL.sub(r"\\\1", " ".join(text.split()).translate(_HTML))
    return _START.sub(lambda found: f"\\{found[0]}" if not found[0].isdigit() else f"{found[0]}\\", line)


def unescaped(line: str) -> str:
    """The text that `escaped` was given, on one line."""
    return html.unescape(_ESCAPE.sub(r"\1", line))
