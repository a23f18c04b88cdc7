"""`memory why`: from any line that was condensed, through all of its levels, down to the words that were said."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer

from memory_pipeline.cli.why import why
from memory_pipeline.distillation.stage import DistillationStage
from memory_pipeline.lake import Lake
from memory_pipeline.schemas import TABLES
from memory_pipeline.settings import load_settings
from memory_pipeline.stage import bring_up_to_date
from memory_pipeline_tests.rows import at, observation, observation_id, put, reflection, say, window_key

MONDAY, SUNDAY, MONTH_END = date(2025, 3, 3), date(2025, 3, 9), date(2025, 3, 31)
RULE = "The depot in Leipzig is asked at most once a minute, because it blocks us for a day otherwise."
DONE = "Done: the depot's client waits a minute between two requests, and its tests pass."


@pytest.fixture
def lake() -> Lake:
    """A day with a rule, and what it was distilled and reflected to."""
    settings = load_settings()
    lake = Lake(settings.lake_dir)
    said = say(lake, "s1", f"user: {RULE}", "tool: exit 0", f"assistant: {DONE}", day=MONDAY)
    narrative = {"narrative": f"Asked: {RULE} Ended with: {DONE}", "position": 0, "segment_id": "s-s1"}
    bounds = {"first_message_id": said[0]["message_id"], "last_message_id": said[-1]["message_id"]}
    place = {"day": MONDAY, "dedupe_key": window_key("s1", MONDAY), "session_id": "s1"}
    put(lake, "segments", place | narrative | bounds)
    put(lake, "observations", observation(RULE, day=MONDAY))
    stage = DistillationStage(settings, lake, date(2025, 5, 1))
    for day in (MONDAY, SUNDAY, MONTH_END):
        bring_up_to_date(stage, lake, day)
    return lake


def told(identifier: str, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> str:
    why(identifier, as_json)
    return capsys.readouterr().out


def pooled(lake: Lake, **other: Any) -> None:
    row = reflection(RULE, day=MONDAY)
    put(lake, "reflections", row)
    seen = {"first_seen": at(day=MONDAY), "last_seen": at(day=MONDAY), "reflected_at": at(day=SUNDAY)}
    made = lake.read("pool_reflections").to_dicts()
    line = {"pool_id": "g-1", "text": RULE, "sources": [row["reflection_id"]], "section": "Hard Rules"}
    made.append(seen | line | other)
    lake.replace_all("pool_reflections", pl.DataFrame(made, schema=TABLES["pool_reflections"].columns))


@pytest.mark.parametrize("table", ["day_distillations", "week_distillations", "month_distillations"])
def test_every_line_of_every_level_leads_to_words_and_their_file(
    lake: Lake, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = lake.read(table).to_dicts()
    assert rows
    for row in rows:
        out = told(row["distillation_id"], capsys)
        assert f"“{RULE}”" in out and "/sessions/s1.jsonl:1" in out
        assert "Nothing that was said" not in out
        assert (f"“{DONE}”" in out and "/sessions/s1.jsonl:3" in out) is (row["kind"] == "narrative")


def test_a_pool_reflection_leads_to_words_also_when_its_reflections_were_made_anew(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    pooled(lake)
    assert f"“{RULE}”" in told("g-1", capsys)
    pooled(lake, pool_id="g-2", observations=[observation_id(RULE, MONDAY)], sources=["r-of-before"])
    assert f"“{RULE}”" in told("g-2", capsys)


def test_a_proposal_without_evidence_of_its_own_goes_through_its_reflection(
    lake: Lake, capsys: pytest.CaptureFixture[str]
) -> None:
    put(lake, "reflections", row := reflection(RULE, day=MONDAY))
    line = {"day": MONDAY, "proposal_id": "p-20250303-001", "text": RULE, "sources": [row["reflection_id"]]}
    put(lake, "proposals", line | {"section": "Hard Rules", "priority": "high", "support": 1})
    assert told("p-20250303-001", capsys).count(f"“{RULE}”") == 1


def test_a_segment_shows_what_was_asked_and_answered(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    out = told("s-s1", capsys)
    assert f"“{RULE}”" in out and f"“{DONE}”" in out and "exit 0" not in out


def test_what_is_not_there_is_told(lake: Lake, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        told("w-nothing", capsys)


def test_words_that_are_gone_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(load_settings().lake_dir)
    pooled(lake)
    assert "Nothing that was said carries it" in told("g-1", capsys)
