"""The cues of a text that is not in English."""

from __future__ import annotations

from memory_pipeline.text.languages import chinese, french, german, japanese, spanish
from memory_pipeline.text.languages.identify import CHINESE, ENGLISH, FRENCH, GERMAN, JAPANESE, SPANISH, language_of
from memory_pipeline.text.languages.roles import Cues

_CUES = {
    GERMAN: german.CUES,
    FRENCH: french.CUES,
    SPANISH: spanish.CUES,
    JAPANESE: japanese.CUES,
    CHINESE: chinese.CUES,
}


def cues_in(language: str) -> Cues | None:
    """None for English, whose cues are elsewhere, and for a language that has none."""
    return _CUES.get(language)


def foreign_cues(text: str) -> Cues | None:
    """Those of the language that this text is in."""
    return cues_in(language_of(text))


def has_cues(language: str) -> bool:
    return language == ENGLISH or language in _CUES
