"""Names and numbers of a text: paths, names in code, versions. Models get these wrong, and nobody notices.

What counts as a specific depends on the purpose, so each use has its own pattern here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from memory_pipeline.text.dates import CLOCK, DATE
from memory_pipeline.text.regex import deferred

_CHECKED = deferred(
    r"`[^`\n]+`"
    r"|(?<![\w.~@/-])[\w.~@-]*/[\w./~@:-]*\w"  # paths
    r"|\b\w+\.[A-Za-z]\w{0,4}\b|\bv?\d+(?:\.\d+)+\b"  # files, versions
    r"|\b\w+_\w+\b|\b[a-z]+[A-Z]\w+|--[\w-]+"  # names in code, options
    r"|\b\d{2,}\b"
)
"""Specifics that a model may write only if they were said, and that two facts must share to be the same."""
COUNTED = deferred(
    r"`[^`]+`|\b[\w.-]+/[\w./-]+|\b\w+\.\w{1,5}\b|\b\d+(\.\d+)+\b|\b\w+_\w+\b|\b[a-z]+[A-Z]\w+|\b\d{2,}\b|--\w+"
)
"""Specifics that the extractive observer counts in a unit. Its weights were fitted with this pattern."""
CODE = deferred(
    r"`|\b[\w.-]+/[\w./-]+\w|\b\w+\.(?:py|ts|js|go|rs|md|json|sh|ya?ml|toml)\b|\b\w+_\w+\b|\b[a-z]+[A-Z]\w+|--\w+"
)
"""Names of files, identifiers or options, which are rare in conversation between people."""
CODE_PLACE = deferred(
    r"`[^`\n]+`|\b[a-z]+[A-Z]\w+|\b[A-Z][a-z]+[A-Z]\w+|\w_\w+|\w\.\w+\(|\w\(\)|\blines? \d+|"
    r"\b[a-z]+-\d\b|\w\.[A-Za-z]\w+|(?<!\w)/\w+/\w+"
)
"""A name or a location in code; a pasted review has many of them."""
CAPITALISED = deferred(r"(?<=[\w,;:&)’'] )[A-Z][\w’'-]*|\b\w+[a-z][A-Z]\w*")
"""A capitalised word within a sentence, or capitals within a word: names of people, places and things."""
_NUMBERED = deferred(r"[\w./@:+-]*\d[\w./@:+-]*")
"""Words with a digit."""
_NAMED = deferred(r"(?<!\w)(?:'([^'\s]+)'|\"([^\"\s]+)\"|`([^`\s]+)`|“([^”\s]+)”|「([^」\s]+)」)(?!\w)")
"""A name in quotation marks."""
_VERSION = deferred(r"v\d+(?:\.\d+)*")
_MARKS = str.maketrans("", "", "`*\"'“”‘’")
_NAME = deferred(r"[a-z][A-Z]|\w_\w|^[A-Z][a-z]+\.\w{5,}$")
_INNER = deferred(r"[\w.~@/:-]*\w")
_ABBREVIATION = deferred(r"(?:[A-Za-z]\.)+[A-Za-z]?$|\b(?:and|or|either)/")


class Words:
    """The texts of a window, in which names and numbers are looked up."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._text = _plain("\n".join(texts))
        self._known: dict[str, bool] = {}

    def has(self, specific: str) -> bool:
        """Whether the texts contain it, ignoring case; a number only as a separate number."""
        if specific not in self._known:
            wanted = _plain(specific)
            wanted = wanted[1:] if _VERSION.fullmatch(wanted) else wanted
            is_number = wanted.replace(".", "").isdigit()
            found = (
                re.search(rf"(?<![\d.]){re.escape(wanted)}(?!\d)", self._text) if is_number else wanted in self._text
            )
            self._known[specific] = bool(found)
        return self._known[specific]


def specifics(text: str) -> list[str]:
    """The specifics of a text, unique and in order, without quotes and backticks; clock times and dates are checked
    elsewhere."""
    found = (match.strip("`").rstrip(".,:;") for match in _CHECKED.findall(CLOCK.sub(" ", DATE.sub(" ", text))))
    return list(dict.fromkeys(s for s in found if s and not _ABBREVIATION.match(s)))


def differ_in_numbers(one: str, other: str) -> bool:
    """Whether the numbers differ: port 3000 is not port 4000, however similar the sentences are."""
    mine, theirs = ({found.rstrip(".:/-") for found in _NUMBERED.findall(text)} for text in (one, other))
    return bool(mine and theirs) and mine.isdisjoint(theirs)


def differ_in_names(one: str, other: str) -> bool:
    """Whether the names in quotation marks differ: the prefix `a_` is not `b_`, however similar the sentences are."""
    mine, theirs = ({"".join(found).rstrip(".,:;") for found in _NAMED.findall(text)} for text in (one, other))
    return bool(mine and theirs) and mine.isdisjoint(theirs)


def missing_specifics(text: str, said: Words) -> list[str]:
    """The specifics of the text that were not said, neither whole nor in parts that a writer may have joined."""
    return [specific for specific in specifics(text) if not _is_stated(specific, said)]


def _is_stated(specific: str, said: Words) -> bool:
    return said.has(specific) or any(all(_is_stated(p, said) for p in parts) for parts in _in_parts(specific))


def _in_parts(specific: str) -> Iterator[list[str]]:
    """Lists of parts that count as the name if all were said: the words of a command, alternatives like "patch/major",
    a folder and the file in it, a member and its owner. The last two parts of a path must have been said together."""
    if inner := _INNER.findall(specific):
        if inner != [specific]:
            yield inner
        elif all(part.isalpha() for part in specific.split("/")) and "/" in specific:
            yield specific.split("/")
        elif specific.count("/") > 1:
            *folders, folder, name = specific.split("/")
            yield [*filter(None, folders), f"{folder}/{name}"]
        elif "." in specific and "/" not in specific and _NAME.search(specific):
            yield specific.split(".")


def _plain(text: str) -> str:
    return text.translate(_MARKS).lower().replace("\\", "/").replace("__", "")  # bold marks outside names
