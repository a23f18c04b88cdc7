"""What providers do, over real HTTP on loopback, and what that means: try again, refused, or set up wrongly."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from memory_pipeline.llm.backends.provider import ProviderBackend
from memory_pipeline.llm.client import backend_of
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.errors import ModelMisconfiguredError, RequestRefusedError, TransientError
from memory_pipeline.llm.request import Reply, Request, RequestImage
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.llm.openai_server import Body, Cut, Drip, Fail, OpenAIServer, Say, Script, openai_server

KEY = "sk-test-0123456789abcdef"
PNG = b"\x89PNG\r\n\x1a\n and so on"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, KEY)


def request_to(model: str = "openai:gpt-4o-mini", prompt: str = "Hello?", **fields: Any) -> Request:
    return Request(model, "Be brief.", prompt, **fields)


def send(script: Script, model: str = "openai:gpt-4o-mini", *, timeout: float = 20, **fields: Any) -> Reply:
    with openai_server(script) as server:
        return at(server, model, timeout).send(request_to(model, **fields))


def at(server: OpenAIServer, model: str = "openai:gpt-4o-mini", timeout: float = 20) -> ProviderBackend:
    return ProviderBackend(ModelConfig(model, server.url, timeout=timeout))


def test_an_answer_comes_with_its_tokens() -> None:
    with openai_server(Say("Hello.", tokens=(12, 3))) as server:
        reply = at(server).send(request_to(temperature=0.3, max_output_tokens=500))
    assert reply == Reply("Hello.", 12, 3, False, "gpt-4o-mini")
    [asked] = server.requests
    assert (asked.path, asked.system, asked.prompt) == ("/v1/chat/completions", "Be brief.", "Hello?")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert {name: asked.body.get(name) for name in ("model", "temperature", "max_tokens", "tools", "stream")} == {
        "model": "gpt-4o-mini",
        "temperature": 0.3,
        "max_tokens": 500,
        "tools": None,
        "stream": False,
    }


def test_models_that_think_get_no_temperature_and_the_limit_by_its_new_name() -> None:
    with openai_server("Hello.") as server:
        at(server, "openai:gpt-5-mini").send(request_to("openai:gpt-5-mini", temperature=0.3))
    [asked] = server.requests
    assert ("temperature" in asked.body, "max_tokens" in asked.body) == (False, False)
    assert asked.body["max_completion_tokens"] == 8000


def test_pictures_go_along() -> None:
    with openai_server("A cat.") as server:
        at(server).send(request_to(images=(RequestImage("image/png", PNG), RequestImage("image/jpeg", b"jpeg"))))
    [asked] = server.requests
    assert (asked.prompt, asked.images) == ("Hello?", [PNG, b"jpeg"])


def test_tokens_that_a_server_does_not_count_are_unknown() -> None:
    assert send(Say("Hello.", tokens=None)) == Reply("Hello.", None, None, False, "gpt-4o-mini")


def test_an_answer_that_was_cut_at_the_limit_says_so() -> None:
    assert send(Say("Hell", finish="length")).truncated


@each("text", ["", None])
def test_an_empty_answer_is_an_answer(text: str | None) -> None:
    assert send(Say(text)).text == ""


@each(
    ("turn", "billed"),
    [
        (Fail(429), False),
        (Fail(500), False),
        (Fail(502), False),
        (Fail(503, "overloaded"), False),
        (Fail(529), False),
        (Fail(408), False),
        (Cut(), True),
        (Body(b"{not json"), True),
        (Body(b"<html>Welcome to the hotel's Wi-Fi</html>", "text/html"), True),
        (Body(b"   "), True),
        (Body(b"[]"), True),
        (Body(b'{"choices": []}'), True),
        (Body(b"{}"), True),
        (Body(b'{"error": {"message": "upstream"}}'), True),
        (Body(b"\xff\xfe"), True),
    ],
    ids=str,
)
def test_what_may_pass_is_worth_another_try(turn: Fail | Cut | Body, billed: bool) -> None:
    with openai_server(turn) as server, pytest.raises(TransientError) as caught:
        at(server).send(request_to())
    assert caught.value.may_be_billed == billed
    assert len(server.requests) == 1  # the library does not try again on its own
    assert str(caught.value).startswith("openai:gpt-4o-mini: ")
    assert KEY not in str(caught.value)


def test_how_long_to_wait_is_passed_on() -> None:
    with pytest.raises(TransientError) as caught:
        send(Fail(429, headers={"Retry-After": "7"}))
    assert caught.value.retry_after == 7


@each("turn", [Say("Late.", after=3600), Drip()], ids=str)
def test_a_slow_answer_is_given_up_on_time(turn: Say | Drip) -> None:
    with pytest.raises(TransientError, match=r"no answer within 0\.3 s") as caught:
        send(turn, timeout=0.3)
    assert caught.value.may_be_billed


def test_a_server_that_is_not_there_has_billed_nothing() -> None:
    with openai_server() as server:
        pass
    with pytest.raises(TransientError) as caught:
        at(server).send(request_to())
    assert not caught.value.may_be_billed


@each(
    ("turn", "said"),
    [
        (Fail(400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded"), "8192 tokens"),
        (Fail(400, "bad image"), "HTTP 400: bad image"),
        (Fail(413, "too large"), "HTTP 413: too large"),
        (Fail(422, "no"), "HTTP 422: no"),
        (Say(None, finish="content_filter"), "filtered its answer out"),
    ],
    ids=str,
)
def test_what_the_model_does_not_take_is_refused_for_this_request(turn: Fail | Say, said: str) -> None:
    with pytest.raises(RequestRefusedError, match=said):
        send(turn)


@each(
    ("turn", "said"),
    [
        (Fail(401, f"Incorrect API key provided: {KEY}"), "refuses the key, .* check OPENAI_API_KEY"),
        (Fail(403, f"{KEY} may not"), "refuses the key, .* check OPENAI_API_KEY"),
        (Fail(404, "no such model"), r"was not found \(HTTP 404: no such model\).* OBSERVER_BASE_URL"),
        (Fail(405), "was not found"),
        (Fail(402, f"pay for {KEY}"), r"no credit or quota left for the key in OPENAI_API_KEY \(HTTP 402: pay for"),
        (Fail(429, "You exceeded your current quota", "insufficient_quota"), "no credit or quota left"),
    ],
    ids=str,
)
def test_what_no_request_can_get_past_names_the_setting(turn: Fail, said: str) -> None:
    with pytest.raises(ModelMisconfiguredError, match=said) as caught:
        send(turn)
    assert str(caught.value).startswith("OBSERVER_MODEL='openai:gpt-4o-mini' ")
    assert KEY not in str(caught.value)


@each(
    ("model", "url", "said"),
    [
        ("openai:gpt-4o-mini", None, "needs a key; set OPENAI_API_KEY"),
        ("anthropic:claude-haiku-4-5", None, "needs a key; set ANTHROPIC_API_KEY"),
        ("google:gemini-2.5-flash", None, "needs a key; set GOOGLE_API_KEY"),
        ("openrouter:openai/gpt-4o", None, "needs a key; set OPENROUTER_API_KEY"),
        ("gpt-4o-mini", None, "neither `provider:model`"),
        ("openai:", None, "neither `provider:model`"),
        ("nobody:gpt", None, "cannot be used: Unknown model: nobody:gpt"),
        ("groq:llama-3", None, r'pip install "pydantic-ai-slim\[groq\]"'),
        ("openai:gpt-4o", "localhost:8000/v1", "does not begin with http"),
        ("cohere:command", "http://127.0.0.1:1/v1", "is not installed"),
    ],
)
def test_a_model_that_cannot_be_reached_as_it_is_set_up(
    model: str, url: str | None, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(ModelMisconfiguredError, match=said):
        ProviderBackend(ModelConfig(model, url)).send(request_to(model))


def test_an_empty_key_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    with pytest.raises(ModelMisconfiguredError, match="set OPENAI_API_KEY"):
        ProviderBackend(ModelConfig("openai:gpt-4o")).send(request_to("openai:gpt-4o"))


def test_the_message_names_the_stage_whose_setting_is_wrong() -> None:
    with pytest.raises(ModelMisconfiguredError, match=r"^REFLECTOR_MODEL='gpt'"):
        ProviderBackend(ModelConfig("gpt", role="REFLECTOR")).send(request_to("gpt"))


def test_a_server_that_needs_no_key_gets_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with openai_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert backend_of(ModelConfig("openai:qwen3")).send(request_to("openai:qwen3")).text == "Answered."
    assert server.requests[0].headers["authorization"] == "Bearer none"


def test_a_key_with_a_line_end_is_used_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    with openai_server() as server:
        at(server).send(request_to())
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_ollama_is_asked_with_the_limit_that_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    with openai_server() as server:
        monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
        assert backend_of(ModelConfig("ollama:qwen3:8b")).send(request_to("ollama:qwen3:8b")).text == "Answered."
    assert (server.requests[0].body["model"], server.requests[0].body["max_tokens"]) == ("qwen3:8b", 8000)
    assert KEY not in str(server.requests)


OTHERS = ["openai-responses:gpt-4o-mini", "anthropic:claude-haiku-4-5", "google:gemini-2.5-flash"]
"""The first is what `openai:` means where no address is set."""


def at_root(server: OpenAIServer, model: str) -> ProviderBackend:
    return ProviderBackend(
        ModelConfig(model, server.url if model.startswith("openai") else server.host_url, timeout=20)
    )


@each("model", OTHERS)
def test_other_protocols_answer_alike(model: str) -> None:
    with openai_server(Say("Hello.", tokens=(12, 3))) as server:
        reply = at_root(server, model).send(request_to(model, images=(RequestImage("image/png", PNG),)))
    assert (reply.text, reply.input_tokens, reply.output_tokens, reply.truncated) == ("Hello.", 12, 3, False)
    assert "Be brief." in str(server.requests[0].body)
    assert len(server.requests) == 1


@each("model", OTHERS)
def test_other_protocols_say_when_an_answer_was_cut_at_the_limit(model: str) -> None:
    with openai_server(Say("Hell", finish="length")) as server:
        assert at_root(server, model).send(request_to(model)).truncated


@each("model", OTHERS)
@each(
    ("turn", "expected"),
    [
        (Fail(429), TransientError),
        (Fail(500), TransientError),
        (Fail(529), TransientError),
        (Cut(), TransientError),
        (Body(b"{not json"), TransientError),
        (Body(b"[]"), TransientError),
        (Fail(400, "bad"), RequestRefusedError),
        (Fail(413, "too large"), RequestRefusedError),
        (Say(None, finish="content_filter"), RequestRefusedError),
        (Fail(401, KEY), ModelMisconfiguredError),
        (Fail(404, "no such model"), ModelMisconfiguredError),
    ],
    ids=str,
)
def test_other_protocols_fail_alike(model: str, turn: Any, expected: type[Exception]) -> None:
    with openai_server(turn) as server, pytest.raises(expected) as caught:
        at_root(server, model).send(request_to(model))
    assert len(server.requests) == 1
    assert KEY not in str(caught.value)


def test_threads_have_clients_of_their_own_and_close_them() -> None:
    """pytest makes an error of every warning about what was not closed."""
    with openai_server(lambda asked: f"to {asked.prompt}") as server, ThreadPoolExecutor(8) as pool:
        prompts = [str(number) for number in range(24)]
        replies = pool.map(lambda prompt: at(server).send(request_to(prompt=prompt)).text, prompts)
        assert list(replies) == [f"to {prompt}" for prompt in prompts]
    gc.collect()
    assert [thread.name for thread in threading.enumerate() if "asyncio" in thread.name] == []
