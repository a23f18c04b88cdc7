"""Hashes of forgotten texts, so that they are left out when they are read again.

A row of the table `forgotten` stands for a session, a message or a sequence of words. It has a hash with the salt of
the workspace, so that the words cannot be read from it; with access to the workspace, guesses can still be verified.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Self

from memory_pipeline.lake.storage import File, Storage, storage_of
from memory_pipeline.settings import Settings, workspace_salt
from memory_pipeline.text.regex import deferred

MARK = "[forgotten]"
"""The mark that replaces words."""
SESSION, MESSAGE, WORDS = "session", "message", "words"
"""Kinds of rows of the table."""
_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
# In scripts without blanks, each sign is a word. The mark is a word that nobody can say.
_WORD = deferred(rf"{re.escape(MARK)}|[{_IDEOGRAPHS}]|[^\W_{_IDEOGRAPHS}]+")
_ESCAPE = deferred(r"\\(?:[nrtbf]|u[0-9a-fA-F]{4})")
_PRIME = (1 << 61) - 1


class Word(NamedTuple):
    """A case-folded word of a text with its position."""

    text: str
    start: int
    end: int


def words_in(text: str) -> list[Word]:
    """The words of a text; separators and case do not count."""
    return [Word(found[0].casefold(), *found.span()) for found in _WORD.finditer(text)]


def readings(text: str) -> Iterator[list[Word]]:
    r"""The words of a text as it stands, and where it may be escaped also as it is meant: in ``\nword`` there is no
    `nword`."""
    yield words_in(text)
    if _ESCAPE.search(text):
        yield words_in(_ESCAPE.sub(lambda found: " " * len(found[0]), text))


@dataclass(frozen=True)
class Forgotten:
    """The sessions, messages and words that were forgotten in a workspace, as hashes."""

    salt: bytes = b""
    sessions: frozenset[str] = frozenset()
    messages: frozenset[str] = frozenset()
    words: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Hashes of sequences by their number of words."""

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The stored hashes of the workspace."""
        storage = storage_of(settings)
        state = storage.state("forgotten/all.parquet")
        if state is None and not storage.backups.is_begun("forgotten"):
            return cls()
        hashes = _hashes(storage, state)
        by_length: defaultdict[int, set[str]] = defaultdict(set)
        for kind, digest, length in hashes:
            if kind == WORDS:
                by_length[length].add(digest)
        return cls(
            workspace_salt(settings),
            frozenset(digest for kind, digest, _ in hashes if kind == SESSION),
            frozenset(digest for kind, digest, _ in hashes if kind == MESSAGE),
            {length: frozenset(digests) for length, digests in by_length.items()},
        )

    @property
    def version(self) -> str:
        """A hash that changes when more is forgotten; empty for nothing."""
        if not self:
            return ""
        parts = (sorted(self.sessions), sorted(self.messages), sorted((n, sorted(d)) for n, d in self.words.items()))
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]

    def __bool__(self) -> bool:
        return bool(self.sessions or self.messages or self.words)

    def has_session(self, session_id: str) -> bool:
        """Whether the session, or the one that started it, is forgotten."""
        names = {session_id, session_id.partition("/")[0]} if self.sessions else set()
        return any(id_digest(self.salt, SESSION, name) in self.sessions for name in names)

    def has_message(self, message_id: str) -> bool:
        return bool(self.messages) and id_digest(self.salt, MESSAGE, message_id) in self.messages

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The spans of forgotten words in a text, in order, without nesting."""
        found = [span for words in readings(text) for span in self._spans(words)] if self.words else []
        return merged(found)

    def _spans(self, words: Sequence[Word]) -> Iterator[tuple[int, int]]:
        numbers = [_number(self.salt, word.text) for word in words]
        for length, digests in self.words.items():
            for first, value in enumerate(_rolling(numbers, length)):
                if f"{value:x}" in digests:
                    yield words[first].start, words[first + length - 1].end

    def without(self, text: str) -> str:
        """The text with marks in place of forgotten words; unchanged if there are none."""
        return masked(text, spans) if self.words and (spans := self.spans(text)) else text


NOTHING = Forgotten()


@lru_cache(maxsize=8)
def _hashes(storage: Storage, _state: File | None) -> list[tuple[str, str, int]]:
    from memory_pipeline.lake.store import Lake  # imports polars, which a search without forgotten texts does not need

    frame = Lake(storage).read("forgotten", columns=["kind", "digest", "words"])
    return [(kind, digest, length or 0) for kind, digest, length in frame.iter_rows()]


def id_digest(salt: bytes, kind: str, identifier: str) -> str:
    """The hash of a session or message."""
    return hmac.digest(salt, f"{kind}\n{identifier}".encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


def words_digest(salt: bytes, words: Sequence[str]) -> str:
    """The hash of a sequence of words."""
    (value,) = _rolling([_number(salt, word) for word in words], len(words))
    return f"{value:x}"


def masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with a mark in place of each span."""
    pieces, end = [], 0
    for start, stop in spans:
        pieces += [text[end:start], MARK]
        end = stop
    return "".join(pieces) + text[end:]


def moved(place: int, spans: Sequence[tuple[int, int]]) -> int:
    """The offset in the text after marks replace the spans; within a span, the beginning of its mark."""
    before = [(start, end) for start, end in spans if start < place]
    shift = sum(len(MARK) - (end - start) for start, end in before if end <= place)
    inside = next((start for start, end in before if place < end), None)
    return (place if inside is None else inside) + shift


def merged(spans: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """The spans in order, with overlapping ones merged."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


class Phrases:
    """Known sequences of words, while they are being forgotten."""

    def __init__(self, texts: Iterable[str]) -> None:
        sequences = {tuple(word.text for word in words_in(text)) for text in texts}
        self.sequences = sorted(sequence for sequence in sequences if sequence)
        self._longest = {max(sequence, key=len) for sequence in self.sequences}
        digests: defaultdict[int, set[str]] = defaultdict(set)
        for sequence in self.sequences:
            digests[len(sequence)].add(words_digest(b"", sequence))
        self._known = Forgotten(words={length: frozenset(of_length) for length, of_length in digests.items()})

    def __bool__(self) -> bool:
        return bool(self.sequences)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """The spans of complete occurrences."""
        folded = text.casefold()
        return self._known.spans(text) if any(word in folded for word in self._longest) else []

    def are_in(self, text: str) -> bool:
        """Whether one of them occurs in the text."""
        return bool(self.spans(text))

    def without(self, text: str) -> str:
        """The text with marks in their place."""
        return masked(text, self.spans(text))


class Runs:
    """Recognition of texts that repeat a passage of some texts, even a truncated one: six consecutive words, or all
    words of a shorter text. Used for derived text that can be rebuilt."""

    LENGTH = 6
    LEAST = 3
    """Minimum words of a text that can be recognised."""

    REPEATED = 200
    """Maximum characters of a text whose result is cached: such texts are mostly keys and names that recur by the
    million in a run storage."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._runs: defaultdict[int, set[tuple[str, ...]]] = defaultdict(set)
        for text in texts:
            words = [word.text for word in words_in(text)]
            if len(words) >= self.LEAST:
                length = min(len(words), self.LENGTH)
                self._runs[length].update(tuple(words[i : i + length]) for i in range(len(words) - length + 1))
        self._firsts = {run[0] for runs in self._runs.values() for run in runs}
        self._cached_search = lru_cache(maxsize=200_000)(self._search)

    def are_in(self, text: str) -> bool:
        return self._cached_search(text) if len(text) <= self.REPEATED else self._search(text)

    def _search(self, text: str) -> bool:
        for words in readings(text):
            names = [word.text for word in words]
            firsts = [i for i, name in enumerate(names) if name in self._firsts]
            for length, runs in self._runs.items():
                if any(tuple(names[i : i + length]) in runs for i in firsts):
                    return True
        return False


def _rolling(numbers: Sequence[int], length: int) -> Iterator[int]:
    """A rolling hash of every sequence of this number of words, in order."""
    if length < 1 or len(numbers) < length:
        return
    base = 1_000_003
    highest = pow(base, length - 1, _PRIME)
    value = 0
    for index, number in enumerate(numbers):
        if index >= length:
            value -= numbers[index - length] * highest
        value = (value * base + number) % _PRIME
        if index >= length - 1:
            yield value


@lru_cache(maxsize=200_000)
def _number(salt: bytes, word: str) -> int:
    key = hashlib.sha256(salt).digest()
    return (
        int.from_bytes(hashlib.blake2b(word.encode("utf-8", "surrogatepass"), key=key, digest_size=8).digest()) % _PRIME
    )
