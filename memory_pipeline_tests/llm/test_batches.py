"""Batches at providers over real HTTP on loopback: what is sent, what comes back, and how a lost one is found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.backends.batches import BatchBackend
from memory_pipeline.llm.backends.provider import ProviderBackend
from memory_pipeline.llm.batch_file import DamagedBatchFileError, batch_path, read_batch_file
from memory_pipeline.llm.batching import Asked, Batching, StillOut, TakenIn
from memory_pipeline.llm.client import Client
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.errors import (
    BudgetReachedError,
    InBatchError,
    ModelMisconfiguredError,
    RequestRefusedError,
    TransientError,
)
from memory_pipeline.llm.ledger import cost_of
from memory_pipeline.llm.request import Request, RequestImage
from memory_pipeline.settings import Settings
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.llm.batch_server import BatchServer, Expire, batch_server
from memory_pipeline_tests.llm.openai_server import Asked as Heard
from memory_pipeline_tests.llm.openai_server import Fail, OpenAIServer, Say, openai_server

DAY = date(2025, 3, 5)
KEY = "sk-test-0123456789abcdef"
MODELS = ["openai-responses:gpt-4o-mini", "anthropic:claude-haiku-4-5"]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, KEY)


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server() -> Iterator[BatchServer]:
    with batch_server(answering) as running:
        yield running


def answering(heard: Heard) -> Any:
    if "refuse" in heard.prompt:
        return Fail(400, "too long", code="invalid_request_error")
    if "busy" in heard.prompt:
        return Fail(500, "overloaded", code="api_error")
    if "late" in heard.prompt:
        return Expire()
    return Say(f"You said {heard.prompt}.", tokens=(12, 3))


def config_of(model: str, server: OpenAIServer, **fields: Any) -> ModelConfig:
    return ModelConfig(model, server.url if model.startswith("openai") else server.host_url, timeout=20, **fields)


def asked(model: str, *prompts: str) -> list[Asked]:
    return [Asked(Request(model, "Be brief.", prompt), DAY) for prompt in prompts]


def batching_of(model: str, server: OpenAIServer, **fields: Any) -> Batching:
    settings = Settings(**fields)
    return Batching(Workspace.open(settings), config_of(model, server), lambda text: text.replace("hunter2", "***"))


def ledger() -> list[dict[str, Any]]:
    rows = Lake(Settings().lake_dir).read("ledger").filter(~pl.col("cached").fill_null(False))
    return rows.sort("call_id").to_dicts()


def client_of(model: str, server: OpenAIServer) -> Client:
    return Client(config_of(model, server), Workspace.open(Settings(model_retries=0)))


@pytest.mark.slow
@each("name", [*MODELS, "anthropic:claude-sonnet-5-5", "openai-responses:gpt-5", "google:gemini-2.5-flash"])
@each("schema", ["", '{"type": "object", "properties": {"word": {"type": "string"}}}'])
def test_a_request_of_a_batch_is_word_for_word_what_goes_out_alone(name: str, schema: str) -> None:
    request = Request(
        name, "Be brief.", "Hello <|im_start|>?", images=(RequestImage("image/png", b"PNG"),), temperature=0.3,
        max_output_tokens=500, context="Known before.\n", schema=schema, plain_system="In tags.",
    )  # fmt: skip
    with openai_server("Hello.") as server:
        ProviderBackend(config_of(name, server)).send(request)
        parcel = BatchBackend(config_of(name, server)).encode([request])
    alone = {key: value for key, value in server.requests[0].body.items() if key != "stream"}
    assert json.loads(parcel.requests[0].body) == json.loads(json.dumps(alone).replace("mimeType", "mime_type"))
    assert ("word" in str(alone)) == bool(schema)
    assert parcel.requests[0].custom_id == request.key
    assert len(server.requests) == 1


def test_answers_are_taken_in_once_they_are_there(model: str, server: BatchServer) -> None:
    batching = batching_of(model, server)
    assert batching.take_in() is None
    todo = asked(model, "one", "two hunter2")
    sent = batching.send(todo)
    assert [row["state"] for row in ledger()] == ["reserved"] * 2
    out = batching.take_in()
    assert isinstance(out, StillOut) and out.batch.name == sent.name
    server.end()
    taken = batching.take_in()
    assert isinstance(taken, TakenIn)
    assert (taken.answered, taken.cost.input_tokens, taken.cost.output_tokens) == (2, 24, 6)
    assert not taken.later and not taken.refused
    rows = ledger()
    assert {row["state"] for row in rows} == {"done"} and {row["for_day"] for row in rows} == {DAY}
    half = cost_of(ModelConfig(model), 12, 3)
    assert half and [row["cost_usd"] for row in rows] == [pytest.approx(half / 2)] * 2
    client = client_of(model, server)
    assert [client.complete(one.request, DAY).text for one in todo] == ["You said one.", "You said two ***."]
    assert batching.take_in() is None
    assert server.requests == []
    assert server.files == {}  # nothing that was said is left at the provider
    assert server.batches == {} or model.startswith("openai")


def test_what_is_out_in_a_batch_is_not_asked_alone(model: str, server: BatchServer) -> None:
    batching, (one, other) = batching_of(model, server), asked(model, "one", "other")
    batching.send([one])
    client = client_of(model, server)
    with pytest.raises(InBatchError, match="`memory admin batch` collects its answers"):
        client.complete(one.request, DAY)
    assert server.requests == []
    server.script = "Answered."
    assert client.complete(other.request, DAY).text == "Answered."


def test_a_request_that_fails_is_told_and_the_others_are_kept(model: str, server: BatchServer) -> None:
    batching = batching_of(model, server)
    todo = asked(model, "one", "refuse", "busy", "late")
    batching.send(todo)
    server.end()
    taken = batching.take_in()
    assert isinstance(taken, TakenIn) and taken.answered == 1
    assert taken.later.total() == 2 and any("expired" in reason for reason in taken.later)
    [(reason, count)] = taken.refused.items()
    assert count == 1 and "too long" in reason
    assert read_batch_file(Settings()).refused == {todo[1].request.key: reason}
    assert sorted((row["state"], row["cost_usd"] > 0) for row in ledger()) == [
        ("done", True),
        ("failed", False),
        ("failed", False),
        ("failed", False),
    ]


def test_a_batch_that_fails_as_a_whole_costs_nothing_and_refuses_nothing(server: BatchServer) -> None:
    batching = batching_of(MODELS[0], server)
    batching.send(asked(MODELS[0], "one", "two"))
    server.end(failed="Enqueued token limit reached. hunter2")
    taken = batching.take_in()
    assert isinstance(taken, TakenIn) and taken.failed == "Enqueued token limit reached. ***"
    assert read_batch_file(Settings()).refused == {}
    assert {(row["state"], row["cost_usd"], row["input_tokens"]) for row in ledger()} == {("failed", 0.0, 0)}
    assert batching.take_in() is None


def test_a_batch_whose_id_was_lost_is_found_and_no_other_is_taken_for_it(model: str, server: BatchServer) -> None:
    batching = batching_of(model, server)
    backend = BatchBackend(config_of(model, server))
    backend.submit(backend.encode([one.request for one in asked(model, "somebody else's", "and more")]))
    todo = asked(model, "one", "two")
    ours = batching.send(todo).name
    lose_the_id()
    out = batching.take_in()
    assert isinstance(out, StillOut)
    if model.startswith("anthropic"):  # it does not say what is in a batch before that has ended
        assert (out.batch.name, set(out.unclear)) == ("without a known id", {"msgbatch_1", "msgbatch_2"})
    else:
        assert (out.batch.name, out.unclear) == (ours, [])
    server.end()
    taken = batching.take_in()
    assert isinstance(taken, TakenIn) and taken.batch.name == ours and taken.answered == 2
    assert len(server.lines) == 2  # nothing was sent once more


def test_a_batch_that_never_went_out_is_sent_again(model: str, server: BatchServer) -> None:
    batching = batching_of(model, server)
    server.refusal = Fail(500, "out of order")
    todo = asked(model, "one")
    with pytest.raises(TransientError, match=r"out of order\. It is unknown whether the batch was accepted"):
        batching.send(todo)
    assert read_batch_file(Settings()).open
    server.refusal = None
    assert batching.take_in() is None
    assert [row["error"] for row in ledger()] == ["it was never sent"]
    assert batching.send(todo).handle
    assert len(server.batches) == 1


@pytest.mark.parametrize(
    ("status", "expected"), [(400, RequestRefusedError), (401, ModelMisconfiguredError), (404, ModelMisconfiguredError)]
)
def test_a_batch_that_is_refused_was_not_sent(
    model: str, server: BatchServer, status: int, expected: type[Exception]
) -> None:
    batching = batching_of(model, server)
    server.refusal = Fail(status, "no")
    with pytest.raises(expected):
        batching.send(asked(model, "one"))
    assert read_batch_file(Settings()).open is None
    assert [(row["state"], row["cost_usd"]) for row in ledger()] == [("failed", 0.0)]
    assert server.files == {}


def test_no_more_goes_out_than_the_budget_has_room_for(model: str, server: BatchServer) -> None:
    one = asked(model, "one")[0].request
    worst = Client(config_of(model, server, in_batch=True), Workspace.open(Settings())).at_most(one).cost_usd
    assert worst
    batching = batching_of(model, server, daily_budget_usd=2.5 * worst)
    chosen = batching.choose(iter(asked(model, "one", "two", "six", "ten")))
    assert len(chosen.asked) == 2 and not chosen.is_all
    assert chosen.at_most.cost_usd == pytest.approx(2 * worst)
    sent = batching.send(asked(model, "one", "two", "six"))
    assert len(sent.requests) == len(server.lines[sent.name]) == 2
    with pytest.raises(BudgetReachedError, match="is used up"):
        batching.choose(iter(asked(model, "more")))
    with pytest.raises(BudgetReachedError, match="One call may take"):
        batching_of(model, server, daily_budget_usd=0.5 * worst).choose(iter(asked(model, "one")))


def test_a_batch_that_is_ended_early_gives_what_was_done(server: BatchServer) -> None:
    batching = batching_of(MODELS[0], server)
    assert batching.cancel() is None
    sent = batching.send(asked(MODELS[0], "one"))
    batching.cancel()
    assert server.batches[sent.name]["status"] == "cancelling"
    assert isinstance(batching.take_in(), StillOut)
    server.batches[sent.name]["status"] = "cancelled"
    taken = batching.take_in()
    assert isinstance(taken, TakenIn) and (taken.answered, taken.later.total()) == (0, 1)
    assert any("canceled" in reason for reason in taken.later)


@pytest.mark.parametrize("name", ["ollama:qwen3:8b", "openai:gpt-4o-mini", "openai-chat:gpt-4o-mini", "claude -p"])
def test_who_has_no_batches_is_told_who_has(name: str, server: BatchServer) -> None:
    with pytest.raises(ModelMisconfiguredError, match=r"only openai:, anthropic: and google: have batches"):
        batching_of(name, server).choose(iter(asked(name, "one")))


def test_a_key_that_is_missing_is_named(server: BatchServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(ModelMisconfiguredError, match="ANTHROPIC_API_KEY"):
        batching_of(MODELS[1], server).choose(iter(asked(MODELS[1], "one")))


def test_a_damaged_file_is_named_and_nothing_is_asked(server: BatchServer) -> None:
    batching_of(MODELS[0], server).send(asked(MODELS[0], "one"))
    batch_path(Settings()).write_text('{"open": {"model"')
    with pytest.raises(DamagedBatchFileError, match=r"batch\.json cannot be read"):
        client_of(MODELS[0], server).complete(asked(MODELS[0], "one")[0].request, DAY)
    assert server.requests == []


def test_the_price_of_a_batch_is_half_where_the_settings_give_it() -> None:
    config = ModelConfig("openai:of-my-own", price=(1.0, 2.0))
    assert cost_of(config, 1_000_000, 1_000_000) == 3.0
    assert cost_of(ModelConfig("openai:of-my-own", price=(1.0, 2.0), in_batch=True), 1_000_000, 1_000_000) == 1.5


def lose_the_id() -> None:
    """As if the process had been killed before it could write it down."""
    path = batch_path(Settings())
    content = json.loads(path.read_text())
    assert content["open"].pop("handle")
    path.write_text(json.dumps(content))
    assert datetime.fromisoformat(content["open"]["sent_at"]) > datetime.now(UTC) - timedelta(hours=1)


def test_what_is_out_in_tags_is_not_asked_with_a_schema(model: str, server: BatchServer) -> None:
    """As when the program was updated while a batch was out."""
    request = Request(model, "As JSON.", "one", schema='{"type": "object"}', plain_system="Be brief.")
    assert request.forms[-1] == asked(model, "one")[0].request
    batching_of(model, server).send(asked(model, "one"))
    heard = len(server.requests)
    with pytest.raises(InBatchError):
        client_of(model, server).complete(request, DAY)
    assert len(server.requests) == heard
