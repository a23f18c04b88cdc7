"""Base64 that contains a secret: a private key, a service account file, a settings file."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator

from memory_pipeline.redaction.detectors import Span

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
_PRINTED = re.compile(rb"[\t\r\n -~\x80-\xff]*")


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
        whole = _decoded("".join(text[start:end] for start, end in lines))
        if whole and has_secret(whole):
            yield Span(lines[0][0], _padded(text, place), "encoded-secret")
        elif len(lines) > 1:
            for start, end in lines:
                if has_secret(_decoded(text[start:end])):
                    yield Span(start, _padded(text, end), "encoded-secret")


def is_encoded(text: str) -> bool:
    """Whether a line of the text may be base64."""
    return bool(_LINE_OF_TEXT.search(text))


def _padded(text: str, end: int) -> int:
    padding = _PADDING.match(text, end)
    return padding.end() if padding else end


def _decoded(digits: str) -> str:
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


_URL_SAFE = str.maketrans("-_", "+/")
