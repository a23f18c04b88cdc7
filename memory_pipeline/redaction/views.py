"""A text with its encodings undone: terminal colours, and escapes of JSON, URLs and HTML.

Secrets are searched in both forms, so that detectors need not know how a text was encoded on its way into a transcript.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from urllib.parse import unquote_to_bytes

from memory_pipeline.redaction.detectors import Span

CODES = (
    "\x1b\\[",
    r"\\(?:[nrtu\"'/]|x1b|e\[|0?33)",
    r"%(?i:[2-3][0-9a-f]|40|5[bcd]|7[bcd])",
    "&(?:quot|amp|lt|gt|apos|nbsp|#)",
)
"""The trigger of encoded text, in the syntax of re2."""
_CODE = re.compile(
    "\x1b\\[[0-9;:?]{0,24}[A-Za-z]"
    r"|\\+(?:(?:x1b|0?33|e|u001b)\[[0-9;:?]{0,24}[A-Za-z]|[nrt\"'/]|u[0-9a-f]{4})"
    r"|(?:%[2-7][0-9a-f]){1,200}"
    r"|&(?:quot|amp|lt|gt|apos|nbsp|#\d{2,5}|#x[0-9a-f]{2,4});",
    re.IGNORECASE,
)
_COMMON = {"\\n": "\n", '\\"': '"', "\\t": "\t", "\\\\n": "\n", '\\\\"': '"', "\\'": "'", "%20": " "}
_SIGNS = {"n": "\n", "r": "", "t": "\t", "N": "\n", "R": "", "T": "\t"}


class View:
    """The decoded text, and the position of each part in the original."""

    def __init__(self, text: str) -> None:
        self.of = text
        self.text = _CODE.sub(_decode, text)

    def spans(self, spans: list[Span]) -> list[Span]:
        """The spans of the original text for spans of the view; an escape is never split."""
        if not spans:
            return spans
        views, ranges = self._ranges()
        return [
            Span(_range(views, ranges, span.start)[0], _range(views, ranges, span.end - 1)[1], span.kind)
            for span in spans
        ]

    def _ranges(self) -> tuple[list[int], list[tuple[int, int, int]]]:
        """The start of each piece in the view, its start and end in the text, and its length in the view."""
        views: list[int] = []
        ranges: list[tuple[int, int, int]] = []
        length = end = 0
        for found in _CODE.finditer(self.of):
            for start, stop, size in ((end, found.start(), found.start() - end), (*found.span(), len(_decode(found)))):
                if size:
                    views.append(length)
                    ranges.append((start, stop, size))
                    length += size
            end = found.end()
        views.append(length)
        ranges.append((end, len(self.of), len(self.of) - end))
        return views, ranges


def _range(views: list[int], ranges: list[tuple[int, int, int]], place: int) -> tuple[int, int]:
    index = bisect_right(views, place) - 1
    start, end, size = ranges[index]
    if size != end - start:
        return start, end
    start += place - views[index]
    return start, start + 1


def _decode(found: re.Match[str]) -> str:
    code = found[0]
    common = _COMMON.get(code)
    return _read(code) if common is None else common


def _read(code: str) -> str:
    if code[0] == "%":
        return unquote_to_bytes(code).decode("utf-8", "replace")
    if code[0] == "&":
        return html.unescape(code)
    body = code.lstrip("\\")
    if "[" in body or code[0] == "\x1b":
        return ""
    if body[0] in "uU":
        character = chr(int(body[1:], 16))
        return "\ufffd" if "\ud800" <= character <= "\udfff" else character
    return _SIGNS.get(body, body)
