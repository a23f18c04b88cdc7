"""A harness that reads its records itself."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_pipeline import harnesses
from memory_pipeline.harnesses.content import image_mark
from memory_pipeline.harnesses.model import Image, Problem, Source
from memory_pipeline.harnesses.protocol import HarnessWithRecords
from memory_pipeline.harnesses.record_reader import RecordReader
from memory_pipeline.harnesses.records import JsonObject
from memory_pipeline.sessions.images import load_image
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.conftest import utc

NINE = int(utc("2025-03-05T09:00").timestamp() * 1000)


class Pages(RecordReader):
    def record(self, number: int, page: JsonObject) -> None:
        self.transcript.next_record(number, NINE)
        self.begin(f"page {number}")
        images = (Image(number, 0, "image/png"),) if "picture" in page else ()
        self.add("user", "\n".join([page["text"], *map(image_mark, images)]))


class Album(HarnessWithRecords):
    """An invented harness whose session is one JSON object with pages, each of which may have a picture."""

    name = "album"
    reader = Pages

    def recognises(self, record: JsonObject) -> bool:
        return "album" in record

    def records(self, source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
        pages = json.loads(Path(source.path).read_text())["pages"]
        yield from enumerate(pages, start=1)

    def images_of(self, record: JsonObject) -> list[JsonObject]:
        return [record["picture"]] if "picture" in record else []


def test_one_with_a_format_of_its_own_is_read_with_its_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harnesses, "HARNESSES", (*harnesses.HARNESSES, Album()))
    picture = {"data": base64.b64encode(b"not really a picture").decode(), "mimeType": "image/png"}
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"album": 1, "pages": [{"text": "Plain."}, {"text": "See:", "picture": picture}]}))
    session = parse_file(path)
    assert session.harness == "album"
    assert [(m.text, m.line) for m in session.messages] == [
        ("Plain.", 1),
        ("See:\n[image: image/png, line 2, number 1]", 2),
    ]
    (image,) = session.messages[1].images
    assert load_image(str(path), image.line, image.block) == ("image/png", b"not really a picture")
