"""Answers held to a schema: who is asked for one, what is sent, and what when a server does not take it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.backends.provider import ProviderBackend, takes_schema
from memory_pipeline.llm.cache import AnswerCache, answers_dir
from memory_pipeline.llm.client import Client, tokens_of
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.errors import ModelMisconfiguredError, RequestRefusedError
from memory_pipeline.llm.ledger import cost_of
from memory_pipeline.llm.request import Answer, Request
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.llm.openai_server import Asked, Fail, OpenAIServer, Say, openai_server
from memory_pipeline_tests.rows import DAY, workspace

SCHEMA = json.dumps({"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]})
MODEL = "openai:gpt-4o-mini"


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, "sk-test-0123456789abcdef")


@pytest.fixture
def made(tmp_path: Path) -> tuple[Workspace, Lake]:
    settings, lake = workspace(tmp_path, model_retries=0)
    return Workspace(settings, lake), lake


def request_of(prompt: str = "Hello?", model: str = MODEL, **fields: Any) -> Request:
    return Request(model, "As JSON.", prompt, schema=SCHEMA, plain_system="In tags.", **fields)


def client_of(made: tuple[Workspace, Lake], server: OpenAIServer, **more: Any) -> Client:
    return Client(ModelConfig(MODEL, server.url), made[0], **more)


def refusing(asked: Asked) -> Fail | str:
    """A server that knows no response_format."""
    return Fail(400, "unknown field response_format") if asked.schema else f"<a>{asked.prompt}</a>"


@each(
    ("model", "expected"),
    [
        ("openai:gpt-5-mini", True),
        ("openai-responses:gpt-5-mini", True),
        ("anthropic:claude-haiku-4-5", True),
        ("anthropic:claude-3-5-haiku-latest", False),
        ("google:gemini-2.5-flash", True),
        ("ollama:qwen3:8b", True),
        ("ollama:gpt-oss:120b-cloud", False),
        ("deepseek:deepseek-chat", False),
        ("gateway/openai:gpt-5-mini", True),
        ("recorded:any", False),
        ("groq:llama-3", False),  # its package is not installed
        ("claude -p --model haiku", False),
        ("gpt-4o-mini", False),
        ("openai:", True),  # whoever asks it says what is wrong
    ],
)
def test_whose_answers_can_be_held_to_a_schema(model: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name)
    assert takes_schema(ModelConfig(model)) is expected


@each(
    "model",
    [
        "openai:scripted",
        "openai-responses:gpt-5-mini",
        "ollama:qwen3:8b",
        "anthropic:claude-haiku-4-5",
        "google:gemini-2.5-flash",
    ],
)
def test_the_schema_is_sent_in_every_protocol(model: str) -> None:
    with openai_server('{"word": "Hello."}') as server:
        url = server.url if model.startswith(("openai", "ollama")) else server.host_url
        backend = ProviderBackend(ModelConfig(model, url))
        assert backend.send(request_of(model=model)).text == '{"word": "Hello."}'
        backend.send(request_of(model=model).forms[-1])
    with_schema, without = server.requests
    assert with_schema.schema is not None and list(with_schema.schema["properties"]) == ["word"]
    assert "As JSON." in str(with_schema.body) and "In tags." not in str(with_schema.body)
    assert without.schema is None and "In tags." in str(without.body)


def test_a_model_that_takes_none_after_all_refuses_the_request_alone() -> None:
    with openai_server() as server, pytest.raises(RequestRefusedError, match="does not accept a schema"):
        ProviderBackend(ModelConfig("anthropic:claude-3-haiku", server.host_url)).send(request_of())
    assert server.requests == []


def test_the_key_has_the_schema_and_that_of_the_plain_form_is_as_it_was() -> None:
    request = request_of()
    plain = Request(MODEL, "In tags.", "Hello?")
    assert request.forms == (request, plain) and plain.forms == (plain,)
    # as answers were kept before there were schemas
    assert plain.key == "f09d754f141f70a1c9737932bb7a6f856fa52addbbcfc28f2fdb2732db50a0ab"
    assert len({request.key, plain.key, Request(MODEL, "As JSON.", "Hello?").key}) == 3
    assert request.key != Request(MODEL, "As JSON.", "Hello?", schema=SCHEMA.replace("word", "term")).key


def test_a_server_that_refuses_the_schema_is_asked_without_and_not_again_with_one(made: tuple[Workspace, Lake]) -> None:
    with openai_server(refusing) as server:
        client = client_of(made, server)
        first, second = client.complete(request_of("one"), DAY), client.complete(request_of("two"), DAY)
        assert [bool(asked.schema) for asked in server.requests] == [True, False, False]
        assert client_of(made, server).complete(request_of("one"), DAY).cached  # the next run finds it
        assert len(server.requests) == 3
    assert (first.text, second.text) == ("<a>one</a>", "<a>two</a>")
    assert first.key == request_of("one").forms[-1].key
    assert [asked.system for asked in server.requests] == ["As JSON.", "In tags.", "In tags."]
    rows = made[1].read("ledger").sort("asked_at").select("state", "input_tokens", "cost_usd").rows()
    assert [row[0] for row in rows] == ["failed", "done", "done", "done"]
    assert rows[0] == ("failed", 0, 0.0)  # a refused request is not billed


def test_a_request_that_is_refused_in_both_forms_does_not_switch_the_schema_off(made: tuple[Workspace, Lake]) -> None:
    with openai_server([Fail(400, "too long"), Fail(400, "too long"), '{"word": "x"}']) as server:
        client = client_of(made, server)
        with pytest.raises(RequestRefusedError, match="too long"):
            client.complete(request_of("one"), DAY)
        assert client.complete(request_of("two"), DAY).key == request_of("two").key
        assert [bool(asked.schema) for asked in server.requests] == [True, False, True]


@pytest.mark.parametrize(
    ("turn", "calls", "error"),
    [
        (Say(None, finish="content_filter"), 1, RequestRefusedError),  # billed, and filtered again
        (Fail(401), 1, ModelMisconfiguredError),
        (Fail(501, "not implemented"), 2, RequestRefusedError),
    ],
    ids=str,
)
def test_what_is_asked_again_without_a_schema(
    made: tuple[Workspace, Lake], turn: Say | Fail, calls: int, error: type[Exception]
) -> None:
    with openai_server(turn) as server:
        with pytest.raises(error):
            client_of(made, server).complete(request_of(), DAY)
        assert len(server.requests) == calls


def test_an_answer_that_was_paid_for_in_tags_is_used(made: tuple[Workspace, Lake]) -> None:
    request = request_of()
    cache = AnswerCache(answers_dir(made[0].settings))
    cache.put(request.forms[-1].key, Answer("<a>kept</a>", 1, 1, 0.0, 0.0))
    with openai_server() as server:
        client = client_of(made, server)
        answer = client.complete(request, DAY)
        assert client.is_cached(request) and not client.is_cached(request_of("another"))
        assert server.requests == []
    assert (answer.text, answer.key, answer.cached) == ("<a>kept</a>", request.forms[-1].key, True)


def test_a_fallback_that_takes_no_schema_is_asked_without(made: tuple[Workspace, Lake], tmp_path: Path) -> None:
    script = tmp_path / "model"
    script.write_text("#!/bin/sh\ncat\n")
    script.chmod(0o755)
    second = Client(ModelConfig(f"{script} -"), made[0])
    with openai_server(Fail(401)) as server:
        answer = client_of(made, server, fallback=second).complete(request_of(), DAY)
    assert "In tags." in answer.text and "As JSON." not in answer.text


def test_the_schema_counts_among_the_tokens(made: tuple[Workspace, Lake]) -> None:
    with openai_server() as server:
        client = client_of(made, server)
    request, plain = request_of(), request_of().forms[-1]
    assert tokens_of(request) > tokens_of(plain) + 10
    assert client.worst_case(request).tokens > client.worst_case(plain).tokens + 10


def test_instructions_that_come_again_are_marked_for_the_provider_to_keep() -> None:
    with openai_server() as server:
        backend = ProviderBackend(ModelConfig("anthropic:claude-sonnet-5", server.host_url))
        for prompt in ("one", "two", "three"):
            backend.send(Request("anthropic:claude-sonnet-5", "Be brief.", prompt))
        backend.send(Request("anthropic:claude-sonnet-5", "Be long.", "four"))
    kept = [asked.body["system"][0].get("cache_control") for asked in server.requests]
    assert [bool(mark) for mark in kept] == [False, True, True, False]
    assert all("cache_control" not in str(asked.body["messages"]) for asked in server.requests)


def test_who_keeps_them_by_itself_is_told_nothing() -> None:
    with openai_server() as server:
        backend = ProviderBackend(ModelConfig(MODEL, server.url))
        for prompt in ("one", "two"):
            backend.send(Request(MODEL, "Be brief.", prompt))
    first, second = (asked.body | {"messages": []} for asked in server.requests)
    assert first == second and "cache" not in str(second)


@pytest.mark.parametrize(
    ("model", "usd"),
    [
        (MODEL, 0.15 / 2 + 0.075 / 2),
        ("anthropic:claude-haiku-4-5", 1.0 / 2 + 0.1 / 2),
        ("google:gemini-2.5-flash", 0.3 / 2 + 0.03 / 2),
    ],
)
def test_what_the_provider_had_in_its_cache_has_its_own_price(
    made: tuple[Workspace, Lake], model: str, usd: float
) -> None:
    with openai_server(Say("Hello.", tokens=(10_000, 0), cached=5_000)) as server:
        config = ModelConfig(model, server.url if model == MODEL else server.host_url)
        answer = Client(config, made[0]).complete(Request(model, "", "Hello?"), DAY)
    assert answer.input_tokens == 10_000
    assert answer.cost_usd == pytest.approx(usd / 100)
    assert made[1].read("ledger")["cost_usd"].to_list() == [pytest.approx(usd / 100)]


def test_more_tokens_from_the_cache_than_were_sent_are_as_many_as_were_sent() -> None:
    assert cost_of(ModelConfig(MODEL), 1_000_000, 0, 2_000_000, 5) == pytest.approx(0.075)


def test_the_price_of_the_settings_knows_no_cache() -> None:
    assert cost_of(ModelConfig(MODEL, price=(1.0, 2.0)), 1_000_000, 0, 1_000_000) == pytest.approx(1.0)
