"""A harness that the pipeline does not know is one more module and one more entry in `HARNESSES`, nothing else."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline import harnesses
from memory_pipeline.harnesses.content import image_mark
from memory_pipeline.harnesses.model import Image, NotASessionError, ParsedSession, Problem, Source
from memory_pipeline.harnesses.protocol import Harness, HarnessWithRecords
from memory_pipeline.harnesses.records import JsonObject
from memory_pipeline.harnesses.transcript import Transcript
from memory_pipeline.sessions.images import load_image
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.conftest import utc
from memory_pipeline_tests.harnesses.kestrel import Kestrel
from memory_pipeline_tests.sessions.machine import Machine

pytestmark = pytest.mark.usefixtures("only_the_first_stage")

NINE = int(utc("2025-03-05T09:00").timestamp() * 1000)
HEAD = {"kestrel": 1, "talk": "t1", "folder": "/home/ada/books"}
TALK = [
    {
        "by": "ada",
        "at": NINE,
        "text": "<system-reminder>Be brief.</system-reminder>Sort the books, the key is ghp_" + "a1" * 18,
    },
    {"by": "kestrel", "at": NINE + 60_000, "text": "Sorted by author."},
]
MORE = [{"by": "ada", "at": NINE + 120_000 + i, "text": f"Never sort shelf {i} by colour."} for i in range(6)]


def register(monkeypatch: pytest.MonkeyPatch, harness: Harness[Any]) -> None:
    monkeypatch.setattr(harnesses, "HARNESSES", (*harnesses.HARNESSES, harness))


def write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def test_its_sessions_are_found_read_redacted_and_stored(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, Kestrel())
    monkeypatch.setenv("KESTREL_HOME", str(machine.root / "kestrel"))
    monkeypatch.setenv("MEMORY_DEFAULT_SESSION_DIRS", "true")
    path = write(machine.root / "kestrel/talks/one.jsonl", HEAD, *TALK)
    machine.run()
    (session,) = machine.rows("sessions")
    assert (session["harness"], session["session_id"], session["cwd"]) == ("kestrel", "t1", "/home/ada/books")
    assert session["source_file"] == str(path)
    messages = [(row["role"], row["source_line"]) for row in machine.rows("messages")]
    assert messages == [("injected", 2), ("user", 2), ("assistant", 3)]
    texts = machine.texts()
    assert texts[0] == "<system-reminder>Be brief.</system-reminder>" and texts[2] == "Sorted by author."
    assert texts[1].startswith("Sort the books, the key is [redacted:github-token:")
    write(path, HEAD, *TALK, *MORE)
    machine.run()
    assert machine.texts()[:3] == texts and machine.texts()[-1] == "Never sort shelf 5 by colour."
    assert machine.rows("windows")[0]["observed"]


def test_without_it_the_file_is_no_session(tmp_path: Path) -> None:
    with pytest.raises(NotASessionError, match="not a session of a known coding agent"):
        parse_file(write(tmp_path / "a.jsonl", HEAD, *TALK))


class Album(HarnessWithRecords[JsonObject]):
    """An invented harness whose session is one JSON object with pages, each of which may have a picture."""

    name = "album"
    record_type: type[JsonObject] = dict

    def default_roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return []

    def recognises(self, record: JsonObject) -> bool:
        return "album" in record

    def records(self, source: Source, problems: list[Problem]) -> Iterator[tuple[int, JsonObject]]:
        pages = json.loads(Path(source.path).read_text())["pages"]
        yield from enumerate(pages, start=1)

    def images_of(self, record: JsonObject) -> list[JsonObject]:
        return [record["picture"]] if "picture" in record else []

    def reader(self, transcript: Transcript) -> Pages:
        return Pages(transcript)


class Pages:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript

    def record(self, number: int, page: JsonObject) -> None:
        self.transcript.next_record(number, NINE)
        images = (Image(number, 0, "image/png"),) if "picture" in page else ()
        text = "\n".join([page["text"], *map(image_mark, images)])
        self.transcript.add("user", text, f"page {number}", images=images)

    def finish(self) -> ParsedSession:
        return self.transcript.finish("album", "", "")


def test_one_with_a_format_of_its_own_is_read_with_its_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch, Album())
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
