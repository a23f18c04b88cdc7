"""The cues of a text by its language."""

from __future__ import annotations

from memory_pipeline.text.languages.identify import CHINESE, ENGLISH, FRENCH, GERMAN, JAPANESE, SPANISH, language_of
from memory_pipeline.text.phrases import Cues, load

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
