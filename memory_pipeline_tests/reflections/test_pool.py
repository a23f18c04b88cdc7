"""Pool-wide reflection: what was condensed once is never condensed again, and all of it comes at once or none."""

import os
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.errors import TryAgainLaterError
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.errors import BudgetReachedError, ModelUnavailableError
from memory_pipeline.reflections.pool import MAX_TOKENS, MIN_TOKENS, Pooled, pack, reflect_pool
from memory_pipeline.reflections.stage import reflector_of
from memory_pipeline.reflections.types import ReflectionLine, UnusableAnswerError
from memory_pipeline.settings import Settings
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.llm.openai_server import Fail, openai_server
from memory_pipeline_tests.reflections.model.test_reflector import lines_for
from memory_pipeline_tests.rows import MissingEncoder, at, bytes_of, changed, day_after, put, reflection, workspace

NOW = at("12:00")


@dataclass
class Work:
    settings: Settings
    lake: Lake

    def run(self, now: datetime = NOW, **changes: Any) -> Pooled:
        settings = changed(self.settings, **changes)
        reflector = reflector_of(Workspace(settings, self.lake))
        return reflect_pool(Workspace(settings, self.lake), reflector, MissingEncoder(), now)  # type: ignore[arg-type]

    def rows(self) -> list[dict[str, Any]]:
        return self.lake.read("pool_reflections").to_dicts()

    def lines(self) -> list[str]:
        return [line for row in self.rows() for line in row["text"].split("\n")]

    def bytes(self) -> dict[str, bytes]:
        return bytes_of(self.lake.root)


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(*workspace(tmp_path, chunk_tokens=500))


def text_of(number: int, day: date) -> str:
    return f"The worker w{number}x{day:%d} of carrier c{number}y{day:%d} writes into bucket b{number}z{day:%d}."


def lines_of(lake: Lake, day: date, count: int = 20, **other: Any) -> list[str]:
    """A day's reflections, each about something else; 20 of them are about 400 tokens."""
    texts = [text_of(i, day) for i in range(count)]
    seen = {"first_seen": at(day=day), "last_seen": at(day=day)}
    rows = [reflection(t, day=day, sources=[f"o-{day}-{i}"], **seen | other) for i, t in enumerate(texts)]
    put(lake, "reflections", *rows)
    return texts


def test_lines_of_a_section_become_rows_of_150_to_600_tokens(work: Work) -> None:
    texts = [*lines_of(work.lake, day_after(-5)), *lines_of(work.lake, day_after(-4), 25)]
    done = work.run()
    rows = work.rows()
    assert sorted(work.lines()) == sorted(texts)
    assert all(MIN_TOKENS <= row["tokens"] == estimate(row["text"]) <= MAX_TOKENS for row in rows)
    assert (done.lines, done.rows, done.waiting) == (45, len(rows), 0)
    for row in rows:
        assert row["support"] == len(row["observations"]) == len(row["text"].split("\n"))
        assert set(row["sources"]) <= set(work.lake.read("reflections")["reflection_id"])
        assert (row["section"], row["reflector"], row["reflected_at"]) == ("Hard Rules", "extractive-3", NOW)
    assert sum(row["support"] for row in rows) == 45


@pytest.mark.parametrize(("ago", "is_pooled"), [(0, False), (2, False), (3, True), (30, True)])
def test_the_last_days_stay_as_they_are(work: Work, ago: int, is_pooled: bool) -> None:
    lines_of(work.lake, day_after(-ago))
    assert bool(work.run().rows) is is_pooled


def test_what_the_pool_made_is_never_reflected_on_again(work: Work) -> None:
    lines_of(work.lake, day_after(-9))
    work.run()
    (first,) = work.rows()
    before = work.bytes()
    assert work.run(at("12:00", day_after(1))) == Pooled()  # nothing new changes no byte
    assert work.bytes() == before
    later = lines_of(work.lake, day_after(-4))
    assert work.run(at("12:00", day_after(2))).lines == 20
    assert first in work.rows()
    assert sorted(line for row in work.rows() if row != first for line in row["text"].split("\n")) == sorted(later)


def test_the_latest_reflection_stands_for_those_before_it(work: Work) -> None:
    """A fact is in the reflections of every day that looks back on it."""
    texts = lines_of(work.lake, day_after(-9))
    for ago in (8, 7):
        rows = work.lake.read("reflections", [day_after(-9)]).to_dicts()
        moved = [r | {"day": day_after(-ago), "reflection_id": f"{r['reflection_id']}-{ago}"} for r in rows]
        put(work.lake, "reflections", *moved)
    assert work.run().lines == 20
    assert sorted(work.lines()) == sorted(texts)
    assert work.run(at("12:00", day_after(9))) == Pooled()


def test_what_says_the_same_is_one_line_with_the_newest_words(work: Work) -> None:
    lines_of(work.lake, day_after(-5))
    for ago, text in ((9, "Never deploy parcels on a Friday."), (6, "Never deploy the parcels on Friday evening.")):
        seen = {"first_seen": at(day=day_after(-ago)), "last_seen": at(day=day_after(-ago))}
        put(work.lake, "reflections", reflection(text, day=day_after(-ago), sources=[f"o-{ago}"], **seen))
    work.run()
    assert "Never deploy the parcels on Friday evening." in work.lines()
    assert "Never deploy parcels on a Friday." not in work.lines()
    assert {"o-9", "o-6"} <= {o for row in work.rows() for o in row["observations"]}


def test_a_section_with_little_to_say_waits_for_more(work: Work) -> None:
    lines_of(work.lake, day_after(-5))
    few = lines_of(work.lake, day_after(-8), 3, section="Patterns")
    assert work.run().waiting == 3
    assert not set(few) & set(work.lines())
    more = lines_of(work.lake, day_after(-4), 10, section="Patterns")
    work.run(at("12:00", day_after(1)))
    assert set(few + more) <= set(work.lines())
    assert {row["section"] for row in work.rows()} == {"Hard Rules", "Patterns"}


def test_two_at_once_would_add_the_same_twice(work: Work) -> None:
    lines_of(work.lake, day_after(-5))
    with (
        FileLock(work.lake.root / "pool_reflections.lock"),
        pytest.raises(TryAgainLaterError, match="wait for it to end"),
    ):
        work.run()
    assert work.rows() == []


# --- all of it or nothing ---


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_crash_while_writing_leaves_the_table_as_it_was(
    work: Work, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    lines_of(work.lake, day_after(-9))
    work.run()
    before = work.bytes()
    lines_of(work.lake, day_after(-5))
    reflections = bytes_of(work.lake.root / "reflections")

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", die) if call == "fsync" else patch.setattr(Path, "replace", die)
        with pytest.raises(KeyboardInterrupt):
            work.run(at("12:00", day_after(1)))
    after = work.bytes()
    assert after["pool_reflections/all.parquet"] == before["pool_reflections/all.parquet"]
    assert bytes_of(work.lake.root / "reflections") == reflections
    assert work.run(at("12:00", day_after(1))).rows == 1  # the next run does it


def with_model(work: Work, url: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    asked = {"reflector_model": "openai:scripted", "reflector_base_url": url, "model_retries": 0}
    return asked | {"daily_budget_tokens": 10_000_000}


def test_a_model_condenses_batch_by_batch(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*lines_of(work.lake, day_after(-9)), *lines_of(work.lake, day_after(-8))]
    with openai_server(lambda asked: lines_for(asked, every=2)) as server:
        settings = with_model(work, server.url, monkeypatch)
        done = work.run(**settings)
        assert len(server.requests) >= 2
        assert "All of this is more than three days old." in server.requests[0].prompt
        asked = len(server.requests)
        assert work.run(at("12:00", day_after(1)), **settings) == Pooled()  # what it left out is not shown again
        assert len(server.requests) == asked
    assert done.lines == 40 and set(work.lines()) < set(texts)
    assert all(MIN_TOKENS <= row["tokens"] <= MAX_TOKENS for row in work.rows())
    kept = {o for row in work.rows() for o in row["observations"]}
    left = {o for row in work.rows() for o in row["left_out"]}
    assert not kept & left and len(kept | left) == 40


@pytest.mark.parametrize(
    ("last", "raised"),
    [(Fail(500), ModelUnavailableError), ("", UnusableAnswerError), ("nothing", UnusableAnswerError)],
)
def test_where_one_batch_fails_nothing_is_added_and_nothing_paid_again(
    work: Work, monkeypatch: pytest.MonkeyPatch, last: Any, raised: type[Exception]
) -> None:
    for ago in (9, 8, 7):
        lines_of(work.lake, day_after(-ago))
    before = work.bytes()

    def script(asked: Any) -> Any:
        return lines_for(asked, every=2) if len(server.requests) < 3 else last

    with openai_server(script) as server:
        settings = with_model(work, server.url, monkeypatch)
        with pytest.raises(raised):
            work.run(**settings)
        assert len(server.requests) >= 3
    assert {p: b for p, b in work.bytes().items() if p in before} == before and work.rows() == []
    if raised is ModelUnavailableError:
        with openai_server(lambda asked: lines_for(asked, every=2)) as server:
            work.run(**settings | {"daily_budget_tokens": 10_000_000, "reflector_base_url": server.url})
            assert 1 <= len(server.requests) < 5
            assert work.rows()


def test_over_budget_nothing_is_added(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    lines_of(work.lake, day_after(-9))
    with openai_server("") as server, pytest.raises(BudgetReachedError):
        work.run(**with_model(work, server.url, monkeypatch) | {"daily_budget_tokens": 100})
    assert work.rows() == []


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 1000), st.integers(0, 40)), max_size=60))
def test_every_line_is_in_one_row_or_waits(drawn: list[tuple[int, int, int]]) -> None:
    lines = [
        ReflectionLine(
            section, f"{i} ".ljust(length, "x"), "low", "rule", (f"r-{i}",), 1, at(), at(day=day_after(-ago))
        )
        for i, (section, length, ago) in enumerate(drawn)
    ]
    packed, waiting = pack(lines)
    assert sorted(line.sources for row in [*packed, waiting] for line in row) == sorted(line.sources for line in lines)
    for row in packed:
        assert MIN_TOKENS <= estimate("\n".join(line.text for line in row)) <= MAX_TOKENS
        assert len({line.section for line in row}) == 1
    for section in range(4):
        left = [line for line in waiting if line.section == section]
        assert estimate("\n".join(line.text for line in left)) < MIN_TOKENS
