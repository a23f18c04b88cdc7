"""Words of the formats and examples in `prompts/`, which weak models copy instead of filling them in."""

from __future__ import annotations

import re

_BEGINNINGS = (
    *("up to 8 words", "1 to 3 sentences", "what was wanted, what was done", "the fact alone", "mark kind"),
    *("what the person is working on at the end", "what to do or say next when the work goes on"),
    *("numbers of earlier observations that", "only if earlier observations are shown", "what set it off"),
    "in shop-api the tests run with `make test-db`",
    "in shop-api sessions are kept in postgres instead of redis",
    "install packages in shop-api with uv, not with pip",
)
"""The first words of each placeholder and example, in lower case."""
_ANYWHERE = re.compile("|".join(map(re.escape, _BEGINNINGS)), re.I)
_WHOLE = re.compile(r"\W*(?:the (?:fact|line)|what changed|in one sentence, what is new)\W*", re.I)
_LEADING_CHARACTERS = " \t\"'`*_<>([{…“„«"


def is_placeholder(text: str) -> bool:
    """Whether the text begins like a placeholder of a format or an example."""
    return text.lstrip(_LEADING_CHARACTERS).casefold().startswith(_BEGINNINGS) or bool(_WHOLE.fullmatch(text))


def copied(answer: str) -> int:
    """The number of placeholders and examples in a raw answer."""
    return sum(1 for _ in _ANYWHERE.finditer(answer))
