"""Tokens may be estimated as characters / 4; days made in the other way are then out of date."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_pipeline.planning import Stages
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.settings import SettingError, load_settings
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import DAY


@each(("text", "expected"), [("", 0), ("abc", 1), ("abcd", 1), ("abcde", 2), ("始终使用", 1)])
def test_four_characters_are_a_token(monkeypatch: pytest.MonkeyPatch, text: str, expected: int) -> None:
    monkeypatch.setenv("MEMORY_TOKEN_ESTIMATE", "chars4")
    load_settings()
    assert estimate(text) == estimate(text, tool=True) == expected


def test_by_default_the_script_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_TOKEN_ESTIMATE", "chars4")
    load_settings()
    monkeypatch.delenv("MEMORY_TOKEN_ESTIMATE")
    load_settings()
    assert estimate("始终使用") > 1


def test_another_way_makes_every_day_out_of_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_WORKSPACE", f"{tmp_path}")
    keys = []
    for way in ("script", "chars4", "script"):
        monkeypatch.setenv("MEMORY_TOKEN_ESTIMATE", way)
        settings = load_settings()
        workspace = Workspace.open(settings)
        keys.append(Stages.from_settings(settings, Catalogue(workspace.lake, settings)).fingerprint(DAY))
    assert keys[0] == keys[2] != keys[1]


def test_no_third_way_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_TOKEN_ESTIMATE", "words")
    with pytest.raises(SettingError, match="MEMORY_TOKEN_ESTIMATE='words'"):
        load_settings()
