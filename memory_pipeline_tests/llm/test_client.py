"""Asking through the client: tries, the ledger's rows, what is kept, and when it gives up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.backends.provider import ProviderBackend
from memory_pipeline.llm.client import Client
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.errors import (
    BudgetReachedError,
    ModelMisconfiguredError,
    ModelUnavailableError,
    RequestRefusedError,
    TransientError,
)
from memory_pipeline.llm.ledger import Usage
from memory_pipeline.llm.request import Answer, Reply, Request
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.llm.openai_server import Body, Cut, Fail, OpenAIServer, Say, Turn, openai_server

DAY = date(2025, 3, 5)
KEY = "sk-test-0123456789abcdef"
MODEL = "openai:gpt-4o-mini"


def request_of(prompt: str = "Hello?", **fields: Any) -> Request:
    return Request(MODEL, "Be brief.", prompt, **fields)


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return Settings(model_retries=2)


def lake_of(settings: Settings) -> Lake:
    return Lake(settings.lake_dir)


def client_of(
    settings: Settings,
    server: OpenAIServer | None = None,
    *,
    timeout: float = 300,
    price: tuple[float, float] | None = None,
    **more: Any,
) -> Client:
    config = ModelConfig(MODEL, server.url if server else None, timeout=timeout, price=price)
    more = {"sleep": lambda seconds: None} | more
    return Client(config, Workspace(settings, lake_of(settings)), **more)


class Patient:
    """Gives up two answers at once and waits for the third as long as it takes."""

    def __init__(self, url: str) -> None:
        self.url, self.asked = url, 0

    def send(self, request: Request) -> Reply:
        self.asked += 1
        return ProviderBackend(ModelConfig(MODEL, self.url, timeout=0.5 if self.asked < 3 else 300)).send(request)


def rows(settings: Settings) -> list[dict[str, Any]]:
    return lake_of(settings).read("ledger").to_dicts()


class Scripted:
    """A backend of functions and replies, without a network."""

    def __init__(self, *turns: Reply | Exception | Callable[[Request], Reply]) -> None:
        self.turns = list(turns)
        self.asked: list[Request] = []

    def send(self, request: Request) -> Reply:
        self.asked.append(request)
        turn = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
        if isinstance(turn, Exception):
            raise type(turn)(*turn.args)
        return turn if isinstance(turn, Reply) else turn(request)


def reply(text: str = "Hello.", tokens: tuple[int | None, int | None] = (100, 10)) -> Reply:
    return Reply(text, *tokens, False, "gpt")


# --- one answer ---


def test_an_answer_is_kept_and_written_down(settings: Settings) -> None:
    with openai_server(Say("Hello.", tokens=(2_000_000, 100))) as server:
        answer = client_of(settings, server).complete(request_of(), DAY)
    assert (answer.text, answer.input_tokens, answer.output_tokens, answer.cached) == ("Hello.", 2_000_000, 100, False)
    assert answer.cost_usd == pytest.approx(2 * 0.15 + 100 * 0.6 / 1e6)  # gpt-4o-mini's price
    [row] = rows(settings)
    assert row | {"day": 0, "asked_at": 0, "seconds": 0, "call_id": 0, "cost_usd": 0} == {
        **{"day": 0, "asked_at": 0, "seconds": 0, "call_id": 0, "cost_usd": 0},
        **{"stage": "observations", "model": MODEL, "input_tokens": 2_000_000, "output_tokens": 100},
        **{"cached": False, "for_day": DAY, "state": "done", "error": None},
    }
    assert row["cost_usd"] == answer.cost_usd
    assert row["seconds"] == pytest.approx(answer.seconds)
    assert row["call_id"].startswith(request_of().key[:16])


def test_what_was_answered_is_not_asked_again(settings: Settings) -> None:
    with openai_server(["Hello."]) as server:
        first = client_of(settings, server).complete(request_of(), DAY)
        client = client_of(settings, server)
        assert not client.is_cached(request_of("other"))
        assert client.is_cached(request_of())
        again = [client.complete(request_of(), DAY), client.complete(request_of(), date(2025, 3, 6))]
        client_of(settings, server).complete(request_of(), DAY)
    assert len(server.requests) == 1
    assert [answer.text for answer in again] == ["Hello.", "Hello."]
    assert {(answer.cached, answer.cost_usd, answer.input_tokens) for answer in again} == {(True, first.cost_usd, 100)}
    done, used = rows(settings)
    assert (done["cached"], used["cached"], used["cost_usd"], used["input_tokens"]) == (False, True, 0.0, 100)


def test_equal_requests_at_once_are_one_call(settings: Settings) -> None:
    with openai_server(Say("Hello.", after=0.1)) as server, ThreadPoolExecutor(6) as pool:
        client = client_of(settings, server)
        answers = list(pool.map(lambda _: client.complete(request_of(), DAY), range(6)))
    assert len(server.requests) == 1
    assert sorted(answer.cached for answer in answers) == [False, True, True, True, True, True]


def test_an_answer_is_redacted_before_anything_keeps_it(settings: Settings) -> None:
    with openai_server(f"The key is {KEY}.") as server:
        client = client_of(settings, server, redact=lambda text: text.replace(KEY, "[key]"))
        assert client.complete(request_of(), DAY).text == "The key is [key]."
    assert client.complete(request_of(), DAY).text == "The key is [key]."
    assert [
        path for path in settings.workspace.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ] == []


# --- tries ---


@pytest.mark.parametrize(
    ("turn", "billed"),
    [
        (Fail(429), False),
        (Fail(500), False),
        (Cut(), True),
        (Body(b"{not json"), True),
        (Say("late", after=3600), True),
    ],
    ids=str,
)
def test_a_call_that_failed_for_the_moment_is_made_again(settings: Settings, turn: Turn, billed: bool) -> None:
    with openai_server([turn, turn, "Hello."]) as server:
        client = client_of(settings, server, backend=Patient(server.url) if isinstance(turn, Say) else None)
        assert client.complete(request_of(), DAY).text == "Hello."
    assert len(server.requests) == 3
    found = rows(settings)
    assert [row["state"] for row in found] == ["failed", "failed", "done"]
    worst = client.worst_case(request_of()).tokens - request_of().max_output_tokens
    assert [row["input_tokens"] for row in found] == [*([worst if billed else 0] * 2), 100]
    assert [row["output_tokens"] for row in found] == [0, 0, 10]
    assert all(row["error"] for row in found[:2])


def test_the_waits_grow_unless_the_provider_says_how_long(settings: Settings) -> None:
    waits: list[float] = []
    turns = [Fail(500), Fail(500), Fail(500), Fail(429, headers={"Retry-After": "7"})]
    with openai_server([*turns, Fail(429, headers={"Retry-After": "9000"}), "Hello."]) as server:
        patient = settings.model_copy(update={"model_retries": 5})
        client_of(patient, server, sleep=waits.append).complete(request_of(), DAY)
    first, second, third, *asked = waits
    assert 1 <= first <= 2 <= second <= 3 < 4 <= third <= 5
    assert asked == [7, 120]


def test_a_model_that_stays_dead_is_asked_no_more(settings: Settings) -> None:
    with openai_server(["kept", Fail(500), Fail(500), Fail(503, "come back later"), "too late"]) as server:
        client = client_of(settings, server)
        client.complete(request_of("before"), DAY)
        with pytest.raises(
            ModelUnavailableError, match=r"in 3 tries; the last time: .*HTTP 503: come back later\. Run it again"
        ):
            client.complete(request_of(), DAY)
        for prompt in ("one", "two"):
            with pytest.raises(ModelUnavailableError, match="in 3 tries"):
                client.complete(request_of(prompt), DAY)
        assert len(server.requests) == 4
        assert client.complete(request_of("before"), DAY).text == "kept"
        assert client_of(settings, server).complete(request_of(), DAY).text == "too late"  # the next run tries anew


def test_threads_that_wait_for_another_try_give_up_with_the_first(settings: Settings) -> None:
    """With real waits: one that has none left ends the minute of the other."""
    waiting = threading.Event()

    def busy(request: Request) -> Reply:
        if request.prompt == "slow":
            waiting.set()
            raise TransientError("busy", retry_after=3600)
        waiting.wait(300)
        time.sleep(0.3)  # by then the other one waits
        raise ModelMisconfiguredError("no key")

    client = client_of(settings, backend=Scripted(busy), sleep=None)
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(client.complete, request_of("slow"), DAY)
        wrong = pool.submit(client.complete, request_of("wrong"), DAY)
        assert isinstance(wrong.exception(), ModelMisconfiguredError)
        assert isinstance(slow.exception(), ModelMisconfiguredError)


def test_a_stopped_client_asks_no_more(settings: Settings) -> None:
    backend = Scripted(reply())
    client = client_of(settings, backend=backend)
    client.stop()
    with pytest.raises(ModelUnavailableError, match="stopped"):
        client.complete(request_of(), DAY)
    assert backend.asked == []


@pytest.mark.parametrize("turn", [Fail(401, KEY), Fail(404)], ids=str)
def test_a_wrong_setting_is_found_once(settings: Settings, turn: Turn) -> None:
    with openai_server(turn) as server:
        client = client_of(settings, server)
        messages = []
        for prompt in ("one", "two", "three"):
            with pytest.raises(ModelMisconfiguredError) as caught:
                client.complete(request_of(prompt), DAY)
            messages.append(str(caught.value))
    assert len(server.requests) == 1
    assert len(set(messages)) == 1
    [row] = rows(settings)
    assert (row["state"], row["input_tokens"], row["error"]) == ("failed", 0, messages[0])
    assert KEY not in str(row)


def test_a_refused_request_leaves_the_others_alone(settings: Settings) -> None:
    turns = [
        Fail(400, "maximum context length", "context_length_exceeded"),
        Say(None, finish="content_filter"),
        "Hello.",
    ]
    with openai_server(turns) as server:
        client = client_of(settings, server)
        for prompt in ("too long", "filtered"):
            with pytest.raises(RequestRefusedError):
                client.complete(request_of(prompt), DAY)
        assert client.complete(request_of(), DAY).text == "Hello."
    assert [(row["state"], row["input_tokens"] > 0) for row in rows(settings)] == [
        ("failed", False),
        ("failed", True),
        ("done", True),
    ]


def test_what_nobody_expected_is_settled_and_raised(settings: Settings) -> None:
    client = client_of(settings, backend=Scripted(ZeroDivisionError("a mistake")))
    with pytest.raises(ZeroDivisionError):
        client.complete(request_of(), DAY)
    [row] = rows(settings)
    assert (row["state"], row["error"], row["output_tokens"]) == ("failed", "ZeroDivisionError", 0)
    assert row["input_tokens"] > 0


def test_messages_are_redacted(settings: Settings) -> None:
    client = client_of(
        settings, backend=Scripted(TransientError("hunter2")), redact=lambda text: text.replace("hunter2", "*")
    )
    with pytest.raises(ModelUnavailableError) as caught:
        client.complete(request_of(), DAY)
    assert "hunter2" not in f"{caught.value}{rows(settings)}"


# --- the budget ---


def test_a_call_that_might_pass_the_budget_is_not_made(settings: Settings) -> None:
    tight = settings.model_copy(update={"daily_budget_tokens": 8_990})
    with openai_server("Hello.") as server:
        client = client_of(tight, server)
        assert client.worst_case(request_of()) == Usage(6, 8000, pytest.approx(8000 * 0.6 / 1e6, rel=0.01))
        for prompt in ("a", "b", "c", "d", "e", "f", "g", "h", "i"):  # 110 tokens each, once they are settled
            client.complete(request_of(prompt), DAY)
        with pytest.raises(BudgetReachedError) as caught:
            client.complete(request_of("j"), DAY)
        client.complete(request_of("k", max_output_tokens=1), DAY)  # a smaller one still fits
        assert client.complete(request_of("a"), DAY).cached
    assert len(server.requests) == 10
    assert "990 tokens are spent or reserved, the next call may take 8,0" in str(caught.value)
    assert "MEMORY_DAILY_BUDGET_TOKENS allows 8,990 tokens" in str(caught.value)


def test_money_has_a_budget_too(settings: Settings) -> None:
    client = client_of(settings, backend=Scripted(reply(tokens=(6, 8000))), price=(0, 100))  # 0.80 USD a call
    assert client.complete(request_of("a"), DAY).cost_usd == pytest.approx(0.8)
    with pytest.raises(
        BudgetReachedError, match=r"0\.80 USD are spent .* may take 0\.80 USD, and MEMORY_DAILY_BUDGET_USD"
    ):
        client.complete(request_of("b"), DAY)


def test_a_key_among_the_arguments_of_a_command_is_kept_nowhere(settings: Settings) -> None:
    config = ModelConfig(f"ask --key {KEY}")
    backend = Scripted(Reply("Hello.", 1, 1, False, config.model))
    hide = {"redact": lambda text: text.replace(KEY, "[key]")}
    Client(config, Workspace(settings, lake_of(settings)), backend, **hide).complete(request_of(), DAY)
    with pytest.raises(ModelMisconfiguredError, match=r"ask --key \[key\]"):
        Client(config, Workspace(Settings(daily_budget_usd=1), lake_of(settings)), backend, **hide).complete(
            request_of("b"), DAY
        )
    assert [
        path for path in settings.workspace.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()
    ] == []


def test_a_budget_of_nothing_allows_what_is_free(settings: Settings) -> None:
    nothing = Settings(daily_budget_usd=0)
    assert client_of(nothing, backend=Scripted(reply()), price=(0, 0)).complete(request_of(), DAY).cost_usd == 0
    with pytest.raises(BudgetReachedError):
        client_of(nothing, backend=Scripted(reply())).complete(request_of("b"), DAY)


@pytest.mark.parametrize("model", ["openai:qwen3", "ask --model big"])
def test_a_limit_of_money_needs_a_price(settings: Settings, model: str) -> None:
    unlimited = Client(ModelConfig(model), Workspace(settings, lake_of(settings)), Scripted(reply()))
    assert unlimited.complete(request_of(), DAY).cost_usd is None
    assert unlimited.worst_case(request_of()).cost_usd is None
    limited = Settings(daily_budget_usd=1)
    client = Client(ModelConfig(model), Workspace(limited, lake_of(limited)), Scripted(reply()))
    with pytest.raises(ModelMisconfiguredError, match=r"MEMORY_DAILY_BUDGET_USD limits .* set OBSERVER_PRICE"):
        client.complete(request_of("b"), DAY)
    priced = Client(ModelConfig(model, price=(1, 1)), Workspace(limited, lake_of(limited)), Scripted(reply()))
    assert priced.complete(request_of("b"), DAY).cost_usd == pytest.approx(110e-6)


def test_the_worst_case_is_counted_in_bytes_and_pictures(settings: Settings) -> None:
    from memory_pipeline.llm.request import RequestImage

    client = client_of(settings, backend=Scripted(reply()))

    def worst(prompt: str, *images: RequestImage) -> int:
        return client.worst_case(Request(MODEL, "", prompt, images, max_output_tokens=1000)).tokens

    assert worst("x" * 3500) == 1000 + 1200
    assert worst("記憶" * 500) >= 1000 + 1000  # a token a character
    assert worst("x" * 3500, RequestImage("image/png", b"1"), RequestImage("image/png", b"2")) == 1000 + 1200 + 3200


def test_threads_never_pass_the_budget_together(settings: Settings) -> None:
    """Each may cost 1,000 at worst and costs 900: of thirty at once, ten fit at most into 10,000."""
    tight = settings.model_copy(update={"daily_budget_tokens": 10_000})
    backend = Scripted(lambda request: (time.sleep(0.02), reply(tokens=(6, 894)))[1])
    clients = [client_of(tight, backend=backend) for _ in range(3)]

    def ask(number: int) -> Answer | BudgetReachedError:
        try:
            return clients[number % 3].complete(request_of(f"{number:3}", max_output_tokens=994), DAY)
        except BudgetReachedError as reached:
            return reached

    with ThreadPoolExecutor(12) as pool:
        results = list(pool.map(ask, range(30)))
    answered = [result for result in results if isinstance(result, Answer)]
    assert 8 <= len(answered) <= 11
    assert len(backend.asked) == len(answered)
    spent = lake_of(settings).read("ledger").filter(pl.col("state") == "done")
    assert spent["input_tokens"].sum() + spent["output_tokens"].sum() == 900 * len(answered) <= 10_000


# --- a run that is killed ---


def test_what_a_killed_run_had_asked_counts_and_what_was_answered_is_kept(settings: Settings) -> None:
    arrived = threading.Event()

    def turn(asked: Any) -> Turn:
        if asked.prompt == "two" and not arrived.is_set():
            arrived.set()
            return Say("never read", after=30)
        return f"to {asked.prompt}"

    with openai_server(turn) as server:
        code = f"""
from memory_pipeline_tests.llm.test_client import (DAY, client_of, request_of)
from memory_pipeline_tests.llm.openai_server import OpenAIServer
from memory_pipeline.settings import Settings
client = client_of(Settings(), OpenAIServer("", url={server.url!r}))
for prompt in ("one", "two"):
    client.complete(request_of(prompt), DAY)
"""
        run = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2], start_new_session=True)
        try:
            assert arrived.wait(60)
        finally:
            os.kill(run.pid, signal.SIGKILL)
            run.wait()
        one, two = rows(settings)
        assert (one["state"], two["state"]) == ("done", "reserved")
        client = client_of(settings, server)
        assert (two["input_tokens"] + two["output_tokens"]) == client.worst_case(request_of("two")).tokens
        assert [client.complete(request_of(prompt), DAY).text for prompt in ("one", "two")] == ["to one", "to two"]
    assert [asked.prompt for asked in server.requests] == ["one", "two", "two"]
    assert sorted(row["state"] for row in rows(settings) if not row["cached"]) == ["done", "done", "reserved"]


def test_an_answer_is_kept_before_it_is_settled(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    client = client_of(settings, backend=Scripted(reply()))
    monkeypatch.setattr(client.ledger, "settle", killed)
    with pytest.raises(KeyboardInterrupt):
        client.complete(request_of(), DAY)
    assert [row["state"] for row in rows(settings)] == ["reserved"]
    assert client_of(settings, backend=Scripted(RequestRefusedError("asked again"))).complete(request_of(), DAY).cached
