"""What the checks say of a day's reflections: above all when a model's lines are not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import polars as pl
import pytest

from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.reflections.evaluation import judge_silent_zero
from memory_pipeline.settings import load_settings
from memory_pipeline.stages import INCOMPLETE
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.llm.openai_server import Fail, Script, openai_server
from memory_pipeline_tests.loaded import REFLECTION_CHECKS, reflect
from memory_pipeline_tests.rows import DAY, MissingEncoder, at, changed, observation, put, reflection, workspace

UV = "Use uv for all Python of parcels."
ANSWER = f"* 🔴 Hard Rules | rule [o1] {UV}"


@each(
    ("observed", "passed"),
    [
        ({}, False),
        ({"priority": "medium"}, True),  # it may be old, or said again
        ({"kind": "question"}, True),
        ({"flags": ["ungrounded"]}, True),
    ],
)
def test_a_high_without_a_line_is_red(tmp_path: Path, observed: dict[str, Any], passed: bool) -> None:
    settings, lake = workspace(tmp_path)
    put(lake, "observations", observation(UV, **observed))
    assert judge_silent_zero(Workspace(settings, lake), DAY).passed is passed
    put(lake, "reflections", reflection(UV))
    assert judge_silent_zero(Workspace(settings, lake), DAY).passed


def test_a_day_that_waits_says_what_why_and_what_to_do(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path, reflector_model="openai:scripted")
    rows = pl.DataFrame([reflection(UV)], schema_overrides=TABLES["reflections"].columns)
    lake.replace("reflections", rows, [DAY], {DAY: INCOMPLETE})
    (told,) = judge_silent_zero(Workspace(settings, lake), DAY).offenders
    assert "MEMORY_DAILY_BUDGET_USD" in told and "1 earlier or extractive lines" in told
    call = {"day": DAY, "for_day": DAY, "stage": "reflections", "state": "failed", "error": "gone fishing"}
    put(lake, "ledger", call | {"call_id": "1", "asked_at": at("10:00"), "cached": False})
    put(lake, "ledger", call | {"call_id": "2", "asked_at": at("11:00"), "stage": "observations", "state": "done"})
    (told,) = judge_silent_zero(Workspace(settings, lake), DAY).offenders
    assert "gone fishing" in told and f"memory run --from {DAY} --to {DAY}" in told


def test_quotes_in_place_of_a_models_lines_are_told(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    put(lake, "reflections", reflection(UV))
    assert judge_silent_zero(Workspace(settings, lake), DAY).passed
    asked = changed(settings, reflector_model="openai:scripted")
    (told,) = judge_silent_zero(Workspace(asked, lake), DAY).offenders
    assert "1 lines are the extractive reflector's" in told


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    monkeypatch.setattr("memory_pipeline.reflections.stage.encoder_of", lambda name: MissingEncoder())
    lake = Lake(load_settings().lake_dir)
    put(lake, "observations", observation(UV, clock="08:00"))
    yield lake


@pytest.mark.parametrize(
    ("answer", "budget", "told"),
    [
        (ANSWER, "1.0", None),
        (ANSWER, "0", "did not allow the next call"),
        (Fail(401, "no such key"), "1.0", None),  # the step itself is red, and says it
        ("nothing", "1.0", "could not be used"),
    ],
)
@pytest.mark.usefixtures("lake")
def test_through_dagster(answer: Script, budget: str, told: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    with openai_server(answer) as server:
        settings = {"REFLECTOR_MODEL": "openai:scripted", "REFLECTOR_BASE_URL": server.url, "OPENAI_API_KEY": "sk-test"}
        more = {"MEMORY_MODEL_RETRIES": "0", "MEMORY_DAILY_BUDGET_USD": budget, "REFLECTOR_PRICE": "1/1"}
        for name, value in (settings | more).items():
            monkeypatch.setenv(name, value)
        assets: list[Any] = [reflect, *REFLECTION_CHECKS]
        result = dg.materialize(
            assets, resources={"workspace": WorkspaceResource()}, raise_on_error=False, partition_key=f"{DAY}"
        )
    found = [e for e in result.get_asset_check_evaluations() if e.check_name == "no_silent_zero"]
    if isinstance(answer, Fail):
        assert not result.success and not found
        return
    (evaluation,) = found
    assert evaluation.passed is (told is None)
    assert told is None or told in str(evaluation.metadata["first_offenders"].value)
