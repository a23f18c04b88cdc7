"""How fast a model is asked that has said it is too much."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date

import pytest

from memory_pipeline.llm.client import Client
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.pace import GOOD_BEFORE_MORE, Pace
from memory_pipeline.llm.request import Request
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.llm.openai_server import Asked, Fail, Say, Turn, openai_server

DAY = date(2025, 3, 5)
MODEL = "openai:gpt-4o-mini"
AT_ONCE, ALLOWED = 8, 2


def at_most_allowed() -> Callable[[Asked], Turn]:
    """A provider that refuses what is more than it allows at once; the first calls all come together."""
    together, mutex = threading.Barrier(AT_ONCE), threading.Lock()
    inside, seen = 0, 0

    def answer(asked: Asked) -> Turn:
        nonlocal inside, seen
        with mutex:
            inside, seen = inside + 1, seen + 1
            here, is_first = inside, seen <= AT_ONCE
        if is_first:
            together.wait(60)
        else:
            threading.Event().wait(0.3)  # long enough for others to come, if they are let
        with mutex:
            inside -= 1
        return Say("Answered.") if here <= ALLOWED else Fail(429, "slow down", headers={"Retry-After": "0"})

    return answer


def test_calls_that_are_too_many_are_made_one_after_another_and_all_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    settings = Settings(model_retries=1)
    with openai_server(at_most_allowed()) as server, ThreadPoolExecutor(AT_ONCE) as pool:
        client = Client(ModelConfig(MODEL, server.url, timeout=100), Workspace.open(settings))
        requests = [Request(MODEL, "Be brief.", f"Question {n}") for n in range(AT_ONCE)]
        answers = list(pool.map(lambda request: client.complete(request, DAY), requests))
    assert [answer.text for answer in answers] == ["Answered."] * AT_ONCE
    tries = Counter(asked.prompt for asked in server.requests)
    assert sorted(tries.values()) == [1] * ALLOWED + [2] * (AT_ONCE - ALLOWED)


def test_half_as_many_are_made_at_once_and_one_more_after_ten_answers() -> None:
    pace = Pace()
    with Begun(pace, 4):
        pace.slow_down(None)
    with Begun(pace, 2):
        third = Late(pace)
        assert not third.has_begun.wait(0.2)
    assert third.has_begun.wait(60)
    for _ in range(GOOD_BEFORE_MORE):
        pace.answered()
    with Begun(pace, 3):
        assert not Late(pace).has_begun.wait(0.2)


def test_every_call_waits_as_long_as_the_provider_asked() -> None:
    now = 1000.0
    pace, waits = Pace(clock=lambda: now), []
    pace.slow_down(30)
    now += 10
    pace.slow_down(5)  # ends sooner than what was asked before
    with pace.turn(waits.append):
        assert waits == [20]
    now += 20
    with pace.turn(waits.append):
        assert waits == [20]


def test_nobody_is_held_up_once_the_run_is_stopped() -> None:
    pace = Pace()
    pace.slow_down(None)
    with Begun(pace, 1):
        late = Late(pace)
        pace.let_all_go()
        assert late.has_begun.wait(60)


class Begun:
    """So many calls that have begun and not ended."""

    def __init__(self, pace: Pace, calls: int) -> None:
        self._turns = [pace.turn() for _ in range(calls)]

    def __enter__(self) -> None:
        for turn in self._turns:
            turn.__enter__()

    def __exit__(self, *_: object) -> None:
        for turn in self._turns:
            turn.__exit__(None, None, None)


class Late:
    """A call of another thread, which ends as soon as it may begin."""

    def __init__(self, pace: Pace) -> None:
        self.has_begun = threading.Event()
        threading.Thread(target=self._call, args=(pace,), daemon=True).start()

    def _call(self, pace: Pace) -> None:
        with pace.turn():
            self.has_begun.set()
