"""Loading of a message's images from the session file; the tables only store their position."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from memory_pipeline.errors import MemoryPipelineError
from memory_pipeline.harnesses.compressed import open_session, where_it_lies
from memory_pipeline.harnesses.model import NotASessionError, source_of
from memory_pipeline.harnesses.protocol import HarnessWithRecords
from memory_pipeline.harnesses.records import decode_damaged, object_of
from memory_pipeline.sessions.reading import harness_of

# Fields of a record that contain images, in the order in which the readers number them.
_PLACES = ("message", "attachment", "payload", "item", "prompt", "content", "output", "images", "local_images")


class ImageData(NamedTuple):
    """The bytes of an image."""

    media_type: str
    data: bytes


class NoSuchImageError(MemoryPipelineError):
    """The image cannot be loaded; the message gives the reason in one sentence."""


def load_image(source_file: str, line: int, block: int) -> ImageData:
    """The image referenced by `source_file` of a row of `messages` and an entry of its `images`.

    Raises `NoSuchImageError` if the file is missing or has changed, or the image is only given by a path.
    """
    path, session = source_file, ""
    if "#" in source_file and not Path(source_file).exists():  # a folder name may contain one
        path, _, session = source_file.rpartition("#")
    source = source_of(where_it_lies(Path(path)))._replace(session=session)
    try:
        harness = harness_of(source)
        if isinstance(harness, HarnessWithRecords):
            record = next((record for number, record in harness.records(source, []) if number == line), None)
            found: list[Any] = harness.images_of(record) if record is not None else []
        else:
            found = list(_image_parts(_record(source.path, line)))
    except (OSError, NotASessionError) as error:
        raise NoSuchImageError(f"{source_file} cannot be read: {error}") from error
    except RecursionError as error:
        raise NoSuchImageError(f"{source_file}:{line} is nested too deeply.") from error
    if block >= len(found):
        raise NoSuchImageError(f"{source_file}:{line} has no image number {block + 1}; the file has changed.")
    return _image_data(found[block], f"{source_file}:{line}")


def _record(path: str, line: int) -> Any:
    with open_session(path) as file:
        raw = next(islice(file, line - 1, None), b"")
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return decode_damaged(raw, line, [])


def _image_parts(value: Any) -> Iterator[Any]:
    """The images in a record: blocks of that type, and entries of lists of images."""
    if isinstance(value, list):
        for part in value:
            yield from _image_parts(part)
    elif isinstance(value, dict):
        if str(value.get("type")).endswith("image"):
            yield value
            return
        for place in _PLACES:
            part = value.get(place)
            if place.endswith("images"):
                yield from part if isinstance(part, list) else ()
            elif isinstance(part, str) and place == "output" and part.startswith('{"'):
                yield from _image_parts(object_of(part))
            else:
                yield from _image_parts(part)


def _image_data(part: Any, where: str) -> ImageData:
    """The image from a `data:` URL, or from base64 with a media type."""
    block = part if isinstance(part, dict) else {"image_url": part}
    holder = next((block[key] for key in ("source", "inlineData") if isinstance(block.get(key), dict)), block)
    data = holder.get("data")
    kind = next((holder[key] for key in ("mimeType", "media_type", "mime") if isinstance(holder.get(key), str)), "")
    url = block.get("image_url") or block.get("url")
    if isinstance(url, dict):
        url = url.get("url")
    if not isinstance(data, str) and isinstance(url, str) and url.startswith("data:"):
        head, _, data = url[5:].partition(",")
        kind = kind or head.split(";")[0]
    if not isinstance(data, str):
        # a path in a transcript may be anything; nothing shows that it is an image
        raise NoSuchImageError(f"{where} only names a file; its image is not in the session.")
    try:
        return ImageData(kind or "unknown type", base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        raise NoSuchImageError(f"{where} holds an image that is not base64.") from None
