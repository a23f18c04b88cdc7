"""The settings of the programs that this one comes from, in their own forms: each works, or is refused with what to do.

Variables of a shell, and pi's memory.json.
"""

import json
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.settings import SettingError, load_settings
from memory_pipeline.settings.memory_json import path as memory_json_path
from memory_pipeline_tests.cases import each

VARIABLES = {
    ("OBSERVER_MODEL", "anthropic/claude-haiku-4-5"): ("observer.model", "anthropic:claude-haiku-4-5"),
    ("REFLECTOR_MODEL", "anthropic/claude-sonnet-4-5"): ("reflector.model", "anthropic:claude-sonnet-4-5"),
    ("OBSERVER_MODEL", 'pi -p --no-session --model "anthropic/claude-haiku-4-5"'): (
        "observer.model",
        'pi -p --no-session --model "anthropic/claude-haiku-4-5"',
    ),
    ("EMBEDDING_MODEL", "nomic-ai/nomic-embed-text-v1.5"): ("embedding_model", "nomic-ai/nomic-embed-text-v1.5"),
    ("QDRANT_URL", "http://localhost:6333"): ("qdrant.url", "http://localhost:6333"),
    ("PI_MEMORY", "1"): ("observer.model", None),  # switches pi's own extension on, and nothing here
}
OBSERVER = {"model": "gemini-2.5-flash", "provider": "google", "temperature": 0.3, "maxOutputTokens": 100_000}
REFLECTOR = OBSERVER | {"temperature": 0, "observationTokenThreshold": 40_000}
OLLAMA = {"provider": "ollama", "model": "qwen2.5:7b"}
FILES: list[tuple[Any, str, Any]] = [
    ({"$schema": "…", "enabled": True, "observer": OBSERVER}, "observer.model", "google:gemini-2.5-flash"),
    ({"observer": OBSERVER}, "observer.temperature", 0.3),
    ({"observer": OBSERVER}, "observer.max_output_tokens", 100_000),
    ({"reflector": REFLECTOR}, "reflector.model", "google:gemini-2.5-flash"),
    ({"reflector": REFLECTOR}, "reflector.temperature", 0),
    ({"reflector": REFLECTOR | {"observationTokenThreshold": 9000}}, "reflect_early_tokens", 9000),
    ({"enabled": False, "observer": OBSERVER}, "observer.model", None),
    ({"observer": OLLAMA}, "observer.model", "ollama:qwen2.5:7b"),
    ({"observer": {"model": "anthropic/claude-haiku-4-5"}}, "observer.model", "anthropic:claude-haiku-4-5"),
    (
        {"observer": {"provider": "openrouter", "model": "anthropic/claude-haiku-4.5"}},
        "observer.model",
        "openrouter:anthropic/claude-haiku-4.5",
    ),
]
REFUSED_FILES: list[tuple[Any, str]] = [
    ({"observer": OBSERVER | {"messageTokenThreshold": 30_000}}, "set MEMORY_IDLE_MINUTES"),
    ({"observer": {"model": "meta-llama/llama-3"}}, "openrouter:meta-llama/llama-3"),
    (
        {"observer": {"model": "openai/gpt-oss-20b", "baseUrl": "http://localhost:1234/v1"}},
        "or openai:openai/gpt-oss-20b",
    ),
]


@each(("name", "value"), sorted(VARIABLES))
def test_a_variable(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    key, read = VARIABLES[name, value]
    assert attrgetter(key)(load_settings()) == read


def test_the_workspace_in_the_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_WORKSPACE", "~/.joelclaw/workspace")
    assert load_settings().workspace == Path.home() / ".joelclaw/workspace"


def _write(content: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = memory_json_path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")
    return path


@each(("content", "key", "read"), FILES)
def test_memory_json(content: Any, key: str, read: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _write(content, tmp_path, monkeypatch)
    assert attrgetter(key)(load_settings()) == read


@each(("content", "what_to_do"), REFUSED_FILES)
def test_what_memory_json_may_not_say(
    content: Any, what_to_do: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write(content, tmp_path, monkeypatch)
    with pytest.raises(SettingError) as caught:
        load_settings()
    assert f"{caught.value}".startswith(str(path)) and what_to_do in f"{caught.value}"
