"""How alike two short texts are by their words; needs no model."""

from __future__ import annotations

import re

_WORD = re.compile(r"[一-鿿]|[^\W_一-鿿](?:(?:(?![一-鿿])[\w./@:#+-])*(?![一-鿿])\w)?|\w")
_COMMON = frozenset(
    """
    a an and are as at be been but by can could did do does for from had has have he her his how i if in into is
    it its just like me my no not of on or our out please she should so some than that the their them then there
    these they this to up us was we were what when where which who why will with would you your
    """.split()  # noqa: SIM905 - a list of words reads better as text
)


def words(text: str) -> list[str]:
    """Lower-case words, paths and identifiers kept whole."""
    return _WORD.findall(text.lower())


def content_words(text: str) -> frozenset[str]:
    """The words that carry content; all words when there are no others."""
    found = words(text)
    return frozenset(w for w in found if w not in _COMMON and len(w) > 1) or frozenset(found)


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Shared words per word of both (Jaccard), 0 to 1."""
    return len(one & other) / len(one | other) if one and other else 0.0
