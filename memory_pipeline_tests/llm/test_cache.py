"""Answers by what was asked, in files that anybody can add to."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from pathlib import Path

from memory_pipeline.llm.cache import AnswerCache
from memory_pipeline.llm.request import Answer, Request, RequestImage
from memory_pipeline_tests.cases import each

DAY = date(2025, 3, 5)
REQUEST = Request("openai:gpt", "Be brief.", "Hello?")
ANSWER = Answer("Hello. 👋", 100, 10, 0.25, 1.5, truncated=True, model="gpt-1")


def test_an_answer_comes_back_as_it_was_and_says_that_it_was_kept(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path / "answers")
    assert cache.get(REQUEST.key) is None
    cache.put(REQUEST.key, ANSWER)
    assert cache.get(REQUEST.key) == replace(ANSWER, cached=True)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [cache.path(REQUEST.key)]


def test_the_file_is_what_the_module_says(tmp_path: Path) -> None:
    AnswerCache(tmp_path).put(REQUEST.key, ANSWER)
    fields = json.loads((tmp_path / REQUEST.key[:2] / f"{REQUEST.key}.json").read_text("utf-8"))
    assert fields.pop("asked_at").endswith("+00:00")
    assert fields == {
        **{"key": REQUEST.key, "model": "gpt-1", "text": "Hello. 👋", "input_tokens": 100, "output_tokens": 10},
        **{"cost_usd": 0.25, "seconds": 1.5, "truncated": True},
    }


@each(
    "data", [b"", b"{", b"[]", b"null", b'"text"', b"{}", b'{"text": null}', b'{"text": 1}', b"\xff\xfe", b"\x00" * 50]
)
def test_a_damaged_file_is_none_and_is_replaced(tmp_path: Path, data: bytes) -> None:
    cache = AnswerCache(tmp_path)
    cache.path("abc").parent.mkdir()
    cache.path("abc").write_bytes(data)
    assert cache.get("abc") is None
    cache.put("abc", ANSWER)
    assert cache.get("abc") == replace(ANSWER, cached=True)


@each("more", ["", ', "input_tokens": "many", "cost_usd": "dear", "seconds": null, "truncated": 1'])
def test_only_the_text_of_a_recorded_answer_must_be_there(tmp_path: Path, more: str) -> None:
    path = AnswerCache(tmp_path).path(REQUEST.key)
    path.parent.mkdir()
    path.write_text(f'{{"text": "Recorded."{more}}}')
    answer = AnswerCache(tmp_path).known(REQUEST)
    assert answer
    assert (answer.text, answer.input_tokens, answer.seconds, answer.truncated) == ("Recorded.", 0, 0, False)
    assert AnswerCache(tmp_path).known(replace(REQUEST, prompt="Who are you?")) is None


def test_everything_that_goes_in_is_in_the_key() -> None:
    others = [
        replace(REQUEST, model="openai:gpt-2"),
        replace(REQUEST, system=""),
        replace(REQUEST, prompt="Hello"),
        replace(REQUEST, temperature=0.1),
        replace(REQUEST, max_output_tokens=1),
        replace(REQUEST, attempt=1),
        replace(REQUEST, images=(RequestImage("image/png", b"1"),)),
        replace(REQUEST, images=(RequestImage("image/png", b"2"),)),
    ]
    assert len({request.key for request in [REQUEST, *others]}) == 9
    assert replace(REQUEST).key == REQUEST.key


def test_writers_at_once_leave_a_whole_file(tmp_path: Path) -> None:
    cache = AnswerCache(tmp_path)
    answers = [replace(ANSWER, text=str(number) * 100_000) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda answer: cache.put("abc", answer), answers))
    assert cache.get("abc") in [replace(answer, cached=True) for answer in answers]
    assert [path.name for path in tmp_path.rglob("*.*")] == ["abc.json"]
