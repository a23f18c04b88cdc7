"""Models by the names that people have for them: with a colon, with a slash, and where a slash could mean either."""

from contextlib import suppress

import pytest

from memory_pipeline.settings import SettingError, Settings, check_file, load_settings
from memory_pipeline.settings.model_names import PROVIDERS, model_name
from memory_pipeline_tests.cases import each

NAMES = {
    "anthropic/claude-haiku-4-5": "anthropic:claude-haiku-4-5",
    "anthropic:claude-haiku-4-5": "anthropic:claude-haiku-4-5",
    " google/gemini-2.5-flash ": "google:gemini-2.5-flash",
    "ollama/qwen2.5:7b": "ollama:qwen2.5:7b",
    "ollama:qwen2.5:7b": "ollama:qwen2.5:7b",
    "ollama:hf.co/bartowski/Llama:Q4_K_M": "ollama:hf.co/bartowski/Llama:Q4_K_M",
    "openrouter/anthropic/claude-haiku-4.5": "openrouter:anthropic/claude-haiku-4.5",
    "openrouter:meta-llama/llama-3:free": "openrouter:meta-llama/llama-3:free",
    "openai:meta-llama/Llama-3.1-8B": "openai:meta-llama/Llama-3.1-8B",
    "gateway/openai:gpt-5-mini": "gateway/openai:gpt-5-mini",
    "pi -p --model anthropic/claude-haiku-4-5": "pi -p --model anthropic/claude-haiku-4-5",
    "/usr/bin/ask --with a/b": "/usr/bin/ask --with a/b",
}


@each("written", sorted(NAMES))
def test_the_name_of_a_model(written: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert model_name(written) == NAMES[written]
    for variable in ("OBSERVER_MODEL", "REFLECTOR_MODEL", "OBSERVER_FALLBACK_MODEL"):
        monkeypatch.setenv(variable, written)
    settings = load_settings()
    assert {settings.observer.model, settings.reflector.model, settings.observer.fallback_model} == {NAMES[written]}


@each(
    ("written", "readings"),
    [
        ("meta-llama/Llama-3.1-8B", ("openrouter:meta-llama/Llama-3.1-8B", "openai:meta-llama/Llama-3.1-8B")),
        ("meta-llama/llama-3:free", ("openrouter:meta-llama/llama-3:free", "openai:meta-llama/llama-3:free")),
        ("anthropc/claude-haiku-4-5", ("'anthropc' is not a known provider", "provider/model")),
        ("claude-haiku-4-5", ("provider:model", "a command with its arguments")),
        ("/usr/bin/ask", ("a command with its arguments",)),
        ("anthropic/", ("provider/model",)),
    ],
)
def test_what_no_model_is_called(written: str, readings: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLECTOR_MODEL", written)
    with pytest.raises(SettingError) as caught:
        load_settings()
    assert f"{caught.value}".startswith(f"REFLECTOR_MODEL={written!r}: ")
    assert all(reading in f"{caught.value}" for reading in readings)


@each("variable", ["OBSERVER_BASE_URL", "OPENAI_BASE_URL"])
def test_with_a_server_of_ones_own_a_slash_is_ambiguous(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "http://localhost:1234/v1")
    monkeypatch.setenv("OBSERVER_MODEL", "openai/gpt-oss-20b")
    with pytest.raises(SettingError) as caught:
        load_settings()
    assert "write openai:gpt-oss-20b for" in f"{caught.value}" and "or openai:openai/gpt-oss-20b" in f"{caught.value}"
    for written in ("openai:gpt-oss-20b", "openai:openai/gpt-oss-20b"):
        monkeypatch.setenv("OBSERVER_MODEL", written)
        assert load_settings().observer.model == written
    monkeypatch.setenv("OBSERVER_MODEL", "anthropic/claude-haiku-4-5")
    if variable == "OPENAI_BASE_URL":  # which says nothing of Anthropic
        assert load_settings().observer.model == "anthropic:claude-haiku-4-5"
        return
    with pytest.raises(SettingError, match=r"anthropic:claude-haiku-4-5 for .*openai:anthropic/claude-haiku-4-5 where"):
        load_settings()


def test_settings_toml_has_the_same_names() -> None:
    workspace = Settings().workspace
    assert check_file(workspace, '[observer]\nmodel = "google/gemini-2.5-flash"').observer.model == (
        "google:gemini-2.5-flash"
    )
    with pytest.raises(SettingError, match=r"settings\.toml:2: observer\.model='a/b': 'a' is not a known provider"):
        check_file(workspace, '[observer]\nmodel = "a/b"')
    with pytest.raises(SettingError, match="can mean two models"):
        check_file(workspace, '[observer]\nmodel = "openai/b"\nbase_url = "http://localhost/v1"')


def test_a_second_model_needs_a_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OBSERVER_FALLBACK_MODEL", "openai:gpt-5-mini")
    with pytest.raises(SettingError, match="OBSERVER_FALLBACK_MODEL='openai:gpt-5-mini': expected a first model"):
        load_settings()


@pytest.mark.slow
@each("provider", sorted(PROVIDERS))
def test_the_library_knows_every_provider(provider: str) -> None:
    from pydantic_ai.providers import infer_provider_class

    with suppress(ImportError):  # of a package that is not installed
        infer_provider_class(provider)
