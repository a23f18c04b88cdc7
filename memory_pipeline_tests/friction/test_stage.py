"""A day's friction: patterns that span sessions and that this day added to."""

from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.embeddings.stage import EmbeddingsStage
from memory_pipeline.friction.stage import MAX_PER_DAY, FrictionStage
from memory_pipeline.stage import bring_up_to_date, is_current
from memory_pipeline_tests.rows import (
    DAY,
    FakeEncoder,
    MissingEncoder,
    Opened,
    Row,
    bytes_of,
    day_after,
    observation,
    put,
    say,
    workspace,
)

UV = ("No, use uv, not pip.", "Again: use uv, not pip.", "uv, not pip! Use it.")
"""Alike by their words too, so that most tests can do without an index."""


@dataclass
class Work(Opened):
    encoder: Any

    def correct(self, *texts: str, **other: Any) -> None:
        """Each text is a correction in a session of its own: the last today, the others on the days before."""
        for i, text in enumerate(texts):
            day = day_after(1 + i - len(texts))
            fields = {"kind": "correction", "session": f"{other.get('kind', 'c')}{i}"} | other
            put(self.lake, "observations", observation(text, day=day, **fields))

    def stage(self) -> FrictionStage:
        return FrictionStage(self.workspace, self.encoder)

    def run(self, day: date = DAY) -> list[Row]:
        for observed in self.lake.days("observations"):
            bring_up_to_date(EmbeddingsStage(self.workspace, self.encoder), self.lake, observed)
        bring_up_to_date(self.stage(), self.lake, day)
        return self.lake.read("friction_clusters", [day]).to_dicts()


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(*workspace(tmp_path), MissingEncoder())


def test_the_same_correction_in_three_sessions_is_one_pattern_with_its_evidence(work: Work) -> None:
    work.correct(*UV)
    (row,) = work.run()
    assert row["pattern_id"] == "f-20250305-001"
    assert (row["kind"], row["target_file"]) == ("repeated_correction", "MEMORY.md")
    assert (row["sessions"], row["occurrences"], row["severity"]) == (3, 3, 9.0)
    assert row["confidence"] == pytest.approx(2 / 3)
    assert [e["message_id"] for e in row["evidence"]] == ["c0-03-09:00-0", "c1-04-09:00-0", "c2-05-09:00-0"]
    assert row["evidence"][2]["end"] == len(UV[2])


def test_one_session_is_no_pattern(work: Work) -> None:
    work.correct(*UV, session="the only one")
    assert work.run() == []


@pytest.mark.parametrize(
    ("other", "counts"),
    [
        ({"kind": "correction"}, True),
        ({"kind": "rule"}, True),  # a correction that lays down a rule is one
        ({"kind": "preference"}, True),
        ({"kind": "question"}, False),
        ({"kind": "decision"}, False),
        ({"trust": "assistant"}, False),  # the model corrects nobody
    ],
)
def test_whose_words_are_a_sign(work: Work, other: dict[str, str], counts: bool) -> None:
    work.correct(*UV, **other)
    assert bool(work.run()) is counts


@pytest.mark.parametrize(
    ("other", "patterns"),
    [
        ({}, 0),
        ({"kind": "correction"}, 0),
        ({"kind": "question"}, 1),  # decides nothing
        ({"trust": "assistant"}, 1),  # the model revokes nothing
    ],
)
def test_a_rule_that_was_revoked_is_not_offered(work: Work, other: dict[str, str], patterns: int) -> None:
    today = [observation("Use pnpm for the frontend.", kind="rule", session=s) for s in ("s1", "s2")]
    change = {"kind": "decision", "session": "s3", "clock": "12:00"} | other
    put(work.lake, "observations", *today, observation("We go with npm instead of pnpm.", **change))
    assert len(work.run()) == patterns


@pytest.mark.parametrize(
    ("encoder", "sessions"),
    [
        (FakeEncoder("uv", "friday"), 3),  # all are about uv
        (MissingEncoder(), 2),  # only two share their words
    ],
)
def test_vectors_find_the_same_in_other_words(work: Work, encoder: FakeEncoder, sessions: int) -> None:
    work.encoder = encoder
    work.correct("Use uv, not pip, here.", "uv please, I told you!", "Again: use uv, not pip.")
    (row,) = work.run()
    assert row["sessions"] == sessions


def fail(work: Work, *texts: str, mark: str = "tool!", day: date = DAY) -> None:
    """Each text is what a tool said in a session of its own."""
    for i, text in enumerate(texts):
        say(work.lake, f"f{i}", f"{mark}: {text}", day=day, clock=f"1{i}:00")


def test_failures_with_other_numbers_and_paths_are_one_pattern(work: Work) -> None:
    long = "starting\nError: port 8080 of /srv/app.py already in use\nbye"
    fail(work, long, "Error: port 3000 of /home/ann/x.py already in use")
    (row,) = work.run()
    assert (row["kind"], row["target_file"]) == ("configuration_drift", "AGENTS.md")
    assert (row["sessions"], row["occurrences"], row["severity"]) == (2, 2, 4.0)
    first, second = row["evidence"]
    assert long[first["start"] : first["end"]] == "Error: port 8080 of /srv/app.py already in use"
    assert second["start"] == 0


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("The user doesn't want to proceed with this tool use.", "tool!"),  # refused
        ("[Request interrupted by user]", "tool!"),
        ("Error: port 8080 in use", "tool"),  # it tells of an error and did not fail
        ("Error: port 8080 in use", "assistant"),
        ("", "tool!"),
    ],
)
def test_what_is_no_failure(work: Work, text: str, mark: str) -> None:
    fail(work, text, text, text, mark=mark)
    assert work.run() == []


def test_a_remembered_rule_that_is_still_broken_is_stale_memory(work: Work) -> None:
    put(work.lake, "promotions", {"day": DAY, "proposal_id": "p-20250201-001", "text": "Use uv, not pip."})
    work.correct("Use uv, not pip.", "Again: use uv, not pip.")
    (row,) = work.run()
    assert (row["kind"], row["target_file"], row["severity"]) == ("stale_memory", "AGENTS.md", 8.0)
    assert "Use uv, not pip." in row["change"]


def test_a_pattern_belongs_to_the_days_that_add_to_it(work: Work) -> None:
    work.correct(*UV)
    assert len(work.run()) == 1
    assert work.run(day_after(1)) == []  # nothing new
    assert len(work.run(day_after(-1))) == 1  # two sessions by then
    assert work.run(day_after(-2)) == []  # only one


def test_what_is_older_than_the_lookback_does_not_count(work: Work) -> None:
    put(work.lake, "observations", observation(UV[0], kind="correction", day=day_after(-7), session="old"))
    work.correct(UV[1])
    assert work.run() == []
    put(work.lake, "observations", observation(UV[0], kind="correction", day=day_after(-6), session="newer"))
    assert len(work.run()) == 1


def test_at_most_ten_a_day_the_worst_first(work: Work) -> None:
    work.correct(*UV)
    for session in ("s1", "s2"):
        say(work.lake, session, *(f"tool!: assertion {'x' * n} broke" for n in range(1, 13)))
    rows = work.run()
    assert len(rows) == MAX_PER_DAY == 10
    assert rows[0]["kind"] == "repeated_correction"
    assert [r["severity"] for r in rows] == [9.0] + [4.0] * 9
    assert [r["pattern_id"][-3:] for r in rows] == [f"{n:03d}" for n in range(1, 11)]


def test_running_again_changes_no_byte(work: Work, tmp_path: Path) -> None:
    work.correct(*UV)
    fail(work, "Error: port 8080 in use", "Error: port 3000 in use")
    work.run()
    before = bytes_of(tmp_path / "lake")
    assert is_current(work.stage(), work.lake, DAY)
    work.lake.replace("friction_clusters", work.lake.read("friction_clusters")[:0], [DAY])
    work.run()
    assert bytes_of(tmp_path / "lake") == before


@pytest.mark.parametrize("table", ["messages", "observations"])
def test_a_day_is_stale_when_its_inputs_changed(work: Work, table: str) -> None:
    work.correct(*UV)
    work.run()
    if table == "messages":
        fail(work, "Error: port 8080 in use", day=day_after(-6))
    else:
        put(work.lake, "observations", observation("uv", day=day_after(-6)))
    assert not is_current(work.stage(), work.lake, DAY)


def test_a_day_without_friction_is_an_empty_day(work: Work) -> None:
    assert work.run() == []
    assert work.lake.days("friction_clusters") == [DAY]


def test_a_pattern_names_its_sessions_and_its_project(work: Work) -> None:
    work.correct(*UV, project="kiln", cwd="/src/kiln")
    (row,) = work.run()
    assert (row["session_ids"], row["projects"], row["cwds"]) == (["c0", "c1", "c2"], ["kiln"], ["/src/kiln"])
    assert (row["owner"], row["change"]) == ("me", f"Add under Hard Rules (project: kiln): “{UV[2]}”")


def test_failures_of_tools_name_their_projects_too(work: Work) -> None:
    for session in ("a", "b"):
        say(work.lake, session, "user: Run the tests.", "tool!: Error: no such module")
    sessions = work.lake.read("sessions")
    projects = pl.when(pl.col("session_id") == "a").then(pl.lit("kiln")).otherwise(pl.lit("cli")).alias("project")
    work.lake.replace("sessions", sessions.with_columns(projects), [DAY])
    (row,) = work.run()
    assert (row["session_ids"], row["projects"], row["cwds"]) == (["a", "b"], ["cli", "kiln"], ["/repo"])


@pytest.mark.parametrize(("project", "occurrences"), [("cli", 3), ("kiln", 0)])
def test_a_mind_that_changed_in_another_project_ends_nothing(work: Work, project: str, occurrences: int) -> None:
    work.correct("Use pip for packages.", "Use pip for the packages.", "Use pip for packages!", project="kiln")
    put(
        work.lake,
        "observations",
        observation("We use uv instead of pip for packages.", kind="decision", clock="10:00", project=project),
    )
    assert sum(row["occurrences"] for row in work.run()) == occurrences
