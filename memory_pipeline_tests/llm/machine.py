"""A machine on which no model is to be found, until a test puts one there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from memory_pipeline.llm import found
from memory_pipeline.llm.agents import AGENTS
from memory_pipeline.llm.found import PROVIDERS

VARIABLES = {name for agent in AGENTS for name in (*agent.variables, agent.home[0])}
VARIABLES |= {name for provider in PROVIDERS for name in provider.variables} | {"OPENAI_BASE_URL", "OLLAMA_BASE_URL"}


def emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one folder on PATH, with nothing in it; HOME is the tests' own, which is empty."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(found, "SERVERS", ())
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str, code: str = "") -> Path:
    """A program of this name, in Python."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{code}\n")
    path.chmod(0o755)
    return path
