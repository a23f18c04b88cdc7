"""Encodings undone: terminal colours, escapes of JSON, URLs and HTML, and base64 that contains a secret, such as a
private key, a service account file or a settings file.

Secrets are searched in both forms, so that detectors need not know how a text was encoded on its way into a transcript.
"""

from __future__ import annotations

import base64
import binascii
import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
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
# Four base64 characters are three bytes. The first bit of each ASCII byte is zero, which half of all digits have there.
_ASCII = "(?:[A-Za-f][A-HQ-Xg-nw-z0-3][ABEFIJMNQRUVYZcdghklopstwx014589][A-Za-z0-9+/_-])"
ENCODED = (_ASCII + "{6}",)
"""The trigger of base64 text, in the syntax of re2."""
_TEXT = re.compile(_ASCII + "{6}")
_LINE_OF_TEXT = re.compile(rf"^[ \t]*{_ASCII}{{10}}", re.MULTILINE)
_RUN = re.compile(r"[A-Za-z0-9+/_-]{24,}")
_NEXT_LINE = re.compile(r"\r?\n[ \t]{0,20}([A-Za-z0-9+/_-]+)(?=[=\s\"'\\]|\Z)")
_PADDING = re.compile("={0,2}")
_HEAD = 80
_URL_SAFE = str.maketrans("-_", "+/")
_PRINTED = re.compile(rb"[\t\r\n -~\x80-\xff]*")


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


def encoded(text: str, has_secret: Callable[[str], bool]) -> Iterator[Span]:
    """The spans of base64 that contain a secret when decoded."""
    place = 0
    while run := _RUN.search(text, place):
        place = run.end()
        first = _TEXT.search(text, run.start(), min(run.end(), run.start() + _HEAD))
        if not first:
            continue
        lines = [(first.start(), run.end())]
        # wrapped: lines of equal length, and a shorter last one
        while following := _NEXT_LINE.match(text, place):
            if len(following[1]) > len(run[0]):
                break
            place = following.end()
            lines.append(following.span(1))
            if len(following[1]) < len(run[0]):
                break
        whole = _text_in("".join(text[start:end] for start, end in lines))
        if whole and has_secret(whole):
            yield Span(lines[0][0], _padded(text, place), "encoded-secret")
        elif len(lines) > 1:
            for start, end in lines:
                if has_secret(_text_in(text[start:end])):
                    yield Span(start, _padded(text, end), "encoded-secret")


def is_encoded(text: str) -> bool:
    """Whether a line of the text may be base64."""
    return bool(_LINE_OF_TEXT.search(text))


def _padded(text: str, end: int) -> int:
    padding = _PADDING.match(text, end)
    return padding.end() if padding else end


def _text_in(digits: str) -> str:
    """The decoded text; "" if it is not text, apart from a truncated end."""
    digits = digits.translate(_URL_SAFE)
    try:
        data = base64.b64decode(digits[: len(digits) // 4 * 4])
        left = digits[len(digits) // 4 * 4 :]
        data += base64.b64decode(left + "=" * (4 - len(left))) if len(left) > 1 else b""
    except (binascii.Error, ValueError):
        return ""
    printed = _PRINTED.match(data)
    return data[: printed.end()].decode("utf-8", "replace") if printed and printed.end() >= 16 else ""
