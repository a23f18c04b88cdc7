"""Kestrel, a coding agent that was made up: what a sixth harness takes, whole in one module.

::

    {"kestrel": 1, "talk": "t1", "folder": "/home/ada/books"}
    {"by": "ada", "at": 1741165200000, "text": "Sort the books."}
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_pipeline.harnesses.model import ParsedSession
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.records import Fields, JsonObject, text_of
from memory_pipeline.harnesses.speakers import split_by_speaker
from memory_pipeline.harnesses.transcript import Transcript


class Line(Fields):
    talk: Any = None
    folder: Any = None
    by: Any = None
    at: Any = None
    text: Any = None


class Kestrel(Harness[Line]):
    name = "kestrel"
    record_type = Line

    def default_roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [Path(env.get("KESTREL_HOME") or home / ".kestrel") / "talks"]

    def recognises(self, record: JsonObject) -> bool:
        return "kestrel" in record

    def reader(self, transcript: Transcript) -> Reader:
        return Reader(transcript)


class Reader:
    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.talk = self.folder = ""

    def record(self, line: int, record: Line) -> None:
        self.transcript.next_record(line, record.at)
        self.talk, self.folder = self.talk or text_of(record.talk), self.folder or text_of(record.folder)
        text, identity = text_of(record.text), f"{self.talk}/{line}"
        if record.by == "kestrel":
            self.transcript.add("assistant", text, identity)
        elif record.by is not None:
            for part, (speaker, passage) in enumerate(split_by_speaker(text)):
                self.transcript.add(speaker, passage, f"{identity}/{part}")

    def finish(self) -> ParsedSession:
        return self.transcript.finish(self.talk, "", self.folder)
