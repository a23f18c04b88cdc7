"""What `memory setup` finds on a machine: agents and whether they are logged in, keys, servers on loopback."""

from __future__ import annotations

import socket
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.llm import found
from memory_pipeline.llm.agents import AGENTS, BY_NAME, Agent
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.found import PROVIDERS, Choice, Provider, Server, choices, loaded_context
from memory_pipeline.llm.ledger import cost_of
from memory_pipeline.settings.model_names import PROVIDERS as KNOWN
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.llm.loopback import serving
from memory_pipeline_tests.llm.machine import emptied, program

SECRET = "sk-secret-0123456789"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(found, "SECONDS", 60.0)  # a busy machine may take longer to answer than a user would wait
    return emptied(tmp_path, monkeypatch)


def only() -> Choice:
    (choice,) = choices()
    return choice


def test_on_a_machine_without_anything_there_is_nothing(folder: Path) -> None:
    assert choices() == []


# --- agents ---


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_an_agent_is_found_and_what_logs_it_in_is_told(
    agent: Agent, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = folder / "started"
    program(folder, agent.name, f"open({str(started)!r}, 'w')")
    found_one = only()
    assert (found_one.name, found_one.kind, found_one.model) == (agent.name, "agent", agent.command)
    assert found_one.missing == f"no login found; {agent.log_in}"

    for name in agent.files:
        path = agent.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")  # what some leave behind when somebody has logged out
        assert only().missing
        path.write_text(f'{{"key": "{SECRET}"}}')
        assert only().missing == "" and only().evidence.endswith(f"{Path(name).name} is there")
        assert SECRET not in repr(choices())
        path.unlink()
    for name in agent.variables:
        monkeypatch.setenv(name, SECRET)
        assert f"{name} is set" in repr(choices()) and SECRET not in repr(choices())
        assert [choice.missing for choice in choices() if choice.kind == "agent"] == [""]
        monkeypatch.setenv(name, "  ")
    assert only().missing
    assert not started.exists()


def test_a_login_in_the_key_chain_of_a_mac_is_told_by_the_account(folder: Path) -> None:
    program(folder, "claude")
    state = Path.home() / ".claude.json"
    state.write_text('{"numStartups": 3}')
    assert only().missing
    state.write_text('{"oauthAccount": {"emailAddress": "mira@example.com"}}')
    assert (only().evidence, only().missing) == ("on PATH, logged in", "")


def test_the_folder_that_a_variable_names_counts(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(folder, "codex")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "auth.json").write_text('{"tokens": {}}')
    assert only().missing
    monkeypatch.setenv("CODEX_HOME", str(elsewhere))
    assert only().evidence == f"on PATH, {elsewhere}/auth.json is there"


def test_a_file_that_is_no_program_is_no_agent(folder: Path) -> None:
    program(folder, "codex").chmod(0o644)
    (folder / "pi").mkdir()
    assert choices() == []


def test_what_can_answer_now_comes_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(folder, "codex")
    monkeypatch.setenv("DEEPSEEK_API_KEY", SECRET)
    assert [choice.name for choice in choices()] == ["deepseek:deepseek-chat", "codex"]


# --- keys ---


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.name)
def test_the_model_that_is_proposed_for_a_key_is_known_and_priced(
    provider: Provider, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is the one that the library reads."""
    from pydantic_ai.models import infer_model

    for variable in provider.variables:
        monkeypatch.setenv(variable, SECRET)
        choice = only()
        assert (choice.name, choice.kind, choice.evidence) == (choice.model, "key", f"{variable} is set")
        assert provider.name in KNOWN and SECRET not in repr(choice)
        cost = cost_of(ModelConfig(choice.model), 1_000_000, 1_000_000)
        assert cost is not None and 0 < cost < 12
        if provider.module and find_spec(provider.module) is None:
            assert choice.missing == f'`pip install "pydantic-ai-slim[{provider.name}]"` first'
        else:
            assert choice.missing == "" and infer_model(choice.model).model_name == provider.model
        monkeypatch.delenv(variable)


def test_a_key_that_goes_to_another_server_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://proxy.example/v1")
    assert only().evidence == "OPENAI_API_KEY is set, and OPENAI_BASE_URL leads to another server than OpenAI's"


def test_without_the_extra_it_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setattr(found, "is_installed", lambda extra: False)
    assert only().missing == "`pip install 'memory-pipeline[models]'` first"


# --- servers ---

TAGS = {"models": [{"name": "qwen3:8b", "size": 5}, {"name": "nomic-embed-text:latest"}, {"name": "llama3.2:latest"}]}
VLLM = {"object": "list", "data": [{"id": "Qwen/Qwen3-8B", "max_model_len": 32_768}]}
LLAMA_CPP = {"data": [{"id": "gpt-oss-20b.gguf", "meta": {"n_ctx_train": 131_072, "n_ctx": 16_384}}]}
STUDIO = {"data": [{"id": "google/gemma-3-12b"}, {"id": "text-embedding-nomic-embed-text-v1.5"}]}


def at(monkeypatch: pytest.MonkeyPatch, port: int, path: str = "/v1/models") -> list[Choice]:
    monkeypatch.setattr(found, "SERVERS", (Server("Somebody", port, path),))
    return choices()


def test_the_models_of_ollama(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"/api/tags": TAGS}) as port:
        listed = at(monkeypatch, port, "/api/tags")
        assert [choice.model for choice in listed] == ["ollama:qwen3:8b", "ollama:llama3.2:latest"]
        assert {choice.base_url for choice in listed} == {f"http://127.0.0.1:{port}/v1"}
        assert {choice.evidence for choice in listed} == {f"Somebody at 127.0.0.1:{port}"}
        config = ModelConfig(listed[0].model, listed[0].base_url)
        assert cost_of(config, 1_000, 1_000) == 0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (VLLM, [("openai:Qwen/Qwen3-8B", 32_768)]),
        (LLAMA_CPP, [("openai:gpt-oss-20b.gguf", 16_384)]),
        (STUDIO, [("openai:google/gemma-3-12b", None)]),
    ],
    ids=["vLLM", "llama.cpp", "LM Studio"],
)
def test_the_models_of_servers_that_speak_openais_protocol(
    answer: Any, expected: list[tuple[str, int | None]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving({"/v1/models": answer}) as port:
        listed = at(monkeypatch, port)
        assert [(choice.model, choice.context) for choice in listed] == expected
        assert {(choice.base_url, choice.price) for choice in listed} == {(f"http://127.0.0.1:{port}/v1", "0/0")}


@pytest.mark.parametrize(
    "page",
    [
        b"<!doctype html><title>An app</title>",
        b'{"data": [{"id": "cut',
        [],
        {"data": {"id": "x"}},
        {"data": ["x", {"id": 3}, {"id": ""}, {"name": "x"}]},
        {"data": [{"id": "sh -c evil"}, {"id": "a\nb"}, {"id": "x" * 201}]},
        b"[" * 1_100_000,
    ],
    ids=["html", "cut", "list", "object", "entries", "names", "deep"],
)
def test_what_is_no_server_of_models_is_none(page: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name with a space in it would be run as a command."""
    with serving({"/v1/models": page}) as port:
        assert at(monkeypatch, port) == []


def test_a_redirect_is_not_followed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        serving({"/v1/models": VLLM}) as other,
        serving({"/v1/models": {}}, {"Location": f"http://127.0.0.1:{other}/v1/models"}, 302) as port,
    ):
        assert at(monkeypatch, port) == [] and len(at(monkeypatch, other)) == 1


def test_a_proxy_of_the_machine_is_not_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with serving({"/v1/models": VLLM}) as port:
        assert len(at(monkeypatch, port)) == 1


def test_a_port_where_nobody_answers_or_somebody_says_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found, "SECONDS", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        port = silent.getsockname()[1]
        assert at(monkeypatch, port) == []
        silent.listen()
        assert at(monkeypatch, port) == []


def test_no_more_than_a_few_models_of_one_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving({"/v1/models": {"data": [{"id": f"model-{n}"} for n in range(40)]}}) as port:
        assert [choice.name for choice in at(monkeypatch, port)] == [f"openai:model-{n}" for n in range(6)]


@each(
    ("page", "expected"),
    [
        ({"models": [{"name": "other", "context_length": 1}, {"name": "qwen3:8b", "context_length": 4096}]}, 4096),
        ({"models": [{"name": "qwen3:8b"}]}, None),
        ({"models": []}, None),
        ({"models": "none"}, None),
        (None, None),
    ],
)
def test_the_context_with_which_ollama_has_run_a_model(page: Any, expected: int | None) -> None:
    with serving({"/api/ps": page}) as port:
        choice = Choice("ollama:qwen3:8b", "server", "", "ollama:qwen3:8b", port=port)
        assert loaded_context(choice) == expected
        assert loaded_context(Choice("openai:qwen3:8b", "server", "", "openai:qwen3:8b", port=port)) is None
    assert loaded_context(choice) is None


def test_the_commands_are_those_of_the_agents() -> None:
    assert set(BY_NAME) == {"claude", "codex", "gemini", "opencode", "pi", "llm"}
