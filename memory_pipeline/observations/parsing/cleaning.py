"""The text of an answer without what hides in it, and without what the model thought before it answered."""

from __future__ import annotations

import re

LONGEST_ANSWER = 1_000_000
"""Characters that are read of an answer; no model is let to write so many."""
NEAR = 80
"""Characters around a tag that are looked at."""

_ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]{0,40}[A-Za-z])?")
_BREAK = re.compile(r"\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_HIDDEN = re.compile(
    r"[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e"
    r"\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
# they belong to the spelling of Persian and of Indian languages
_JOINER = re.compile(r"(?<![\u0590-\u1fff])[\u200c\u200d]|[\u200c\u200d](?![\u0590-\u1fff])")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_ENTITY = re.compile(r"&(lt|gt|amp|quot|apos|#39|#x27);", re.I)
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "#39": "'", "#x27": "'"}
_ESCAPED_TAG = re.compile(r"&lt;\s{0,3}/?\s{0,3}(?:observations?|segment)", re.I)
_ANSWER_TAG = re.compile(r"<\s{0,3}(?:observations?|segment)\b", re.I)
_ANSWER_AT_LINE = re.compile(r"^[ \t]*<[ \t]{0,3}observations?\b", re.I | re.M)
_THINKING = re.compile(
    r"[<◁](/?)(think|thinking|thought|thoughts|reasoning|reflection|analysis|scratchpad)\b[^<>▷\n]{0,80}[>▷]", re.I
)
_FINAL_CHANNEL = re.compile(r"<\|channel\|>\s*final\b[^<\n]{0,80}<\|message\|>")
_CONTROL_TOKEN = re.compile(r"<[|｜][\w▁ .:-]{1,40}[|｜]>|</?s>(?=\s*\Z)")


def cleaned(text: str) -> str:
    """The first million characters, lines ended by `\\n`, without control, zero-width and direction characters,
    terminal escapes and halves of characters; unescaped when the whole answer was escaped as HTML."""
    text = _BREAK.sub("\n", _ESCAPE.sub("", text[:LONGEST_ANSWER]))
    text = _SURROGATE.sub("\ufffd", _JOINER.sub("", _HIDDEN.sub("", text)))
    if _ESCAPED_TAG.search(text) and not _ANSWER_TAG.search(text):
        text = unescaped(text)
    return text


def unescaped(text: str) -> str:
    """With the five entities of XML as the characters that they stand for."""
    return _ENTITY.sub(lambda entity: _ENTITIES[entity[1].lower()], text)


def without_thinking(text: str) -> tuple[str, str | None]:
    """What comes after the thinking, and what had to be guessed about where that ends.

    A block counts that begins a line, and one that was begun by the model's template and is only closed here. An
    opened block that is never closed lasts to the last line that begins with <observations>, or to the end.
    """
    channels = [channel.end() for channel in _FINAL_CHANNEL.finditer(text)]
    text = _CONTROL_TOKEN.sub("", text[channels[-1] :] if channels else text)
    first = _ANSWER_TAG.search(text)
    lines = [line.start() for line in _ANSWER_AT_LINE.finditer(text)]
    answer, last_answer = first.start() if first else len(text), lines[-1] if lines else -1
    kept: list[str] = []
    done, opened = 0, -1
    for tag in _THINKING.finditer(text):
        if tag[1] and opened >= 0:
            opened, done = -1, tag.end()
        elif tag[1] and _ends_its_line(text, tag) and (tag.start() < answer or tag.start() < last_answer):
            kept, done = [], tag.end()  # begun by the model's template
        elif not tag[1] and opened < 0 and _begins_its_line(text, done, tag):
            kept.append(text[done : tag.start()])
            opened = tag.start()
    if opened < 0:
        return "".join([*kept, text[done:]]), None
    kept.append(text[last_answer:] if last_answer > opened else "")
    return "".join(kept), "the thinking is never closed"


def _begins_its_line(text: str, done: int, tag: re.Match[str]) -> bool:
    before = text[max(done, tag.start() - NEAR) : tag.start()].rstrip(" \t`")
    return not before or before.endswith("\n")


def _ends_its_line(text: str, tag: re.Match[str]) -> bool:
    """Or is followed by what can begin an answer."""
    rest = text[tag.end() : tag.end() + NEAR].lstrip(" \t")
    return not rest or rest.startswith(("\n", "<", "`", "{", "*", "🔴", "🟡", "🟢"))
