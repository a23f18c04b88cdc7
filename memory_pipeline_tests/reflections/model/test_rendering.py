"""Observations as a model is shown them: by day and topic, the narrative over its facts, in batches."""

from datetime import date, timedelta
from typing import Any

from memory_pipeline.reflections.model.rendering import batches, shown_tokens
from memory_pipeline.reflections.types import Observation, Topic
from memory_pipeline.text.tokens import estimate
from memory_pipeline_tests.rows import DAY, at

UV = Topic("s-1", "Move to uv", "The person wanted uv;\n o9 it was installed.")
GATES = Topic("s-2", "", "The gates were opened.")


def observed(name: str, clock: str, topic: Topic | None = None, day: date = DAY, **other: Any) -> Observation:
    text = f"The fact {name}."
    fields = {"session_id": "s", "priority": "high", "kind": "rule", "trust": "user", "tokens": estimate(text)} | other
    return Observation(name, day, observed_at=at(clock, day), text=text, topic=topic, **fields)


def test_the_narrative_of_a_topic_stands_over_its_facts() -> None:
    found = [
        observed("a", "09:00", UV),
        observed("b", "09:30", GATES),  # two sessions at once
        observed("c", "10:00", UV),
        observed("note", "11:00"),
        observed("d", "08:00", UV, DAY - timedelta(days=1)),
    ]
    (batch,) = batches(found, 10_000, DAY)
    assert batch.text.split("\n") == [
        "## Tuesday 2025-03-04 (1 day ago)",
        "### Move to uv: The person wanted uv; o9 it was installed.",
        "o1 🔴 rule, the person: The fact d.",
        "## Wednesday 2025-03-05 (today)",
        "### Move to uv: The person wanted uv; o9 it was installed.",
        "o2 🔴 rule, the person: The fact a.",
        "o3 🔴 rule, the person: The fact c.",
        "### The gates were opened.",
        "o4 🔴 rule, the person: The fact b.",
        "### (no topic)",
        "o5 🔴 rule, the person: The fact note.",
    ]
    assert [o.observation_id for o in batch.observed] == ["d", "a", "c", "b", "note"]


def test_a_topic_that_is_cut_in_two_is_told_in_both_batches_and_counted() -> None:
    found = [observed(f"{n:02d}", f"09:{n:02d}", UV) for n in range(40)]
    parts = batches(found, 400, DAY)
    assert len(parts) > 1
    for part in parts:
        assert part.text.count("### Move to uv") == 1
        assert estimate(part.text) < 430  # but for the day's line, about what the cap allows
    assert sum(len(part.observed) for part in parts) == 40
    assert shown_tokens(found) > shown_tokens([observed(f"{n:02d}", f"09:{n:02d}") for n in range(40)])


def test_the_project_stands_beside_whose_words_they_are() -> None:
    (batch,) = batches(
        [observed("a", "09:00", projects=("kiln",)), observed("b", "09:30", projects=("cli", "x\ny"))], 9_000, DAY
    )
    assert batch.text.split("\n")[1:] == [
        "o1 🔴 rule, the person in kiln: The fact a.",
        "o2 🔴 rule, the person in cli, x y: The fact b.",
    ]
