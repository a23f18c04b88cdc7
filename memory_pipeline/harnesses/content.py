"""The content of a message as text: blocks of text, images and tool calls.

The bytes of an image are never part of the text; a mark gives its type and position, so that it can be found again.
Until the message is stored, a mark begins with NUL, so that text which only looks like one is no image.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from memory_pipeline.harnesses.model import Image
from memory_pipeline.harnesses.records import JsonObject, object_of, objects_of, text_of

_MARK = "[image: "
# Longer than any mark, but limited, as a text may contain many beginnings of marks.
_ANY_MARK = re.compile(r"\x00?\[image: [^\n]{0,40}?, line \d{1,12}, number \d{1,12}\]")
_OWN_MARK = re.compile(r"\x00\[image: ([^\n]{0,40}?), line (\d{1,12}), number (\d{1,12})\]")
_IMAGE_TYPE = re.compile(r"image/[a-z0-9.+-]{1,30}")
_BLOCK_FIELDS = (
    *("type", "text", "id", "name", "arguments", "input", "tool_use_id", "is_error", "content", "source"),
    *("mimeType", "image_url"),
)
"""Fields of a block that are part of the identity of a record without id. Stored ids depend on their order."""


def content_text(content: object, line: int, first: int = 0) -> str:
    """The readable text of a message's content: a string, or blocks of text and images; other blocks are left out.

    `first` is the number of preceding images in the record.
    """
    content = _unwrapped(content)
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, block_texts(content, line, first))) if isinstance(content, list) else ""


def _unwrapped(content: object) -> object:
    """The content, or that of its only block if it merely wraps it, as in results of some tools."""
    while True:
        block = content[0] if isinstance(content, list) and len(content) == 1 else content
        if not isinstance(block, dict):
            return content
        if block.get("content") is None or isinstance(block.get("text"), str) or is_image(block):
            return [block]
        content = block["content"]


def block_texts(content: list[Any], line: int, first: int = 0) -> list[str]:
    """The text of each block, or the mark of an image; "" for any other block."""
    texts = []
    number = first
    for block in content:
        text = block.get("text") if isinstance(block, dict) else ""
        if not isinstance(text, str):
            text = ""
            if is_image(block):
                text = image_mark(Image(line, number, media_type(block)))
                number += 1
        texts.append(text)
    return texts


def blocks_of(content: object) -> list[JsonObject]:
    """The blocks of a message's content, which may also be a text or a single block."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return objects_of([content] if isinstance(content, dict) else content)


def text_blocks(content: object) -> list[JsonObject]:
    """The blocks of text in a message's content; images, thinking and calls are left out."""
    return [block for block in blocks_of(content) if block.get("type") in ("text", None)]


def plain_text(content: object) -> str:
    """The text of a message's content, without images."""
    return content_text(text_blocks(content), 0)


def identifying(content: object) -> object:
    """The content with the fields of its blocks that identify a record without id."""
    if isinstance(content, list):
        return [identifying(block) if isinstance(block, dict) else block for block in content]
    if not isinstance(content, dict):
        return content
    source = content.get("source")
    nested = {
        "content": identifying(content.get("content")),
        "source": {"media_type": source.get("media_type")} if isinstance(source, dict) else source,
    }
    return {name: nested[name] if name in nested else content.get(name) for name in _BLOCK_FIELDS}


def is_image(block: object) -> bool:
    """Whether the block is an image."""
    return isinstance(block, dict) and block.get("type") != "text" and str(block.get("type")).endswith("image")


def media_type(block: JsonObject) -> str:
    """The media type of an image, such as `image/png`."""
    kind = block.get("mimeType") or object_of(block.get("source")).get("media_type")
    return image_type(kind) if kind else url_type(block.get("image_url"))


def url_type(url: object) -> str:
    """The media type of a `data:` URL."""
    return image_type(text_of(url)[5:50].split(";")[0] if text_of(url).startswith("data:") else None)


def image_type(kind: object) -> str:
    """A media type that is safe to store: a damaged file may contain anything."""
    return kind if isinstance(kind, str) and _IMAGE_TYPE.fullmatch(kind) else "unknown type"


def image_mark(image: Image) -> str:
    """The mark of an image in a text that is not stored yet."""
    return f"\x00{_MARK}{image.media_type}, line {image.line}, number {image.block + 1}]"


def images_in(text: str) -> tuple[Image, ...]:
    """The images of a text that is not stored yet, by their marks."""
    return tuple(Image(int(mark[2]), int(mark[3]) - 1, mark[1]) for mark in _OWN_MARK.finditer(text))


def without_marks(text: str) -> str:
    """The text without the marks of images, which contain a line number."""
    return _ANY_MARK.sub("", text).strip() if _MARK in text else text.strip()


def call_text(name: str, arguments: object) -> str:
    """A tool call as `name(key=value, …)`."""
    if isinstance(arguments, dict):
        listed = ", ".join([f"{key}={_value_text(value)}" for key, value in arguments.items()])
    else:
        listed = _value_text(arguments) if arguments is not None else ""
    return f"{name}({listed})"


def _value_text(value: object) -> str:
    return value if isinstance(value, str) else as_json(value)


def as_json(value: object) -> str:
    """The value as JSON."""
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError, RecursionError):
        return "…"
