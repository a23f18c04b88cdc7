"""What the UI is told of a day's friction: numbers, a table, a picture or a sentence."""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from memory_pipeline.days import lookback
from memory_pipeline.defs.friction import describe
from memory_pipeline.embeddings.stage import EmbeddingsStage
from memory_pipeline.friction.active import active_patterns
from memory_pipeline.friction.picture import Place
from memory_pipeline.friction.places import MAX_POINTS, draw, every_nth, places_of
from memory_pipeline.lake.rows import ObservationRow, typed_rows
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline_tests.rows import (
    DAY,
    FakeEncoder,
    MissingEncoder,
    Opened,
    Row,
    day_after,
    observation,
    observation_id,
    pattern,
    put,
    say,
    workspace,
)

TOPICS = ("uv", "npm", "docker", "depot", "kiln")
ENCODER = FakeEncoder(*TOPICS)
U = "f-20250304-001"


@dataclass
class Work(Opened):
    def told(self, encoder: Any = ENCODER) -> Mapping[str, Any]:
        return describe(self.workspace, encoder, DAY)

    def index(self) -> None:
        for day in self.lake.days("observations"):
            bring_up_to_date(EmbeddingsStage(self.workspace, ENCODER), self.lake, day)

    def drawn(self, encoder: Any = ENCODER) -> tuple[bytes | None, str]:
        return draw(self.workspace, encoder, DAY, active_patterns(self.lake, DAY, 7))


def spans(*messages: Row) -> list[Row]:
    return [{"message_id": m["message_id"], "start": 0, "end": len(m["text"])} for m in messages]


@pytest.fixture
def work(tmp_path: Path) -> Work:
    """Two active patterns: a correction of two sessions, and a failure after it; and one that ends today."""
    work = Work(*workspace(tmp_path))
    evidence, failed = [], []
    for n, day in enumerate((day_after(-1), DAY)):
        said = say(work.lake, f"s{n}", "user: No, use uv, not pip.", "tool!: exit 1", day=day)
        row = observation("No, use uv, not pip.", day=day, session=f"s{n}")
        put(work.lake, "observations", row)
        evidence += spans(said[0])
        failed += spans(said[1])
    for n, topic in enumerate(TOPICS):
        put(work.lake, "observations", observation(f"The {topic} one.", session=f"t{n}", clock="08:00"))
    uv = pattern(1, "Use uv | not pip.", day=day_after(-1), evidence=evidence[:1], minutes=None)
    put(work.lake, "friction_clusters", uv)
    put(work.lake, "friction_clusters", uv | {"day": DAY, "evidence": evidence, "last_day": DAY, "severity": 8.0})
    put(work.lake, "friction_clusters", pattern(1, "exit 1", kind="recurring_failure", evidence=failed))
    old = pattern(4, "Old.", day=day_after(-7))
    put(work.lake, "friction_clusters", old, old | {"day": DAY, "ended_on": DAY})
    return work


def test_the_numbers_plot(work: Work) -> None:
    told = work.told()
    numbers = {k: v for k, v in told.items() if isinstance(v, (int, float))}
    assert numbers == {
        "points": 9,
        "active": 2,
        "new": 1,
        "ended": 1,
        "occurrences": 4,
        "minutes_lost": 6.0,
        "worst_severity": 8.0,
    }


def test_the_table_has_a_row_for_each_with_what_was_said_escaped(work: Work) -> None:
    table = work.told()["table"].value
    head, _, first, second = table.splitlines()
    assert head.startswith("| pattern | kind | title | project | times | sessions | minutes | severity |")
    assert "Use uv \\| not pip." in first and "f\\-" not in first and U in first.replace("\\", "")
    assert "recurring failure" in second


def test_the_picture_stands_in_the_metadata_itself(work: Work) -> None:
    work.index()
    shown = work.told()["picture"].value
    found = re.fullmatch(r"!\[[\w ]+\]\(data:image/png;base64,([A-Za-z0-9+/=]+)\)\n\n(.+)", shown, re.S)
    assert found and Image.open(BytesIO(base64.b64decode(found[1]))).format == "PNG"
    assert found[2] == "7 of 7 observations of 7 days"
    assert len(shown) < 60_000
    assert work.told()["picture"].value == shown


def test_the_output_of_a_tool_stands_beside_what_was_said_before_it(work: Work) -> None:
    work.index()
    first = work.drawn()[0]
    only = active_patterns(work.lake, DAY, 7)[:1]
    assert first != draw(work.workspace, ENCODER, DAY, only)[0]
    (failure,) = (p for p in active_patterns(work.lake, DAY, 7) if p.row["kind"] == "recurring_failure")
    corrected = [observation_id("No, use uv, not pip.", day, s) for day, s in ((day_after(-1), "s0"), (DAY, "s1"))]
    days = lookback(DAY, 7)
    rows = typed_rows(work.lake.read("observations", days), ObservationRow)
    found = places_of(work.workspace, days, rows, [failure])
    assert found == {"f-20250305-001": [Place(point, is_own=False) for point in sorted(corrected)]}
    assert work.drawn()[1] == "7 of 7 observations of 7 days"


def test_a_pattern_of_sessions_of_which_nothing_was_observed_is_named(work: Work) -> None:
    said = say(work.lake, "quiet", "tool!: exit 2")
    put(work.lake, "friction_clusters", pattern(7, "exit 2", evidence=spans(*said)))
    work.index()
    assert work.drawn()[1] == "7 of 7 observations of 7 days; without a vector near them: f-20250305-007"


def test_of_many_points_every_so_many_are_drawn_and_all_of_a_pattern(work: Work, monkeypatch: Any) -> None:
    monkeypatch.setattr("memory_pipeline.friction.places.MAX_POINTS", 4)
    work.index()
    assert MAX_POINTS == 2_000
    said = work.drawn()[1]
    number = int(said.partition(" ")[0])
    assert 2 <= number < 7 and said.endswith("of 7 observations of 7 days")


def test_without_vectors_a_sentence_stands_there(work: Work) -> None:
    sentence = "Nothing is drawn: the observations of these days have no vectors that can be read."
    assert work.told()["picture"] == sentence  # not indexed yet
    work.index()
    assert work.told(MissingEncoder())["picture"] == sentence
    assert work.told(FakeEncoder("another", name="another"))["picture"] == sentence


def test_points_that_are_all_the_same_are_no_picture(tmp_path: Path) -> None:
    work = Work(*workspace(tmp_path))
    said = say(work.lake, "s1", "user: Use uv.")
    for session in ("s1", "s2", "s3"):
        put(work.lake, "observations", observation("Use uv.", session=session))
    put(work.lake, "friction_clusters", pattern(1, "Use uv.", evidence=spans(*said)))
    work.index()
    assert work.told()["picture"] == "Nothing is drawn: the vectors of all 3 observations are the same."


def test_a_day_without_patterns_says_why(tmp_path: Path) -> None:
    work = Work(*workspace(tmp_path))
    work.lake.replace("friction_clusters", work.lake.read("friction_clusters"), [DAY])
    told = work.told()
    assert told["table"] == "Not enough yet: 0 of 100 points in the last 7 days (to 2025-03-05)."
    assert told["picture"] == "There is no pattern to draw."
    assert told["remarks"].value == "- 7 of these 7 days have no session."
    assert (told["active"], told["worst_severity"]) == (0, 0.0)


@pytest.mark.parametrize(("number", "limit", "kept"), [(0, 5, 0), (5, 5, 5), (6, 5, 3), (50_000, 2_000, 2_000)])
def test_of_too_many_some_are_kept_at_equal_distances(number: int, limit: int, kept: int) -> None:
    found = every_nth(range(number), limit)
    assert len(found) == kept and len({b - a for a, b in itertools.pairwise(found)}) <= 1
