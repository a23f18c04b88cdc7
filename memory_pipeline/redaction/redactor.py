"""Redacts texts: finds what any detector knows and puts marks in its place."""

from __future__ import annotations

import hmac
import re
from bisect import bisect_right
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING

from memory_pipeline.redaction.detectors import LEFT_OUT, PRIVATE, Prefilter, Span, fold
from memory_pipeline.redaction.encoded import encoded, is_encoded
from memory_pipeline.redaction.forgotten import NOTHING, Forgotten
from memory_pipeline.redaction.views import View
from memory_pipeline.settings import Settings, workspace_salt

if TYPE_CHECKING:
    from memory_pipeline.redaction.finders import Finder

MARK = re.compile(r"\[redacted:[a-z0-9-]+:[0-9a-f]{6}\]")
"""The mark in place of a secret."""
# What is redacted around an excerpt, since a secret may be recognised by what is before it. At its outer edge half a
# token may stand.
_MARGIN = 512
_EDGE = 128
# How far the margin is widened so that it ends with a line, or at least with a word.
_LINE = 4096
_WORD = re.compile(r"\S*")
# These are known by their beginning, which may lie far before the end of the text.
_LONG_SECRETS = ("PRIVATE KEY", "PuTTY-User-Key", PRIVATE)
# What a mark uncovers may be a secret on its own, so a text is gone through until nothing is found.
_ROUNDS = 8
# Base64 in escaped JSON in base64: each is looked into, but not without end.
_DEEPEST = 3
# The positions of the first two finders.
_CODES, _ENCODED = 0, 1


class Redactor:
    """Replaces secrets, and what a user had forgotten, by marks; the salt makes the marks of one installation differ
    from those of any other."""

    def __init__(self, salt: bytes, forgotten: Forgotten = NOTHING) -> None:
        self.salt, self.forgotten = salt, forgotten

    def redact(self, text: str) -> str:
        """The text with both replaced; one without any comes back as it is."""
        for _ in range(_ROUNDS):
            spans = find_secrets(text)
            if not spans:
                break
            pieces = []
            end = 0
            for span in spans:
                pieces += [text[end : span.start], self.mark(span.kind, text[span.start : span.end])]
                end = span.end
            text = "".join(pieces) + text[end:]
        return self.forgotten.without(text)

    def excerpt(self, text: str, limit: int) -> str:
        """The text, redacted; of one longer than `limit` its head and tail, with a mark that says how much is left out.

        It is redacted before it is cut: half a token at the cut would no longer be recognised as one.
        """
        if len(text) <= limit:
            return self.redact(text)
        mark = f"\n[… {len(text) - limit:,} characters left out …]\n"
        left = max(limit - len(mark), 0)
        tail_size = left // 3
        head_size = left - tail_size
        last = _start_of_line(text, len(text) - tail_size - _MARGIN)
        if (
            len(text) <= limit + 2 * _MARGIN
            or any(opening in text for opening in _LONG_SECRETS)
            # what it is of may begin far before it
            or is_encoded(text[last : last + _LINE])
        ):
            head = tail = self.redact(text)
            if len(head) <= limit:
                return head
        else:
            head = self.redact(text[: _end_of_line(text, head_size + _MARGIN)])[:-_EDGE]
            tail = self.redact(text[last:])[_EDGE:]
        return head[:head_size] + mark + tail[max(len(tail) - tail_size, 0) :]

    def mark(self, kind: str, secret: str) -> str:
        """The mark of a secret."""
        if kind == LEFT_OUT:
            return LEFT_OUT
        digest = hmac.digest(self.salt, secret.encode("utf-8", "surrogatepass"), "sha256")
        return f"[redacted:{kind}:{digest[:3].hex()}]"


class Unredacted(Redactor):
    """Leaves secrets in every text, for a user who has switched redaction off; excerpts are cut all the same."""

    def __init__(self, forgotten: Forgotten = NOTHING) -> None:
        super().__init__(b"", forgotten)

    def redact(self, text: str) -> str:
        return self.forgotten.without(text)


def redactor_of(settings: Settings) -> Redactor:
    """The workspace's redactor, or one that leaves secrets where the settings say so."""
    forgotten = Forgotten.of(settings)
    return Redactor(workspace_salt(settings), forgotten) if settings.redact else Unredacted(forgotten)


def find_secrets(text: str) -> list[Span]:
    """The secrets in the text, in order, none within another."""
    spans = _found(text, _DEEPEST)
    return _merged(text, spans) if spans else spans


def _found(text: str, depth: int) -> list[Span]:
    """The findings in the text and in its decoded escapes and base64, to this `depth`."""
    prefilter, all_finders = _search()
    finders = prefilter.finders(text)
    if not finders:
        return []
    spans: list[Span] = []
    if finders[-1] > _ENCODED:
        folded = fold(text)
        spans += [span for index in finders if index > _ENCODED for span in all_finders[index](text, folded)]
    if depth and finders[0] == _CODES and (finders[-1] > _CODES or "\\u" in text):
        view = View(text)
        spans += view.spans(_found(view.text, depth - 1))
    if depth and _ENCODED in finders:
        spans += encoded(text, lambda decoded: bool(_found(decoded, depth - 1)))
    return spans


def _merged(text: str, spans: list[Span]) -> list[Span]:
    """The spans in order, with overlapping ones made one of the kind that was found first; marks stay whole."""
    marks = [found.span() for found in MARK.finditer(text)] if "[redacted:" in text else []
    order: dict[Span, int] = {}
    for number, span in enumerate(spans):
        order.setdefault(span, number)
    merged: list[Span] = []
    first = 0
    for span in sorted(order):
        end = max(_mark_around(marks, span.end - 1), span.end)
        if span.kind != LEFT_OUT and _mark_around(marks, span.start):
            continue
        if merged and span.start < merged[-1].end:
            last = merged.pop()
            kind = span.kind if order[span] < first else last.kind
            first = min(first, order[span])
            merged.append(Span(last.start, max(last.end, end), kind))
        elif end > span.start:
            merged.append(Span(span.start, end, span.kind))
            first = order[span]
    return merged


def _mark_around(marks: list[tuple[int, int]], place: int) -> int:
    """The end of the mark around the position, or 0."""
    index = bisect_right(marks, place, key=itemgetter(0))
    if index and marks[index - 1][0] <= place < marks[index - 1][1]:
        return marks[index - 1][1]
    return 0


def _end_of_line(text: str, at: int) -> int:
    end = text.find("\n", at, at + _LINE)
    if end < 0:
        word = _WORD.match(text, at, at + _LINE)
        end = word.end() if word else at
    return end


def _start_of_line(text: str, at: int) -> int:
    start = text.rfind("\n", max(at - _LINE, 0), at)
    if start < 0:
        word = _WORD.match(text[max(at - _LINE, 0) : at][::-1])
        start = at - (word.end() if word else 0)
    return start


@cache
def _search() -> tuple[Prefilter, tuple[Finder, ...]]:
    """The finders, loaded for the first text and not on import: compiling their patterns takes a tenth of a second."""
    from memory_pipeline.redaction.finders import all_finders

    triggers, finders = zip(*all_finders(), strict=True)
    return Prefilter(triggers), finders
