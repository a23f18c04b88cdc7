"""Editing of JSON as text: an insertion can be undone, and no other byte changes.

Settings of agents are written by people, so order, indentation, comments and trailing commas must be kept. No
maintained library keeps all of them in JSON.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from memory_pipeline.markdown.blocks import newline_of

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_LINE_COMMENT = re.compile(r"//[^\n]*\Z")
_SPACE = " \t\r\n"


class NotJsonError(ValueError):
    """The text is not JSON; the message gives line and column."""


@dataclass
class Node:
    """A value in `text[start:end]`."""

    start: int
    end: int = 0
    value: Any = None
    """The value of a scalar."""
    items: list[Node] = field(default_factory=list)
    """The items of an array or an object."""
    keys: dict[str, int] | None = None
    """For an object, the index of the item with each key."""
    key_start: int = 0
    """For an item of an object, the offset of its key."""

    @property
    def is_object(self) -> bool:
        return self.keys is not None

    def __getitem__(self, key: str) -> Node | None:
        return self.items[self.keys[key]] if self.keys and key in self.keys else None

    @property
    def data(self) -> Any:
        """The value as Python objects."""
        if self.keys is not None:
            return {key: self.items[i].data for key, i in self.keys.items()}
        return [item.data for item in self.items] if self.value is _ARRAY else self.value

    @property
    def is_array(self) -> bool:
        return self.value is _ARRAY


_ARRAY = object()


def parse(text: str) -> Node:
    """The outermost value. Raises `NotJsonError`."""
    node = _value(text, _skip(text, 0))
    if (rest := _skip(text, node.end)) < len(text):
        raise _error(text, rest, "the end was expected")
    return node


def insert_first(text: str, container: Node, entry: str) -> str:
    """The text with the entry before all items; an entry of an object includes its key."""
    newline, step = newline_of(text), _step(text)
    depth = 1 + sum((c in "{[") - (c in "}]") for c in _without_strings(text[: container.start]))
    pad = newline + step * depth
    body = pad + entry.replace("\n", pad)
    inside = text[container.start + 1 : container.end - 1]
    end = "," if container.items else "" if "\n" in inside else newline + step * (depth - 1)
    return text[: container.start + 1] + body + end + text[container.start + 1 :]


def remove_item(text: str, container: Node, index: int) -> str:
    """The text without the item, its comma and the white space before it."""
    item = container.items[index]
    start = item.key_start if container.is_object else item.start
    before = container.items[index - 1].end if index else container.start + 1
    between = text[before:start]
    kept = between.rstrip(_SPACE)
    if _LINE_COMMENT.search(kept):  # the comment ends with its line
        kept = between[: between.index("\n", len(kept)) + 1]
    start = before + len(kept)
    after = _skip(text, item.end)
    if text[after] == ",":
        return text[:start] + text[item.end : after] + text[after + 1 :]
    if index:  # the last item: remove the comma before it
        comma = _skip(text, container.items[index - 1].end)
        return text[:comma] + text[comma + 1 : start] + text[item.end :]
    return text[:start] + text[item.end :]


def dumped(value: Any, text: str) -> str:
    """The value in JSON with the indentation of the text, and ``\\n`` line ends."""
    return json.dumps(value, indent=_step(text), ensure_ascii=False)


def _value(text: str, at: int) -> Node:
    if at >= len(text):
        raise _error(text, at, "a value was expected")
    if text[at] in "{[":
        return _container(text, at)
    try:
        value, end = json.JSONDecoder().raw_decode(text, at)
    except ValueError:
        raise _error(text, at, "a value was expected") from None
    return Node(at, end, value)


def _container(text: str, at: int) -> Node:
    is_object = text[at] == "{"
    closing = "}" if is_object else "]"
    node = Node(at, keys={} if is_object else None, value=None if is_object else _ARRAY)
    here = _skip(text, at + 1)
    while not text.startswith(closing, here):
        key_start = here
        if node.keys is not None:
            key = _value(text, here)
            if not isinstance(key.value, str):
                raise _error(text, here, "a key in quotation marks was expected")
            colon = _skip(text, key.end)
            if not text.startswith(":", colon):
                raise _error(text, colon, "a colon was expected")
            here = _skip(text, colon + 1)
            node.keys[key.value] = len(node.items)
        item = _value(text, here)
        item.key_start = key_start
        node.items.append(item)
        here = _skip(text, item.end)
        if text.startswith(",", here):
            here = _skip(text, here + 1)
        elif not text.startswith(closing, here):
            raise _error(text, here, f"a comma or {closing} was expected")
    node.end = here + 1
    return node


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _step(text: str) -> str:
    """The indentation of one level."""
    found = re.search(r"^([ \t]+)\S", text, re.MULTILINE)
    return found[1] if found else "  "


def _without_strings(text: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/', "", text, flags=re.DOTALL)


def _error(text: str, at: int, what: str) -> NotJsonError:
    line = text.count("\n", 0, at) + 1
    column = at - (text.rfind("\n", 0, at) + 1) + 1
    return NotJsonError(f"line {line}, column {column}: {what}")
