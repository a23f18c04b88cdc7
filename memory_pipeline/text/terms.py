"""Terms of a text for word search: stems of prose, and names in code both whole and in parts.

`getUserById`, `src/auth/session.py` and `v2.3.1` are found by the whole name and by `user`, `session` or `2.3.1`. Prose
is stemmed in English and also in the language of the text, if that has a stemmer, as a short question is easily taken
for English. Each pair of adjacent Chinese characters or Hangul is a term.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from memory_pipeline.text.languages.identify import ENGLISH, FRENCH, GERMAN, SPANISH, is_plainly_english, language_of
from memory_pipeline.text.similarity import CJK, carries_content, words

MAX_TERM = 80
"""Maximum characters of a term; longer ones are encoded data that nobody searches."""
_STEMMERS = {ENGLISH: "english", GERMAN: "german", FRENCH: "french", SPANISH: "spanish"}
"""Names of Snowball stemmers, by language as given by `language_of`."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_a-zA-Z]+|\d+(?:\.\d+)*")
_CAMEL = re.compile(r"[a-z\d][A-Z]")
_JOINED = re.compile(r"[\W_]")


def terms(text: str) -> list[str]:
    """The terms of a text in order, with repetitions, without function words."""
    language = language_of(text)
    return _in_languages(text, [ENGLISH] if language not in _STEMMERS else list(dict.fromkeys((ENGLISH, language))))


def query_terms(text: str) -> list[str]:
    """The unique terms of a question. One that is not plainly English is stemmed in every language, as a few words do
    not identify theirs, and the model that guesses takes .2 s to load."""
    languages = [ENGLISH] if is_plainly_english(text) else list(_STEMMERS)
    return list(dict.fromkeys(_in_languages(text, languages)))


def _in_languages(text: str, languages: list[str]) -> list[str]:
    return [term for word, written in _written(text) for term in _terms_of(word, written, languages)]


def _written(text: str) -> Iterator[tuple[str, str]]:
    """Each word in lower case and as written; in a few scripts the two have different lengths."""
    lowered = text.lower()
    is_same_length = len(lowered) == len(text)
    at = 0
    for word in words(text):
        start = lowered.find(word, at)
        if start < 0 or not is_same_length:
            yield word, word
            continue
        yield word, text[start : start + len(word)]
        at = start if CJK.search(word) else start + len(word)


def _terms_of(word: str, written: str, languages: list[str]) -> Iterator[str]:
    if len(word) > MAX_TERM or not carries_content(word):
        return
    if CJK.search(word):
        yield word
        return
    is_name = bool(_JOINED.search(word) or _CAMEL.search(written))
    if is_name:
        yield word
        for part in _PART.findall(written):
            if (low := part.lower()) != word and carries_content(low):
                yield from _stems(low, languages)
    else:
        yield from _stems(word, languages)


def _stems(word: str, languages: list[str]) -> Iterator[str]:
    found = [_stem(word, language) for language in languages]
    yield from dict.fromkeys(found)


@lru_cache(maxsize=100_000)
def _stem(word: str, language: str) -> str:
    return str(_stemmer(language).stemWord(word)) if word.isalpha() else word


@cache
def _stemmer(language: str) -> Any:
    import Stemmer  # type: ignore[import-not-found]

    return Stemmer.Stemmer(_STEMMERS[language])
