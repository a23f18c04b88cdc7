"""Answers cite what they rest on; a model's sentence that no passage says is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_pipeline.recall.answer import Answer, Quote, checked, extractive_answer, written_answer
from memory_pipeline.recall.search import Found, Results
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.llm.openai_server import Fail, openai_server
from memory_pipeline_tests.rows import workspace as new_workspace

OLD = Found("message", "m-1", 0.9, "The cache keeps keys for 30 minutes.", "2025-03-01", "2025-03-01T09:00", "s1")
NEW = Found(
    "message",
    "m-2",
    0.8,
    "The cache keeps keys for 45 minutes now.",
    "2025-03-09",
    "2025-03-09T09:00",
    "s2",
    role="user",
)
OTHER = Found("message", "m-3", 0.7, "Lunch was good.", "2025-03-20", "2025-03-20T09:00", "s3")
APPROVED = Found("memory_line", "p-20250305-001", 0.8, "The cache keeps keys for 45 minutes", kind="Patterns")
WEIGHTS = {"cach": 2.0, "key": 2.0, "minut": 1.0}


def results(*hits: Found, is_likely: bool = True) -> Results:
    return Results("how long does the cache keep keys?", hits, (), is_likely, weights=WEIGHTS)


def test_the_newest_of_what_answers_as_well_comes_first() -> None:
    answer = extractive_answer(results(OLD, NEW, OTHER))
    assert [q.hit.source_id for q in answer.quotes] == ["m-2", "m-1", "m-3"]


def test_an_approved_line_comes_before_words() -> None:
    assert extractive_answer(results(OLD, NEW, APPROVED)).quotes[0].hit == APPROVED


def test_nothing_is_quoted_where_nothing_answers() -> None:
    assert extractive_answer(results(OTHER, is_likely=False)).quotes == ()


def test_a_quote_begins_with_the_sentence_that_answers() -> None:
    long = "We had lunch. " * 40 + "The cache keeps keys for 30 minutes. That is too short."
    (quote,) = extractive_answer(results(Found("message", "m-9", 1.0, long))).quotes
    assert quote.text == "The cache keeps keys for 30 minutes. That is too short."


QUOTES = (Quote(NEW, NEW.text), Quote(OLD, OLD.text))


@each(
    ("text", "kept", "dropped"),
    [
        ("Keys are kept for 45 minutes [1]. Before, it was 30 [2].", 2, 0),
        ("Keys are kept for 45 minutes [1].\nIt was 30 before that [2]", 2, 0),
        ("Keys are kept for 45 minutes.", 0, 1),  # says not where
        ("Keys are kept for 60 minutes [1].", 0, 1),  # nobody said 60
        ("Keys are kept in `src/cache.py` [1].", 0, 1),
        ("Keys are kept for 45 minutes [3].", 0, 1),  # there is no third
        ("Keys are kept for 45 minutes [1][7].", 0, 1),
        ("", 0, 0),
    ],
)
def test_only_sentences_that_a_passage_says_stay(text: str, kept: int, dropped: int) -> None:
    sentences, left_out = checked(text, QUOTES)
    assert (len(sentences), left_out) == (kept, dropped)


def with_model(folder: Path, url: str) -> Workspace:
    settings, lake = new_workspace(
        folder, reflector_model="openai:played", reflector_base_url=url, reflector_price="1/1"
    )
    return Workspace(settings, lake)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "played")


def test_a_model_writes_and_its_inventions_are_left_out(tmp_path: Path) -> None:
    found = extractive_answer(results(OLD, NEW))
    with openai_server(
        ["Keys are kept for 45 minutes [1]. They live in `redis.conf` [1]. It was 30 before [2]."]
    ) as server:
        answer = written_answer(with_model(tmp_path, server.url), found)
    assert answer.written == ("Keys are kept for 45 minutes [1]", "It was 30 before [2].")
    assert answer.cited == ("m-2", "m-1")
    assert "1 sentence(s) of the model were left out" in answer.notes[0]
    assert "how long does the cache keep keys?" in server.requests[0].prompt


def test_a_model_may_find_that_nothing_answers(tmp_path: Path) -> None:
    with openai_server(["NOTHING FOUND."]) as server:
        answer = written_answer(with_model(tmp_path, server.url), extractive_answer(results(OLD)))
    assert answer.quotes == () and answer.written == ()


def test_a_model_that_fails_leaves_the_quotes(tmp_path: Path) -> None:
    found = extractive_answer(results(OLD, NEW))
    with openai_server(Fail(401)) as server:
        answer = written_answer(with_model(tmp_path, server.url), found)
    assert answer.quotes == found.quotes and "no model answered" in answer.notes[0]


def test_without_a_model_nothing_is_asked(tmp_path: Path) -> None:
    settings, lake = new_workspace(tmp_path)
    found = Answer("q", QUOTES)
    assert written_answer(Workspace(settings, lake), found) is found
