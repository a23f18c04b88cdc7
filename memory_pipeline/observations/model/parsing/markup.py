"""What the format of an answer may have added to the words in it: XML's entities, and tags that are only looks.

An answer that looks like XML may be written as XML, with `&lt;` for `<`; or `&lt;` stands there because somebody typed
it. The answer alone cannot tell, so it is asked what was said.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from memory_pipeline.observations.model.parsing.cleaning import ENTITIES, ENTITY

_LOOKS = re.compile(r"</?(?:b|i|u|em|strong|br|p|li|ul|ol|span|code)[ \t]*/?>", re.I)


def without_markup(text: str, said: Collection[str]) -> str:
    """The text with its entities resolved once and without tags of looks, but for those that stand in what was said."""
    if "<" not in text and "&" not in text:
        return text
    text = _LOOKS.sub(lambda tag: tag[0] if _is_said(tag[0], said) else "", text)
    return ENTITY.sub(lambda found: found[0] if _is_said(found[0], said) else ENTITIES[found[1].lower()], text)


def _is_said(words: str, said: Collection[str]) -> bool:
    return any(words in text for text in said)
