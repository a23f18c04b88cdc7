"""The language of a text and its cues. It is identified by its script, else by a small model of letter sequences.

The default is English, as a few words of code show no language. None of 2,900 sentences of English coding sessions is
taken for another language; of 270 short ones in German, French and Spanish 5 % are taken for English.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import copy
from functools import cache, lru_cache
from typing import Any

from memory_pipeline.text.phrases import Cues, load, word_list
from memory_pipeline.text.similarity import CJK, COMMON_ELSEWHERE

ENGLISH, GERMAN, FRENCH, SPANISH, JAPANESE, CHINESE, KOREAN = "en", "de", "fr", "es", "ja", "zh", "ko"
UNKNOWN = ""
"""Neither English nor a language that has cues."""
_WITH_CUES = (ENGLISH, GERMAN, FRENCH, SPANISH)
_OTHERS = ("it", "pt", "nl", "pl", "sv", "da", "fi", "cs", "tr", "ro", "hu", "no", "id", "vi")
"""Further languages that are considered for a long text; a short one could be in any of them."""
MIN_PROBABILITY = 0.95
"""Minimum probability at which a short text is in another language than English."""
MIN_PROBABILITY_OF_GRAMMAR = 0.45
"""Minimum probability for a text that has a function word foreign to English, and none that only English has."""
MIN_WORDS = 12
"""Minimum words for which a share is meaningful."""
MIN_SHARE = 0.2
"""Minimum share of the most common English words in an English text; in other languages it is below a tenth."""
MIN_KANA = 0.1
"""Minimum share of kana in a Japanese text; Chinese texts hardly quote any."""
LOOKED_AT = 20_000
"""Maximum characters of a text that are read."""
_WORD = re.compile(r"[^\W\d_]+")
_LATIN_WORD = re.compile(r"[A-Za-zÀ-ÖØ-öø-ɏ]+")
_KANA = re.compile(r"[\u3041-\u30ff]")
_HANGUL = re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\[(?:redacted|image):[^\]\n]*\]|[!-~]*[/\\_=<>{}][!-~]*", re.S)
_ENGLISH = frozenset(
    """
    a about after all also an and any are as at be because been but by can could did do does don for from get had has
    have how i if in into is it its just let like make me more my need no not now of on one only or other our out
    please should so some than that the their them then there these they this to up use was we were what when where
    which who why will with would you your
    """.split()  # noqa: SIM905 - a list of words reads better as text
)
_ONLY_ENGLISH = _ENGLISH - frozenset("a also an as at des do in me no on or so son to use was we will".split())  # noqa: SIM905
"""Words that other languages do not share."""
_GRAMMAR = {
    language: word_list("grammar", name)
    for language, name in ((GERMAN, "german"), (FRENCH, "french"), (SPANISH, "spanish"))
}
MIN_LETTERS = 3
"""Minimum letters of a function word that shows a language by itself."""


@lru_cache(maxsize=20_000)
def language_of(text: str) -> str:
    """The language of one text of any length; English if it is uncertain."""
    return _identify(text)


def is_plainly_english(text: str) -> bool:
    """Whether the text has a function word that only English has, or no letters beyond English; needs no model."""
    words = _WORD.findall(_CODE.sub(" ", text).lower())
    if any(word in _ONLY_ENGLISH for word in words):
        return True
    return text.isascii() and not any(word in COMMON_ELSEWHERE for word in words)


def language_of_speaker(texts: Iterable[str]) -> str:
    """The language of all texts of one speaker; `UNKNOWN` for one without cues."""
    return _identify("\n".join(text[:LOOKED_AT] for text in texts))


_SCRIPTS_WITHOUT_CUES = (KOREAN, "other")


def _identify(text: str) -> str:
    prose = _CODE.sub(" ", text[:LOOKED_AT]).lower()
    if by_script := _by_script(prose):
        return UNKNOWN if by_script in _SCRIPTS_WITHOUT_CUES else by_script
    words = _WORD.findall(prose)
    known = sum(word in _ONLY_ENGLISH for word in words)
    if not words or (known >= 2 and known >= MIN_SHARE * len(words)):
        return ENGLISH
    languages = _WITH_CUES if len(words) < MIN_WORDS else (*_WITH_CUES, *_OTHERS)
    found, probability = _classify(" ".join(prose.split()), languages)
    if found in _OTHERS:
        return UNKNOWN if probability >= MIN_PROBABILITY else ENGLISH
    foreign = sum(word in COMMON_ELSEWHERE for word in words)
    least = MIN_PROBABILITY_OF_GRAMMAR if foreign and not known else MIN_PROBABILITY
    if probability >= least and (found != ENGLISH or not foreign):
        return found
    return _by_grammar(words) if foreign > known else ENGLISH


def _by_grammar(words: Sequence[str]) -> str:
    """The only language that has a function word of the text to itself; English if there are none or several."""
    owners = [[language for language, theirs in _GRAMMAR.items() if word in theirs] for word in words]
    found = {
        languages[0]
        for word, languages in zip(words, owners, strict=True)
        if len(languages) == 1 and len(word) >= MIN_LETTERS
    }
    return found.pop() if len(found) == 1 else ENGLISH


def _by_script(prose: str) -> str:
    """The language by letters alone; empty if they are Latin. A Chinese character counts as much as a Latin word."""
    unspaced = CJK.findall(prose)
    letters = sum(map(len, _WORD.findall(prose)))
    latin = _LATIN_WORD.findall(prose)
    if unspaced and len(unspaced) >= len(latin):
        if 2 * len(_HANGUL.findall(prose)) > len(unspaced):
            return KOREAN
        return JAPANESE if len(_KANA.findall(prose)) >= MIN_KANA * len(unspaced) else CHINESE
    return "other" if letters > 2 * (sum(map(len, latin)) + len(unspaced)) else ""


@cache
def _model() -> Any:
    # imported here: it loads numpy and a model, which takes .2 s, and most commands need no language
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


@cache
def _classifier(languages: tuple[str, ...]) -> Any:
    found = copy(_model())
    found.set_languages(list(languages))
    return found


def _classify(prose: str, languages: tuple[str, ...]) -> tuple[str, float]:
    language, probability = _classifier(languages).classify(prose)
    return str(language), float(probability)


_FILES = {
    ENGLISH: "english",
    GERMAN: "german",
    FRENCH: "french",
    SPANISH: "spanish",
    JAPANESE: "japanese",
    CHINESE: "chinese",
}


def english() -> Cues:
    return load(_FILES[ENGLISH])


def cues_in(language: str) -> Cues:
    """The cues of a language; English ones if it has none."""
    return load(_FILES.get(language, _FILES[ENGLISH]))


def cues_of(text: str) -> Cues:
    """The cues of the language of this text."""
    return cues_in(language_of(text))


def has_cues(language: str) -> bool:
    return language in _FILES
