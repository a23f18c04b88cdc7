"""What the words of a line give away: that it asks, supposes, orders, or takes another line's place."""

from __future__ import annotations

import re

from memory_pipeline.text.similarity import content_words

_ASKS = re.compile(
    r"[?？][)\"'”’*_`]*$|^(?:(?:and|but|so|ok|no),? )?(?:what|which|who|why|how|where|when) "
    r"(?:is|are|was|were|do|does|did|should|shall|can|could|would|about|if)\b",
    re.IGNORECASE,
)
_SUPPOSES = re.compile(
    r"\b(?:maybe|perhaps|possibly|hypothetically|might|wondering)\b|\bwhat if\b|\bi wonder\b|\bsuppose\b"
    r"|\b(?:if|in case) (?:we|i)\b|\bcould\b(?! not\b)|\bwould be (?:nice|good|better|great|cool|possible)\b",
    re.IGNORECASE,
)
_ORDERS = re.compile(
    r"\b(?:always|never|must|should|shall|needs? to|have to|do not|don't|ignore|disregard|forget|remember|make sure"
    r"|ensure|from now on|instructions?|instead of|system prompt)\b"
    r"|^(?:please )?(?:use|run|add|set|send|call|open|write|read|install|execute|delete|remove|download|fetch|curl"
    r"|click|visit|reply|respond|answer|say|tell|print|store|save|keep|put|take|approve|prefer|avoid|stop|start|switch|trust"
    r"|act|pretend|you)\b",
    re.IGNORECASE,
)
_REPLACES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:instead of|rather than|in place of) (?P<old>.+)",
        r"(?:switch|mov|migrat|chang)\w* (?:\w+ ){0,3}?from (?P<old>.+?) (?:to|over to) ",
        r"replac\w* (?P<old>.+?) (?:with|by) ",
        r"no longer (?:use|using|uses|on|with|in)? ?(?P<old>.+)",
        r",? (?:and )?not (?P<old>.+)",
    )
)
_END = re.compile(r"[,.;:!()]|\s(?:for|in|on|at|to|when|while|because|since|as|if|unless|with|and|or|but|any)\b.*")
_DENIES = re.compile(
    r"\b(?:never|not|no|don't|stop|avoid|without|isn't|aren't|won't|can't)\b(?P<words>[^,.;:!()]*)", re.IGNORECASE
)
_ENDING = re.compile(r"(?:ing|ed|es|e|s)$")
_VERBS = frozenset(
    """
    use uses used using prefer prefers take takes run runs keep always now instead please must should want wants with
    go goes everything everywhere we're we'll it's let's
    """.split()  # noqa: SIM905 - a list of words reads better as text
)
MOST_NAMED = 4
"""Words that the thing which is replaced may have; a longer phrase is a clause and names nothing."""
MIN_STEM = 3
"""Letters of a word that is not shortened."""
MOST_BESIDE = 2
"""Words beside it with which a line is still about that thing alone."""


def asks(text: str) -> bool:
    return _ASKS.search(text.strip()) is not None


def supposes(text: str) -> bool:
    """Whether it weighs what could be: "maybe", "if we", "could"."""
    return _SUPPOSES.search(text) is not None


def orders(text: str) -> bool:
    """Whether it tells somebody what to do."""
    return _ORDERS.search(text.strip()) is not None


def takes_place_of(text: str, older: str) -> bool:
    """Whether the text says that something else holds now than the older line says: "use X instead of Y" after "use Y".

    The older line must name Y, be for it, and be about little else than what the text is about too.
    """
    said, of_text, gone_before = _stems(older), _stems(text), _given_up(older)
    for words in named_as_gone(text):
        named = frozenset(map(_stem, words))
        beside = said - named - _VERB_STEMS
        about = len(beside) <= MOST_BESIDE or 2 * len(beside & of_text) >= len(beside)
        if named <= said and not named & gone_before and about:
            return True
    return False


def breaks_with(text: str, older: str) -> bool:
    """Whether the text gives up something that the older line holds on to: they do not say the same, however many
    words they share. Much less is needed than for taking its place."""
    held = _stems(older) - _given_up(older) - _VERB_STEMS
    return any(not held.isdisjoint(map(_stem, named)) for named in named_as_gone(text))


def named_as_gone(text: str) -> list[frozenset[str]]:
    """What the text says is to be used no more, each as its words."""
    found = []
    for pattern in _REPLACES:
        for match in pattern.finditer(text):
            words = content_words(_END.split(match["old"].strip(), maxsplit=1)[0]) - _VERBS
            if 0 < len(words) <= MOST_NAMED:
                found.append(words)
    return found


def _given_up(text: str) -> frozenset[str]:
    """The stems of what the text itself gives up or refuses."""
    named = [word for words in named_as_gone(text) for word in words]
    denied = [word for match in _DENIES.finditer(text) for word in content_words(match["words"])]
    return frozenset(map(_stem, [*named, *denied]))


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(_stem, content_words(text)))


def _stem(word: str) -> str:
    """Crude: "tag", "tags", "tagged" and "tagging" are one word, and so are "image" and "images"."""
    stem = _ENDING.sub("", word) if word.isalpha() and len(word) > MIN_STEM else word
    is_doubled = stem != word and len(stem) >= MIN_STEM and stem[-1] == stem[-2]
    return stem[:-1] if is_doubled else stem


_VERB_STEMS = frozenset(map(_stem, _VERBS))
