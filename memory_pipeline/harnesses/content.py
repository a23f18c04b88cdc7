"""The content of a message as text: blocks of text, images and tool calls.

The bytes of an image are never part of the text; a mark gives its type and position, so that it can be found again.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
import orjson

from memory_pipeline.harnesses.model import Image
from memory_pipeline.harnesses.records import Fields, Other

_MARK = "[image: "
# Longer than any mark, but limited, as a text may contain many beginnings of marks.
_ANY_MARK = re.compile(re.escape(_MARK) + r"[^\n]{0,40}?, line (\d{1,12}), number (\d{1,12})\]")


_IMAGE_TYPE = re.compile(r"image/[a-z0-9.+-]{1,30}")


class ImageSource(Fields):
    """Claude Code's wrapper around the bytes of an image."""

    media_type: Any = None


class Block(Fields):
    """A block of a message's content; each harness uses some of these fields."""

    type: Any = None
    text: Any = None
    id: Any = None
    name: Any = None
    arguments: Any = None
    input: Any = None
    tool_use_id: Any = None
    is_error: Any = None
    content: list[Block | Other] | Block | str | int | float | bool | None = None
    source: ImageSource | Other = None
    mimeType: Any = None
    image_url: Any = None


Content = list[Block | Other] | Block | str | int | float | bool | None
"""A message's content: text, blocks or one block; or anything, in a damaged file."""


def as_blocks(content: Content) -> Content:
    """The content, with a single object as a list of one block."""
    return [content] if isinstance(content, Block) else content


def as_content(value: object) -> Content:
    """Decoded JSON as content, without unknown forms."""
    try:
        return as_blocks(msgspec.convert(value, Content))
    except (msgspec.ValidationError, RecursionError):
        return None


def content_text(content: object, line: int, first: int = 0) -> str:
    """The readable text of a message's content: a string, or blocks of text and images; other blocks are left out.

    `first` is the number of preceding images in the record.
    """
    content = _unwrapped(content)
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    if len(content) == 1 and type(block := content[0]) is Block and type(block.text) is str:
        return block.text
    return "\n".join(part for part in block_texts(content, line, first) if part)


def _unwrapped(content: object) -> object:
    """The content, or that of its only block if it merely wraps it, as in results of some tools."""
    while True:
        block = content[0] if isinstance(content, list) and len(content) == 1 else content
        if not isinstance(block, Block):
            return content
        if block.content is None or isinstance(block.text, str) or is_image(block):
            return [block]
        content = block.content


def block_texts(content: list[Any], line: int, first: int = 0) -> list[str]:
    """The text of each block, or the mark of an image; "" for any other block."""
    texts = []
    number = first
    for block in content:
        text = block.text if isinstance(block, Block) else ""
        if not isinstance(text, str):
            text = ""
            if is_image(block):
                text = image_mark(Image(line, number, media_type(block)))
                number += 1
        texts.append(text)
    return texts


def is_image(block: object) -> bool:
    """Whether the block is an image."""
    return isinstance(block, Block) and block.type != "text" and str(block.type).endswith("image")


def images_in(content: object, line: int, first: int = 0) -> tuple[Image, ...]:
    """The images among the blocks, numbered in order from `first`."""
    content = _unwrapped(content)
    blocks = [block for block in content if is_image(block)] if isinstance(content, list) else []
    if not blocks:
        return ()
    return tuple(Image(line, number, media_type(block)) for number, block in enumerate(blocks, first))


def media_type(block: Block) -> str:
    """The media type of an image, such as `image/png`."""
    kind = block.mimeType or (block.source.media_type if isinstance(block.source, ImageSource) else None)
    return image_type(kind) if kind else url_type(block.image_url)


def url_type(url: object) -> str:
    """The media type of a `data:` URL."""
    return image_type(url[5:50].split(";")[0] if isinstance(url, str) and url.startswith("data:") else None)


def image_type(kind: object) -> str:
    """A media type that is safe to store: a damaged file may contain anything."""
    return kind if isinstance(kind, str) and _IMAGE_TYPE.fullmatch(kind) else "unknown type"


def image_mark(image: Image) -> str:
    """The mark of an image in a text."""
    return f"{_MARK}{image.media_type}, line {image.line}, number {image.block + 1}]"


def without_marks(text: str) -> str:
    """The text without the marks of images, which contain a line number."""
    return _ANY_MARK.sub("", text).strip() if _MARK in text else text.strip()


def marked_images(text: str, images: tuple[Image, ...]) -> tuple[Image, ...]:
    """The images, numbered in order, whose marks are in the text."""
    if not images or _MARK not in text:
        return ()
    first = images[0].block
    marks = {int(mark[2]) - 1 - first: mark[0] for mark in _ANY_MARK.finditer(text)}
    numbers = sorted(number for number in marks if 0 <= number < len(images))
    return tuple(images[number] for number in numbers if image_mark(images[number]) == marks[number])


def call_text(name: str, arguments: object) -> str:
    """A tool call as `name(key=value, …)`."""
    if isinstance(arguments, dict):
        listed = ", ".join([f"{key}={_value_text(value)}" for key, value in arguments.items()])
    else:
        listed = _value_text(arguments) if arguments is not None else ""
    return f"{name}({listed})"


def _value_text(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value).decode()
    except (TypeError, ValueError, RecursionError):
        return "…"
