"""Requests and answers that fit into a model's context: with a small one, windows and reflections come in parts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memory_pipeline.llm.config import (
    messages_budget,
    observations_budget,
    observer_model,
    reflector_model,
    token_budget,
)
from memory_pipeline.observations.stage import ObservationsStage, observer_of
from memory_pipeline.reflections.stage import ReflectionsStage, reflector_of
from memory_pipeline.settings import IDENTITY_FILES, Settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.text.tokens import PROSE
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.llm.openai_server import Asked, Fail, Say, openai_server
from memory_pipeline_tests.rows import DAY, MissingEncoder, by_group, observation, put, say, workspace

SMALL = 16_000
LEAST = 8_000
MODELS = {"observer_model": "openai:scripted", "reflector_model": "openai:scripted", "model_retries": 0}


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def taken(asked: Asked) -> int:
    """Tokens of a request with its answer, as the server counts them."""
    limit = asked.body.get("max_completion_tokens") or asked.body["max_tokens"]
    return int((len(asked.system) + len(asked.prompt)) / PROSE) + int(limit)


def small_model(asked: Asked) -> Say | Fail:
    """Answers with what it was shown, word for word, and refuses what does not fit."""
    if taken(asked) > SMALL:
        return Fail(400, f"This model's maximum context length is {SMALL} tokens.", code="context_length_exceeded")
    return answered(asked)


def answered(asked: Asked) -> Say:
    """What it was shown, word for word."""
    if observed := re.findall(r"^(o\d+) \S+ \w+, [^:]+: (.*)$", asked.prompt, re.M):
        return Say("\n".join(f"* 🔴 Patterns | convention [{name}] {text}" for name, text in observed[::2]))
    said = re.findall(r"^\[#(\d+) \d\d:\d\d user\]\n([^\n]{20,200})", asked.prompt, re.M)
    facts = "\n".join(f"* 🟡 decision [#{n}] {words}" for n, words in said)
    return Say(
        f"<observations><segment><narrative>It was said.</narrative><facts>\n{facts}\n</facts></segment></observations>"
    )


def sentence(number: int) -> str:
    return f"The worker w{number}x of carrier c{number}y writes into the bucket b{number}z at night, not before."


def test_a_window_and_a_day_that_are_larger_than_the_model_come_in_parts(tmp_path: Path) -> None:
    with openai_server(small_model) as server:
        urls = {"observer_base_url": server.url, "reflector_base_url": server.url}
        settings, lake = workspace(tmp_path, **MODELS, **urls, effective_context=SMALL, daily_budget_tokens=10**8)
        filler = "It then tells the depot, and the depot tells the van, which is how the parcel knows. " * 10
        turns = [f"{'user' if n % 2 else 'assistant'}: {sentence(n)} {filler}" for n in range(150)]
        say(lake, "s1", *turns)
        assert sum(map(len, turns)) / PROSE > 2 * SMALL
        bring_up_to_date(ObservationsStage.from_workspace(Workspace(settings, lake)), lake, DAY)
        observing = len(server.requests)
        problems = lake.read("segments")["problem"].drop_nulls().to_list()
        assert observing > 4 and problems == [] and max(map(taken, server.requests)) <= SMALL
        assert lake.read("observations").height > 20
        put(lake, "observations", *(observation(sentence(n), clock="10:00") for n in range(1_000)))
        stage = ReflectionsStage.from_workspace(Workspace(settings, lake))
        stage.encoder = MissingEncoder()  # type: ignore[assignment]
        built = bring_up_to_date(stage, lake, DAY)
        assert len(server.requests) > observing + 4 and built and "left_for_later" not in built.notes
        assert max(map(taken, server.requests)) <= SMALL
        assert lake.read("reflections")["reflector"].str.starts_with("openai:scripted").all()


@each("context", [LEAST, 32_000])
def test_reflecting_with_a_memory_of_years_fits_into_a_small_context(context: int, tmp_path: Path) -> None:
    """MEMORY.md and four identity files, each longer than the context."""
    identity = tmp_path / "agents"
    identity.mkdir()
    for name in IDENTITY_FILES:
        (identity / name).write_text("\n".join(f"- {sentence(n)}" for n in range(3_000)))

    def reflecting(asked: Asked) -> Say | Fail:
        return answered(asked) if taken(asked) <= context else Fail(400, "context length exceeded")

    with openai_server(reflecting) as server:
        urls = {"reflector_base_url": server.url, "reflector_model": "openai:scripted", "model_retries": 0}
        more = {"effective_context": context, "daily_budget_tokens": 10**8, "identity_directory": identity}
        settings, lake = workspace(tmp_path / "workspace", **urls, **more)
        settings.memory_file.parent.mkdir(parents=True, exist_ok=True)
        settings.memory_file.write_text("## Patterns\n" + "\n".join(f"- {sentence(n)}" for n in range(3_000)))
        put(lake, "observations", *(observation(f"Carrier c{n} is paid weekly.", clock="10:00") for n in range(300)))
        stage = ReflectionsStage.from_workspace(Workspace(settings, lake))
        stage.encoder = MissingEncoder()  # type: ignore[assignment]
        built = bring_up_to_date(stage, lake, DAY)
    assert built and "left_for_later" not in built.notes
    assert server.requests and max(map(taken, server.requests)) <= context
    assert "MEMORY.md" in server.requests[0].prompt and "You keep the long-term memory" in server.requests[0].system
    assert "observer-instructions" not in server.requests[0].system
    assert lake.read("reflections")["reflector"].str.starts_with("openai:scripted").all()


def test_the_defaults_of_a_large_model_are_those_that_the_settings_name(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path, **MODELS)
    observer, reflector = observer_of(Workspace(settings, lake)), reflector_of(Workspace(settings, lake))
    assert (observer.chunk_tokens, observer.prior_tokens, observer.max_images) == (35_000, 4_000, 8)  # type: ignore[union-attr]
    assert 60_000 < reflector.batch_tokens < 65_000  # type: ignore[union-attr]
    configs = (observer_model(settings), reflector_model(settings))
    assert [config.max_output_tokens for config in configs if config] == [8_000, 8_000]


def test_all_parts_of_a_request_fit_together() -> None:
    for context in (8_000, SMALL, 32_000, 200_000):
        settings = Settings(effective_context=context, **by_group(MODELS))
        for config in (observer_model(settings), reflector_model(settings)):
            assert config
            left = token_budget(settings, answer := config.max_output_tokens, ["observer"])
            shown = messages_budget(settings, answer, ["observer"]) + observations_budget(
                settings, answer, ["observer"]
            )
            assert 0 < shown <= left < context - answer


def test_what_is_set_wins(tmp_path: Path) -> None:
    own = {"chunk_tokens": 30_000, "observer_max_output_tokens": 7_000, "reflector_max_output_tokens": 6_000}
    settings, lake = workspace(tmp_path, **MODELS, **own, effective_context=SMALL)
    assert (
        observer_of(Workspace(settings, lake)).chunk_tokens
        == reflector_of(Workspace(settings, lake)).batch_tokens
        == 30_000
    )  # type: ignore[union-attr]
    configs = (observer_model(settings), reflector_model(settings))
    assert [config.max_output_tokens for config in configs if config] == [7_000, 6_000]
