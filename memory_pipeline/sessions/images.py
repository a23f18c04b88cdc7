"""Fetches an image of a message from the session file that it lies in; the tables only say where that is."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from memory_pipeline.sessions.harnesses.records import decode_damaged
from memory_pipeline.sessions.model import NotASession
from memory_pipeline.sessions.reading import harness_of, source_of

# Where a record holds what was shown, in the order in which the readers number it.
_PLACES = ("message", "attachment", "payload", "item", "prompt", "content", "output", "images", "local_images")


class Picture(NamedTuple):
    """An image as it was shown."""

    media_type: str
    data: bytes


class NoSuchImage(Exception):
    """The image cannot be fetched; the message says why, in one sentence."""


def load_image(source_file: str, line: int, block: int) -> Picture:
    """The image that a row of `messages` names in `source_file` and an entry of `images`.

    Raises `NoSuchImage` when the file is gone or has changed, or the image is only named by a path.
    """
    path, session = source_file, ""
    if "#" in source_file and not Path(source_file).exists():  # a folder may have one in its name
        path, _, session = source_file.rpartition("#")
    source = source_of(Path(path))._replace(session=session)
    try:
        harness = harness_of(source)
        if hasattr(harness, "records"):
            found = (record for number, record in harness.records(source, []) if number == line)
            shown = [part for record in islice(found, 1) for part in harness.images_of(record)]
        else:
            shown = list(_shown(_record(Path(path), line)))
    except (OSError, NotASession) as error:
        raise NoSuchImage(f"{source_file} cannot be read: {error}") from error
    except RecursionError as error:
        raise NoSuchImage(f"{source_file}:{line} is nested too deeply.") from error
    if block >= len(shown):
        raise NoSuchImage(f"{source_file}:{line} has no image number {block + 1}; the file has changed.")
    return _picture(shown[block], f"{source_file}:{line}")


def _record(path: Path, line: int) -> Any:
    with path.open("rb") as file:
        raw = next(islice(file, line - 1, None), b"")
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError:
        return decode_damaged(raw, line, [])


def _shown(value: Any) -> Iterator[Any]:
    """The images in a record: blocks of that type, and entries of lists of images."""
    if isinstance(value, list):
        for part in value:
            yield from _shown(part)
    elif isinstance(value, dict):
        if str(value.get("type")).endswith("image"):
            yield value
            return
        for place in _PLACES:
            part = value.get(place)
            if place.endswith("images"):
                yield from part if isinstance(part, list) else ()
            elif isinstance(part, str) and place == "output" and part.startswith('{"'):
                yield from _shown(_decoded(part))
            else:
                yield from _shown(part)


def _decoded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _picture(shown: Any, where: str) -> Picture:
    """From a `data:` URL, or from base64 beside its media type."""
    block = shown if isinstance(shown, dict) else {"image_url": shown}
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
        # a path in a transcript may be anything; what it names was never shown to be an image
        raise NoSuchImage(f"{where} only names a file; its image is not in the session.")
    try:
        return Picture(kind or "unknown type", base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        raise NoSuchImage(f"{where} holds an image that is not base64.") from None
