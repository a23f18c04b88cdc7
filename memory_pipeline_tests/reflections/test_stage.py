"""A day's reflections: over a lookback that ends with the day, from observations and their vectors."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from memory_pipeline.embeddings.stage import EmbeddingsStage
from memory_pipeline.reflections.evaluation import judge_compression
from memory_pipeline.reflections.extractive import ExtractiveReflector
from memory_pipeline.reflections.stage import ReflectionsStage
from memory_pipeline.stages import bring_up_to_date, is_current
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import (
    DAY,
    SECTIONS,
    FakeEncoder,
    Opened,
    at,
    bytes_of,
    day_after,
    observation,
    observation_id,
    put,
    reflection,
    workspace,
)

UV, UV_AGAIN, FRIDAY = "Use uv for Python.", "uv is what we take, everywhere.", "Never deploy on a friday."


@dataclass
class Work(Opened):
    def stage(self) -> ReflectionsStage:
        return ReflectionsStage(self.workspace, ExtractiveReflector(), FakeEncoder("uv", "friday"))

    def run(self, day: date = DAY) -> bool:
        for observed in self.lake.days("observations"):
            embeddings = EmbeddingsStage(self.workspace, FakeEncoder("uv", "friday"))
            bring_up_to_date(embeddings, self.lake, observed)
        return bring_up_to_date(self.stage(), self.lake, day)

    def lines(self, day: date = DAY) -> dict[str, int]:
        """Text to support."""
        return dict(self.lake.read("reflections", [day]).select("text", "support").iter_rows())


@pytest.fixture
def work(tmp_path: Path) -> Work:
    settings, lake = workspace(tmp_path, user_name="Ann")
    return Work(settings, lake)


def test_the_row_of_a_line(work: Work) -> None:
    put(
        work.lake,
        "observations",
        observation(UV, tokens=100),
        observation(UV_AGAIN, day=day_after(-1), session="s2", clock="15:00", tokens=200),
    )
    work.run()
    (row,) = work.lake.read("reflections").to_dicts()
    assert row["text"] == UV
    assert (row["section"], row["priority"], row["kind"], row["level"]) == ("Hard Rules", "high", "rule", 1)
    assert (row["support"], row["sessions"]) == (2, 2)
    assert row["sources"] == [observation_id(UV), observation_id(UV_AGAIN, day_after(-1), "s2")]
    assert (row["first_seen"], row["last_seen"]) == (at("15:00", day_after(-1)), at("09:00"))
    assert (row["input_tokens"], row["reflector"]) == (300, "extractive-3")


def test_the_first_section_carries_the_persons_name(work: Work) -> None:
    put(work.lake, "observations", observation(UV, kind="preference"))
    work.run()
    assert work.lake.read("reflections")["section"].to_list() == ["Ann"]
    assert work.settings.sections == ("Ann", *SECTIONS[1:])


def test_the_lookback_ends_with_the_day(work: Work) -> None:
    """Seven days: six before it and itself, and nothing of tomorrow."""
    for offset in (-7, -6, 1):
        put(
            work.lake,
            "observations",
            observation(f"friday number {offset}", day=day_after(offset), session=f"{offset}"),
        )
    put(work.lake, "observations", observation(FRIDAY))
    work.run()
    assert work.lines() == {FRIDAY: 2}


def test_a_day_without_observations_has_nothing_new_to_say(work: Work) -> None:
    put(work.lake, "observations", observation(UV, day=day_after(-1)))
    work.run()
    assert work.lake.days("reflections") == [DAY]
    assert work.lines() == {}


def test_a_row_names_the_observations_that_it_replaced(work: Work) -> None:
    old, new = "Events of parcels are kept for 90 days.", "Keep the events of parcels for 180 days instead of 90."
    put(
        work.lake,
        "observations",
        observation(old, day=day_after(-2), kind="decision"),
        observation(new, kind="decision", session="s2"),
        observation(FRIDAY, flags=["ended"]),
    )
    work.run()
    (row,) = work.lake.read("reflections").to_dicts()
    assert (row["text"], row["superseded"]) == (new, [observation_id(old, day_after(-2))])
    assert (row["item_type"], row["trust"], row["kind"]) == ("knowledge", "user", "decision")


def test_questions_reach_no_row(work: Work) -> None:
    put(work.lake, "observations", observation("Should we use uv?", kind="question"), observation(FRIDAY))
    work.run()
    assert work.lines() == {FRIDAY: 1}


def test_running_again_changes_no_byte(work: Work, tmp_path: Path) -> None:
    put(work.lake, "observations", observation(UV), observation(FRIDAY, session="s2"))
    assert work.run()
    before = bytes_of(tmp_path / "lake")
    assert not work.run()
    assert bytes_of(tmp_path / "lake") == before


@pytest.mark.parametrize(
    ("offset", "stale"),
    [
        (0, True),
        (-6, True),  # the oldest day that it looks at
        (-7, False),
        (1, False),
    ],
)
def test_a_day_is_stale_when_a_day_of_its_lookback_changed(work: Work, offset: int, stale: bool) -> None:
    put(work.lake, "observations", observation(UV))
    work.run()
    put(work.lake, "observations", observation(FRIDAY, day=day_after(offset), session="s9"))
    assert is_current(work.stage(), work.lake, DAY) is not stale


def test_ids_stay_when_the_day_grows(work: Work) -> None:
    put(work.lake, "observations", observation(UV))
    work.run()
    (before,) = work.lake.read("reflections")["reflection_id"]
    put(work.lake, "observations", observation(FRIDAY, session="s2"))
    work.run()
    assert before in work.lake.read("reflections")["reflection_id"].to_list()


@pytest.mark.parametrize(
    ("spent", "tokens", "passed"),
    [
        (1000, 20, True),  # the lower end belongs to the band
        (1000, 19, False),  # next to nothing is left
        (1000, 950, True),
        (1000, 951, False),  # copied, not condensed
        (499, 499, True),  # too little to condense
        (500, 500, False),
    ],
)
def test_the_compression_band(work: Work, spent: int, tokens: int, passed: bool) -> None:
    put(work.lake, "reflections", reflection(UV, input_tokens=spent, tokens=tokens))
    verdict = judge_compression(Workspace(work.settings, work.lake), DAY)
    assert verdict.passed is passed
    assert bool(verdict.offenders) is not passed


def test_an_empty_day_is_no_bad_compression(work: Work) -> None:
    work.run()
    assert judge_compression(Workspace(work.settings, work.lake), DAY).passed
