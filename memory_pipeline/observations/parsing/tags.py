"""The elements of an answer, by whatever name a model gives them, and what their attributes say."""

from __future__ import annotations

import re

from memory_pipeline.observations.parsing.marks import clock_in, kind_named, priority_named, refs_in
from memory_pipeline.text.priorities import EMOJI

CONTAINERS = ("observations", "segment", "facts")
TEXTS = ("title", "narrative", "currenttask", "suggestedresponse", "used", "ended")
"""Elements that hold words, as they are called here: letters only."""
_ALIASES = {
    **{name: name for name in (*CONTAINERS, *TEXTS, "fact")},
    **{"observation": "fact", "keyfacts": "facts", "summary": "narrative", "threadtitle": "title"},
    **{"suggestedcontinuation": "suggestedresponse", "nextstep": "suggestedresponse", "nextsteps": "suggestedresponse"},
    **{"usedobservations": "used", "endedobservations": "ended"},
}
_AROUND = frozenset({"segments", "answer", "output", "response", "result", "document", "memory"})
"""Tags around the answer that mean nothing."""
_SLIPS = {
    name[:i] + name[i + 1 :]: known for name, known in _ALIASES.items() if len(name) > 4 for i in range(len(name))
}
"""Every name with a letter left out: two names that share one are a letter apart."""

_ATTRIBUTE = re.compile(r"([A-Za-z_-]{2,20})\s{0,3}=\s{0,3}(?:\"([^\"]{0,200})\"|'([^']{0,200})'|([^\s\"'>]{1,60}))")
_NUMBER = re.compile(r"(?<!\d)\d{1,6}(?!\d)")


def element_of(name: str) -> str | None:
    """The element that a name means, however it is written: one letter may be wrong, left out or doubled."""
    letters = re.sub(r"[^a-z]", "", name.lower())[:30]
    if letters in _AROUND:
        return None
    known = _ALIASES.get(letters) or (_SLIPS.get(letters) if len(letters) > 4 else None)
    if known or len(letters) < 6:
        return known
    shorter = (letters[:i] + letters[i + 1 :] for i in range(len(letters)))
    return next((found for word in shorter if (found := _ALIASES.get(word) or _SLIPS.get(word))), None)


def attributes_of(text: str) -> dict[str, str]:
    """The attributes of a tag by their names in lower case."""
    return {m[1].lower(): m[2] or m[3] or m[4] or "" for m in _ATTRIBUTE.finditer(text)}


def fact_line(text: str, attributes: dict[str, str]) -> str:
    """A fact that came as an element or as JSON, as the line that it would have been."""

    def value(*names: str) -> str:
        return next((attributes[name] for name in names if attributes.get(name)), "")

    priority = priority_named(value("priority", "importance", "level", "mark"))
    kind, clock = kind_named(value("kind", "type", "category")), clock_in(value("time", "clock", "timestamp", "at"))
    refs = refs_in(value("refs", "ref", "messages", "message", "message_numbers", "evidence", "numbers", "from", "ids"))
    parts = ["*", EMOJI[priority] if priority else "", f"[{kind}]" if kind else "", f"({clock})" if clock else ""]
    numbers = "[" + " ".join(f"#{ref}" for ref in refs) + "]" if refs else ""
    return " ".join(part for part in (*parts, numbers, *text.split()) if part)


def from_to(attributes: dict[str, str]) -> tuple[int | None, int | None]:
    """Numbers of the first and last message, from two attributes or one."""
    first = next(
        (attributes[name] for name in ("from", "start", "first", "messages", "range") if name in attributes), ""
    )
    last = next((attributes[name] for name in ("to", "end", "last") if name in attributes), first)
    numbers, others = _NUMBER.findall(first), _NUMBER.findall(last)
    return (int(numbers[0]) if numbers else None), (int(others[-1]) if others else None)
