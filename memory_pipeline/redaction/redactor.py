"""Redaction of texts: secrets found by any detector are replaced by marks."""

from __future__ import annotations

import hmac
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from operator import itemgetter

from memory_pipeline.redaction.decoding import CODES, ENCODED, View, encoded, is_encoded
from memory_pipeline.redaction.detectors import LEFT_OUT, PRIVATE, Prefilter, Span, fold
from memory_pipeline.redaction.forgotten import NOTHING, Forgotten
from memory_pipeline.settings import Settings, workspace_salt

Finder = Callable[[str, str], Iterable[Span]]
"""A function of a text and the same in lower case, which finds the spans of secrets of one kind."""
MARK = re.compile(r"\[redacted:[a-z0-9-]+:[0-9a-f]{6}\]")
"""The mark in place of a secret."""
# Characters around an excerpt that are redacted too, as a secret may be recognised by the text before it. At the outer
# edge there may be half a token.
_MARGIN = 512
_EDGE = 128
# Maximum extension of the margin so that it ends with a line, or at least with a word.
_LINE = 4096
_WORD = re.compile(r"\S*")
_CLOSE = "</private>"
# Secrets that are recognised by their beginning, which may be far before the end of the text.
_LONG_SECRETS = ("PRIVATE KEY", "PuTTY-User-Key", PRIVATE)
# Replacing a secret may reveal another, so a text is redacted until nothing is found.
_ROUNDS = 8
# Maximum nesting of encodings, like base64 in escaped JSON in base64.
_DEEPEST = 3
# The indices of the first two finders.
_CODES, _ENCODED = 0, 1


class Redactor:
    """A redactor that replaces secrets and forgotten text by marks; the salt makes the marks of one installation differ
    from those of others."""

    def __init__(self, salt: bytes, forgotten: Forgotten = NOTHING) -> None:
        self.salt, self.forgotten = salt, forgotten

    def redact(self, text: str) -> str:
        """The text with both replaced; unchanged if there are none."""
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
        """The redacted text; if longer than `limit`, its head and tail with a mark that gives the number of omitted
        characters.

        It is redacted before it is cut, as half a token would no longer be recognised.
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
            # the encoded text may begin far before it
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
    """A redactor that keeps secrets, for users who disabled redaction; excerpts are still cut."""

    def __init__(self, forgotten: Forgotten = NOTHING) -> None:
        super().__init__(b"", forgotten)

    def redact(self, text: str) -> str:
        return self.forgotten.without(text)


def redactor_of(settings: Settings) -> Redactor:
    """The workspace's redactor, or one that keeps secrets if the settings say so."""
    forgotten = Forgotten.of(settings)
    return Redactor(workspace_salt(settings), forgotten) if settings.redact else Unredacted(forgotten)


def find_secrets(text: str) -> list[Span]:
    """The spans of secrets in the text, in order, without nesting."""
    spans = _find(text, _DEEPEST)
    return _merged(text, spans) if spans else spans


def _find(text: str, depth: int) -> list[Span]:
    """The findings in the text and in its decoded escapes and base64, to this `depth`."""
    prefilter, all_finders = _load_finders()
    finders = prefilter.finders(text)
    if not finders:
        return []
    spans: list[Span] = []
    if finders[-1] > _ENCODED:
        folded = fold(text)
        spans += [span for index in finders if index > _ENCODED for span in all_finders[index](text, folded)]
    if depth and finders[0] == _CODES and (finders[-1] > _CODES or "\\u" in text):
        view = View(text)
        spans += view.spans(_find(view.text, depth - 1))
    if depth and _ENCODED in finders:
        spans += encoded(text, lambda decoded: bool(_find(decoded, depth - 1)))
    return spans


def _merged(text: str, spans: list[Span]) -> list[Span]:
    """The spans in order, with overlapping ones merged into the kind found first; marks are not split."""
    marks = [found.span() for found in MARK.finditer(text)] if "[redacted:" in text else []
    order: dict[Span, int] = {}
    for number, span in enumerate(spans):
        order.setdefault(span, number)
    merged: list[Span] = []
    first = 0
    for span in sorted(order):
        end = max(_end_of_mark(marks, span.end - 1), span.end)
        if span.kind != LEFT_OUT and _end_of_mark(marks, span.start):
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


def _end_of_mark(marks: list[tuple[int, int]], place: int) -> int:
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
def _load_finders() -> tuple[Prefilter, tuple[Finder, ...]]:
    triggers, finders = zip(*_all_finders(), strict=True)
    return Prefilter(triggers), finders


def _all_finders() -> Iterator[tuple[list[str], Finder]]:
    """The triggers of each finder, which show whether it must search a text, and the finder; if secrets overlap, the
    first one determines the kind. The first two only have triggers: `_find` decodes what they indicate."""
    # imported for the first text, as compiling their patterns takes .1 s
    from memory_pipeline.redaction import assignments, columns, contexts, spoken, tokens

    yield list(CODES), _nothing
    yield list(ENCODED), _nothing
    yield [PRIVATE], _private
    for detector in (*tokens.TOKENS, *contexts.CONTEXTS, *contexts.COMMANDS):
        yield list(detector.triggers), partial(_unfolded, detector.spans)
    for detector in contexts.FOLDED_CONTEXTS:
        yield _in_any_case(detector.triggers), detector.spans
    yield _in_any_case(assignments.ASSIGNED), assignments.assignments
    yield _in_any_case(columns.COLUMNS), columns.columns
    yield _in_any_case(columns.INSERTED), columns.inserted
    yield _in_any_case(contexts.COOKIES), contexts.cookies
    yield _in_any_case(contexts.SECRET_OBJECTS), contexts.secret_objects
    yield _in_any_case(spoken.SPOKEN), spoken.spoken
    yield _in_any_case(spoken.CREDENTIAL_LITERALS), spoken.credentials
    yield _in_any_case(spoken.KEYS), spoken.keys


def _private(text: str, _folded: str) -> Iterator[Span]:
    start = text.find(PRIVATE)
    while start >= 0:
        start += len(PRIVATE)
        end = text.find(_CLOSE, start)
        # without a closing mark, later openings have none either
        if end < 0:
            return
        if text[start:end] != LEFT_OUT:
            yield Span(start, end, LEFT_OUT)
        start = text.find(PRIVATE, end)


def _nothing(_text: str, _folded: str) -> Iterable[Span]:
    return ()


def _unfolded(spans: Finder, text: str, _folded: str) -> Iterable[Span]:
    return spans(text, text)


def _in_any_case(triggers: Iterable[str]) -> list[str]:
    return [f"(?i:{trigger})" for trigger in triggers]
