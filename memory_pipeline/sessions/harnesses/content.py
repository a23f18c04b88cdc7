"""The content of a message as text: blocks of text, images and tool calls.

The bytes of an image never enter the text; a mark names its type and its line, so that it can be found again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson


def content_text(content: object, line: int) -> str:
    """The readable text of a message's content: a string, or blocks of text and images; other blocks are left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "\n".join(part for block in content if (part := block_text(block, line)))


def block_text(block: object, line: int) -> str:
    """The text of one content block, or the mark of an image; "" for any other block."""
    if not isinstance(block, dict):
        return ""
    text = block.get("text")
    if isinstance(text, str):
        return text
    if str(block.get("type")).endswith("image"):
        return image_mark(block, line)
    return ""


def image_mark(block: Mapping[str, Any], line: int) -> str:
    """What stands in a text for an image."""
    source = block.get("source")
    kind = block.get("mimeType") or (source.get("media_type") if isinstance(source, dict) else None)
    url = block.get("image_url")
    if kind is None and isinstance(url, str) and url.startswith("data:"):
        kind = url[5:40].split(";")[0]
    return f"[image: {kind if isinstance(kind, str) and len(kind) < 40 else 'unknown type'}, line {line}]"


def call_text(name: str, arguments: object) -> str:
    """A tool call as `name(key=value, …)`."""
    if isinstance(arguments, dict):
        shown = ", ".join(f"{key}={_value_text(value)}" for key, value in arguments.items())
    else:
        shown = _value_text(arguments) if arguments is not None else ""
    return f"{name}({shown})"


def _value_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError, RecursionError):
        return "…"
