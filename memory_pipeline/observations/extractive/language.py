"""Whether words are English: the cues are, so elsewhere they would be silent or, worse, wrong."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORD = re.compile(r"[^\W\d_]+")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\S*[/\\_=<>{}]\S*", re.S)
_ENGLISH = frozenset(
    """
    a about after all also an and any are as at be because been but by can could did do does don for from get had has
    have how i if in into is it its just let like make me more my need no not now of on one only or other our out
    please should so some than that the their them then there these they this to up use was we were what when where
    which who why will with would you your
    """.split()  # noqa: SIM905 - a list of words reads better as text
)
SHARE = 0.2
"""Share of the commonest English words above which a text is English; in others it is below a tenth."""
FEW_WORDS = 12
"""Below so many words a share means nothing, and only the script tells."""
LOOKED_AT = 20_000
"""Characters that are enough to tell."""


def is_english(texts: Iterable[str]) -> bool:
    """Whether these texts of one speaker, taken together, are in English."""
    words: list[str] = []
    looked_at = 0
    for text in texts:
        words += _WORD.findall(_CODE.sub(" ", text[:LOOKED_AT]).lower())
        looked_at += len(text)
        if looked_at > LOOKED_AT:
            break
    latin = sum(word.isascii() for word in words)
    if latin < 0.6 * len(words):
        return False
    return len(words) < FEW_WORDS or sum(word in _ENGLISH for word in words) >= SHARE * len(words)
