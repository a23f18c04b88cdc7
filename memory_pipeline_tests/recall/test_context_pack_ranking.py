from __future__ import annotations

import json
import math
from datetime import date
from pathlib import Path

import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.recall.context_pack import RankedLine, ranked_lines
from memory_pipeline.settings import Settings
from memory_pipeline_tests.rows import (
    DAY,
    day_after,
    decision,
    observation,
    observation_id,
    proposal,
    put,
    reflection,
    workspace,
)


@pytest.fixture
def opened(tmp_path: Path) -> tuple[Settings, Lake]:
    return workspace(tmp_path / "ws")


def texts(settings: Settings, lake: Lake, **how: str | None) -> list[str]:
    project = how.pop("project", "kiln")
    return [row.text for row in ranked_lines(settings, lake, project, how.pop("without_session", None))]


def test_the_score_is_priority_times_kind_halved_by_the_half_life() -> None:
    row = RankedLine("o-1", "x", "high", DAY)
    week_before = RankedLine("o-2", "x", "high", day_after(-7))
    assert math.exp(row.score() - week_before.score()) == pytest.approx(2)
    assert math.exp(row.score() - RankedLine("o-3", "x", "medium", DAY).score()) == pytest.approx(1.5)
    assert math.exp(RankedLine("r-1", "x", "high", DAY, 1.3).score() - row.score()) == pytest.approx(1.3)


def test_priority_kind_and_age_decide(opened: tuple[Settings, Lake]) -> None:
    settings, lake = opened
    put(
        lake,
        "observations",
        observation("Medium today.", priority="medium", kind="decision"),
        observation("High today."),
        observation("High long ago.", day=day_after(-14)),
    )
    put(lake, "reflections", reflection("High and condensed.", sources=["o-x"], trust="user"))
    order = ["High and condensed.", "High today.", "Medium today.", "High long ago."]
    assert texts(settings, lake) == order


def test_what_was_cited_is_as_if_it_was_said_then(opened: tuple[Settings, Lake]) -> None:
    settings, lake = opened
    put(
        lake,
        "observations",
        observation("Old.", day=day_after(-30)),
        observation("New."),
        observation("Shown.", day=day_after(-30)),
    )
    assert texts(settings, lake)[0] == "New."
    usage = settings.workspace / "usage"
    usage.mkdir()
    old, shown = observation_id("Old.", day_after(-30)), observation_id("Shown.", day_after(-30))
    use = {"at": "", "kind": "recall", "query": "", "project": None, "shown": [shown, old], "cited": [old]}
    (usage / f"{day_after(5)}.jsonl").write_text(json.dumps(use) + "\n")
    assert texts(settings, lake) == ["Old.", "New.", "Shown."]


def test_what_was_replaced_stays_so_however_often_it_is_cited(opened: tuple[Settings, Lake]) -> None:
    settings, lake = opened
    gone, other = observation_id("With npm."), observation_id("With yarn.")
    old = reflection("With npm.", sources=[gone], trust="user")
    half = reflection("With npm or make.", sources=[gone, "o-make"], trust="user")
    new = reflection("With pnpm.", superseded=[gone], day=day_after(1), trust="user")
    put(lake, "reflections", old, half, new, reflection("Yarn it is.", sources=[other], trust="user"))
    put(lake, "proposals", proposal(1, "Use yarn.", sources=[other]))
    put(lake, "events", decision("p-20250305-001", "superseded"))
    usage = settings.workspace / "usage"
    usage.mkdir(parents=True)
    ids = [old["reflection_id"], half["reflection_id"]]
    use = {"at": "", "kind": "recall", "query": "", "project": None, "shown": ids, "cited": ids}
    (usage / f"{day_after(5)}.jsonl").write_text(json.dumps(use) + "\n")
    assert texts(settings, lake) == ["With npm or make.", "With pnpm."]


def test_what_does_not_belong_is_not_ranked(opened: tuple[Settings, Lake]) -> None:
    settings, lake = opened
    put(
        lake,
        "observations",
        observation("Of another project.", project="sloop"),
        observation("Of this session.", session="now"),
        observation("Pasted.", trust="paste"),
        observation("Doubted.", flags=["ungrounded"]),
        observation("Why?", kind="question"),
        observation("Rejected."),
        observation("Replaced."),
        observation("Stays.", project="kiln"),
    )
    put(lake, "proposals", proposal(1, "Rejected in other words.", sources=[observation_id("Rejected.")]))
    put(lake, "events", decision("p-20250305-001", "rejected"))
    newer = reflection("Newer.", superseded=[observation_id("Replaced.")], day=date(2025, 3, 6), trust="user")
    put(lake, "reflections", newer)
    assert texts(settings, lake, without_session="now") == ["Newer.", "Stays."]


def test_the_same_words_stand_once(opened: tuple[Settings, Lake]) -> None:
    settings, lake = opened
    days = [day_after(n) for n in range(3)]
    put(lake, "reflections", *[reflection("Said again.", day=day, trust="user") for day in days])
    put(lake, "observations", observation("said again"))
    settings.workspace.mkdir(exist_ok=True)
    assert texts(settings, lake) == ["Said again."]
    settings.memory_file.write_text("- Said again.\n")
    assert texts(settings, lake) == []
