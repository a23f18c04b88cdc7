"""Similarity of two short texts by their words; needs no model.

Chinese, Japanese and Korean do not separate words by spaces as needed here. Each pair of adjacent Chinese characters or
Hangul counts as a word, as in search engines, which needs no dictionary; a pair of function characters carries no
content. Katakana spells loan words, so a run of it is one word; Hiragana is mostly grammar and carries content only if
there is nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from memory_pipeline.text.phrases import word_list
from memory_pipeline.text.regex import deferred

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005"
_HIRAGANA = "\u3041-\u309f"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_UNSPACED = f"{_HAN}{_HIRAGANA}{_KATAKANA}{_HANGUL}"
CJK = deferred(f"[{_UNSPACED}]")
"""A character of Chinese, Japanese or Korean."""
_WORD = deferred(
    rf"[{_HAN}]+|[{_HIRAGANA}]+|[{_KATAKANA}]+|[{_HANGUL}]+"
    rf"|[^\W_{_UNSPACED}](?:(?:(?![{_UNSPACED}])[\w./@:#+-])*(?![{_UNSPACED}])\w)?|\w"
)
_PAIRED = deferred(f"[{_HAN}{_HANGUL}]")
_HAN_CHARACTER = deferred(f"[{_HAN}]")
_GRAMMAR = deferred(f"[{_HIRAGANA}]+")
_LATIN = deferred(r"[A-Za-zªµºÀ-ÖØ-öø-ɏḀ-ỿ]")
_LETTER = deferred(r"[^\W\d_]")
COMMON_ELSEWHERE = word_list("grammar", "german", "french", "spanish")
"""German, French and Spanish words without content, except those that have some in English ("die", "war")."""
COMMON_CHARACTERS = frozenset("".join(word_list("grammar", "chinese")))
"""Chinese function characters: a pair of these, or one alone, carries no content."""
_COMMON = word_list("grammar", "english") | COMMON_ELSEWHERE
MIN_LATIN = 0.9
"""Minimum share of Latin letters in a text that the bundled model can compare."""


def words(text: str) -> list[str]:
    """Lower-case words, with paths and identifiers kept whole, and each pair of adjacent Chinese characters or
    Hangul."""
    return [word for run in _WORD.findall(text.lower()) for word in _in_pairs(run)]


def content_words(text: str) -> frozenset[str]:
    """The words that carry content; all words if none does."""
    return frozenset(content_words_in_order(text))


def content_words_in_order(text: str) -> list[str]:
    """The same words in order, with repetitions."""
    found = words(text)
    return [w for w in found if carries_content(w)] or found


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """The Jaccard similarity of two sets of words, 0 to 1."""
    return len(one & other) / len(one | other) if one and other else 0.0


def is_latin(text: str) -> bool:
    """Whether vectors of the bundled model represent the text. The model was trained on English: cosines of unrelated
    rules were up to .85 in Korean, .70 in Chinese, and .50 in German, French and Spanish."""
    letters = len(_LETTER.findall(text))
    return letters == 0 or len(_LATIN.findall(text)) >= MIN_LATIN * letters


def _in_pairs(run: str) -> Iterator[str]:
    if len(run) > 2 and _PAIRED.match(run):
        yield from (run[i : i + 2] for i in range(len(run) - 1))
    else:
        yield run


def carries_content(word: str) -> bool:
    if len(word) == 1:
        return _HAN_CHARACTER.match(word) is not None and word not in COMMON_CHARACTERS
    return word not in _COMMON and not _GRAMMAR.fullmatch(word) and not COMMON_CHARACTERS.issuperset(word)
