"""How alike two short texts are by their words; needs no model.

Chinese, Japanese and Korean have no spaces where we need them. Of Chinese characters and Hangul each two neighbours are
a word, as search engines have it, which needs no dictionary; a pair of mere grammar carries no content. Katakana spells
loan words, so a run of it is one word; Hiragana is mostly grammar and carries content only where there is nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from memory_pipeline.text.phrases import word_list

_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005"
_HIRAGANA = "\u3041-\u309f"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_HANGUL = "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
_UNSPACED = f"{_HAN}{_HIRAGANA}{_KATAKANA}{_HANGUL}"
CJK = re.compile(f"[{_UNSPACED}]")
"""A character of Chinese, Japanese or Korean."""
_WORD = re.compile(
    rf"[{_HAN}]+|[{_HIRAGANA}]+|[{_KATAKANA}]+|[{_HANGUL}]+"
    rf"|[^\W_{_UNSPACED}](?:(?:(?![{_UNSPACED}])[\w./@:#+-])*(?![{_UNSPACED}])\w)?|\w"
)
_IN_PAIRS = re.compile(f"[{_HAN}{_HANGUL}]")
_HAN_CHARACTER = re.compile(f"[{_HAN}]")
_GRAMMAR = re.compile(f"[{_HIRAGANA}]+")
_LATIN = re.compile(r"[A-Za-zªµºÀ-ÖØ-öø-ɏḀ-ỿ]")
_LETTER = re.compile(r"[^\W\d_]")
COMMON_ELSEWHERE = word_list("grammar", "german", "french", "spanish")
"""German, French and Spanish words that carry no content, without those that carry some in English ("die", "war")."""
COMMON_CHARACTERS = frozenset("".join(word_list("grammar", "chinese")))
"""What Chinese grammar is made of: a pair of these, or one alone, carries no content."""
_COMMON = word_list("grammar", "english") | COMMON_ELSEWHERE
MIN_LATIN = 0.9
"""Share of the letters that are Latin from which a text is one that the bundled model can judge."""


def words(text: str) -> list[str]:
    """Lower-case words, paths and identifiers kept whole; of Chinese characters and Hangul each pair of neighbours."""
    return [word for run in _WORD.findall(text.lower()) for word in _in_pairs(run)]


def content_words(text: str) -> frozenset[str]:
    """The words that carry content; all words when there are no others."""
    return frozenset(content_words_in_order(text))


def content_words_in_order(text: str) -> list[str]:
    """The same words in order, with repetitions."""
    found = words(text)
    return [w for w in found if carries_content(w)] or found


def overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Shared words per word of both (Jaccard), 0 to 1."""
    return len(one & other) / len(one | other) if one and other else 0.0


def is_latin(text: str) -> bool:
    """Whether vectors of the bundled model say what it is about. It was trained on English: of unrelated rules in
    Korean, cosines up to .85 were measured, in Chinese up to .70, in German, French and Spanish up to .50."""
    letters = len(_LETTER.findall(text))
    return letters == 0 or len(_LATIN.findall(text)) >= MIN_LATIN * letters


def _in_pairs(run: str) -> Iterator[str]:
    if len(run) > 2 and _IN_PAIRS.match(run):
        yield from (run[i : i + 2] for i in range(len(run) - 1))
    else:
        yield run


def carries_content(word: str) -> bool:
    if len(word) == 1:
        return _HAN_CHARACTER.match(word) is not None and word not in COMMON_CHARACTERS
    return word not in _COMMON and not _GRAMMAR.fullmatch(word) and not COMMON_CHARACTERS.issuperset(word)
