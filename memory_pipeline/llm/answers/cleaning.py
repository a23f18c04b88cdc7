"""Cleaning of an answer: removal of invisible characters, of the model's thinking, and of markup from the format.

Every function takes time linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from memory_pipeline.text.hidden import without_hidden
from memory_pipeline.text.regex import deferred

MAX_ANSWER = 1_000_000
"""Maximum characters that are read of an answer, more than any model may write."""

_ESCAPE = deferred(r"\x1b(?:\[[0-9;?]{0,40}[A-Za-z])?")
_BREAK = deferred(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_CONTROL = deferred(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
_SURROGATE = deferred(r"[\ud800-\udfff]")
_ENTITY = deferred(r"&(lt|gt|amp|quot|apos|#39|#x27);", re.I)
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "#39": "'", "#x27": "'"}
_ESCAPED_ANSWER = deferred(r"\A\s*&lt;(?:observations|segment)\b", re.I)
_FORMATTING = deferred(r"</?(?:b|i|u|em|strong|br|p|li|ul|ol|span|code)[ \t]*/?>", re.I)
_THINK = r"(?:think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad)"
_OPENS = deferred(rf"^[ \t`]*[<◁]{_THINK}[>▷]", re.I | re.M)
_CLOSES = deferred(rf"[<◁]/{_THINK}[>▷](?=[ \t]*(?:\n|\Z|[<`{{*🔴🟡🟢])|\w)", re.I)
"""A closing tag within a sentence is only mentioned."""
_ANSWER = deferred(r"^[ \t]*<observations\b", re.I | re.M)
_FINAL_CHANNEL = deferred(r"<\|channel\|>\s*final\b[^<\n]{0,80}<\|message\|>")
_TOKEN = r"<[|｜][\w▁ .:-]{1,40}[|｜]>"
_CONTROL_TOKEN = deferred(rf"^[ \t]{{0,8}}(?:{_TOKEN})+|(?:{_TOKEN})+(?=[ \t]{{0,8}}$)|</?s>(?=\s*\Z)", re.M)
"""A token of the model's template at the beginning or end of a line; within a sentence it is quoted text."""


def cleaned(text: str) -> str:
    """The first million characters after `plain`, unescaped if the whole answer is escaped as HTML."""
    text = plain(text[:MAX_ANSWER])
    if _ESCAPED_ANSWER.match(text):
        text = _ENTITY.sub(lambda entity: _ENTITIES[entity[1].lower()], text)
    return text


def plain(text: str) -> str:
    """The text with `\\n` line ends, without control, zero-width and direction characters, terminal escapes and lone
    surrogates."""
    text = _BREAK.sub("\n", _ESCAPE.sub("", text))
    return without_hidden(_SURROGATE.sub("\ufffd", _CONTROL.sub("", text)))[0]


def without_thinking(text: str) -> tuple[str, str | None]:
    """The answer after the thinking, and a problem if the end of the thinking had to be guessed.

    Thinking lasts until its last closing tag before the answer, even without an opening tag, which a template may have
    added. Unclosed thinking lasts until the last line that begins with <observations>, or to the end.
    """
    channels = [channel.end() for channel in _FINAL_CHANNEL.finditer(text)]
    text = _CONTROL_TOKEN.sub("", text[channels[-1] :] if channels else text)
    answers = [answer.start() for answer in _ANSWER.finditer(text)]
    begin = answers[-1] if answers else len(text)
    closed = [tag.end() for tag in _CLOSES.finditer(text, 0, begin)]
    if closed:
        return text[closed[-1] :], None
    opened = _OPENS.search(text, 0, begin)
    if opened:
        return text[: opened.start()] + text[begin:], "the thinking is not closed"
    return text, None


def without_markup(text: str, said: Collection[str]) -> str:
    """The text with entities resolved once and without formatting tags, except those in the transcript. An answer may
    be XML with `&lt;` for `<`, or `&lt;` is in the transcript itself."""
    if "<" not in text and "&" not in text:
        return text
    text = _FORMATTING.sub(lambda tag: tag[0] if _is_in_transcript(tag[0], said) else "", text)
    return _ENTITY.sub(
        lambda found: found[0] if _is_in_transcript(found[0], said) else _ENTITIES[found[1].lower()], text
    )


def _is_in_transcript(words: str, said: Collection[str]) -> bool:
    return any(words in text for text in said)
