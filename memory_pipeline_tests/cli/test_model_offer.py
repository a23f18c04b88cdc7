"""`memory run` asks once at a terminal whether a model of this machine is to be used."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from memory_pipeline.cli import setup
from memory_pipeline.llm.found import Choice
from memory_pipeline.settings import ObserverSettings, Settings

TODAY = date(2026, 11, 28)
CODEX = Choice("codex", "agent", "on PATH, logged in", "codex exec")
BROKEN = Choice("ollama", "server", "answers", "ollama:qwen", missing="pull a model first")


class Asked(list[str]):
    """The questions that were asked, and what was set."""

    chosen: Choice | None = None


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked()
    monkeypatch.setattr(setup, "_is_at_terminal", lambda: True)
    monkeypatch.setattr(setup, "choices", lambda: [CODEX, BROKEN])
    monkeypatch.setattr(setup, "show_choices", lambda settings, offered: made.extend(c.name for c in offered))
    monkeypatch.setattr(setup, "set_up", lambda settings, choice, outlook: setattr(made, "chosen", choice))
    return made


def answer(monkeypatch: pytest.MonkeyPatch, asked: Asked, *words: str) -> None:
    answers = iter(words)

    def prompt(text: str, **_: object) -> str:
        asked.append(text.strip().split("?")[0])
        return next(answers)

    monkeypatch.setattr(setup.typer, "prompt", prompt)


def test_a_number_sets_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Asked) -> None:
    answer(monkeypatch, asked, "9", "1")
    setup.offer_model(Settings(workspace=tmp_path), TODAY)
    assert asked == ["codex", "Use one", "Use one"]  # what cannot answer now is not offered
    assert asked.chosen == CODEX


def test_never_is_never_and_not_now_is_a_month(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Asked) -> None:
    settings = Settings(workspace=tmp_path)
    answer(monkeypatch, asked, "", "never")
    for day in (TODAY, TODAY + timedelta(days=1), TODAY + setup.ASK_AGAIN, TODAY + timedelta(days=400)):
        setup.offer_model(settings, day)
    assert asked == ["codex", "Use one"] * 2
    assert asked.chosen is None


def test_a_script_a_set_model_and_a_machine_without_one_are_asked_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Asked
) -> None:
    setup.offer_model(Settings(workspace=tmp_path, observer=ObserverSettings(model="command:x {prompt}")), TODAY)
    monkeypatch.setattr(setup, "choices", lambda: [BROKEN])
    setup.offer_model(Settings(workspace=tmp_path), TODAY)
    monkeypatch.setattr(setup, "_is_at_terminal", lambda: False)
    monkeypatch.setattr(setup, "choices", lambda: [CODEX])
    setup.offer_model(Settings(workspace=tmp_path), TODAY)
    assert asked == []
