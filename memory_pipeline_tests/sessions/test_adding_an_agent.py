"""The example in docs/adding-an-agent.md is a reader that works."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline import harnesses
from memory_pipeline.harnesses.protocol import Harness
from memory_pipeline.harnesses.record_reader import RecordReader
from memory_pipeline.harnesses.records import JsonObject, text_of
from memory_pipeline_tests.harnesses.written import read, shape

PAGE = Path(__file__).resolve().parents[2] / "docs/adding-an-agent.md"
IMPORTED = {"Harness": Harness, "JsonObject": JsonObject, "RecordReader": RecordReader, "text_of": text_of}


def example() -> Harness:
    """The harness that the page defines."""
    code = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert code
    names: dict[str, Any] = {"__name__": "adding_an_agent", **IMPORTED}
    exec(compile(code[1], str(PAGE), "exec", dont_inherit=True), names)
    made: Harness = names["Kestrel"]()
    return made


def test_the_example_reads_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harnesses, "HARNESSES", (*harnesses.HARNESSES, example()))
    at = "2026-05-01T12:00:00Z"
    said = [("user", "<system-reminder>Be brief.</system-reminder>Sort the books."), ("reply", "Sorted."), ("nap", "")]
    records = [{"type": kind, "id": f"k-{n}", "timestamp": at, "text": text} for n, (kind, text) in enumerate(said)]
    session = read(tmp_path / "a.jsonl", {"type": "kestrel_start", "id": "k", "timestamp": at}, *records)
    assert shape(session) == [
        ("injected", "<system-reminder>Be brief.</system-reminder>"),
        ("user", "Sort the books."),
        ("assistant", "Sorted."),
    ]
    assert (session.harness, session.unknown_records["nap"]) == ("kestrel", 1)
    assert example().default_roots(tmp_path, {}) == [tmp_path / ".kestrel/sessions"]
