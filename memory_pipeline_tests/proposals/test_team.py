"""A team's memory is offered what two of its people have approved, and nothing else of theirs."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.proposals.events import REJECTED, ProposalLog
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.proposals.team import agreed_lines, offer
from memory_pipeline.recall.origin import origin
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.rows import DAY, at, workspace

NOW = at("18:00")
PNPM = "Always use pnpm in this repository, never npm."


@pytest.fixture
def team(tmp_path: Path) -> Workspace:
    return Workspace(*workspace(tmp_path / "team"))


def person(folder: Path, *lines: str, hour: int = 9) -> Lake:
    """A lake in which these lines were promoted, one a minute."""
    lake = Lake(folder)
    rows = [
        {
            "day": DAY,
            "proposal_id": f"p-20250305-{number:03}",
            "section": "Hard Rules",
            "text": text,
            "kind": "promoted",
            "happened_at": at(f"{hour:02}:{number:02}"),
            "already_there": False,
        }
        for number, text in enumerate(lines, 1)
    ]
    lake.replace("events", pl.DataFrame(rows, schema=TABLES["events"].columns), [DAY])
    return lake


def test_what_two_have_in_other_words_is_agreed_as_it_was_worded_last(team: Workspace, tmp_path: Path) -> None:
    ana = person(tmp_path / "ana", PNPM, "The staging database is on port 5433.", "Never deploy on a Friday.")
    ben = person(tmp_path / "ben", "Use pnpm in this repository, never npm.", "Deploy on a Friday, always.", hour=11)
    cem = person(tmp_path / "cem", "The staging database is on port 5434.", "Please never deploy on a Friday.", hour=13)
    found = {one.text: one for one in agreed_lines(team, {"ana": ana, "ben": ben, "cem": cem})}
    assert {text: sorted(one.owners) for text, one in found.items()} == {
        "Use pnpm in this repository, never npm.": ["ana", "ben"],
        "Please never deploy on a Friday.": ["ana", "cem"],
    }
    assert agreed_lines(team, {"ana": ana, "ben": person(tmp_path / "nobody")}) == []


def test_what_one_says_twice_is_not_agreed(team: Workspace, tmp_path: Path) -> None:
    ana = person(tmp_path / "ana", PNPM, "Use pnpm in this repository, never npm.")
    assert agreed_lines(team, {"ana": ana, "ben": person(tmp_path / "ben", "Tabs in every Makefile.")}) == []


def test_it_is_offered_once_with_who_approved_it_and_not_again_when_the_team_rejects_it(
    team: Workspace, tmp_path: Path
) -> None:
    people = {"ana": person(tmp_path / "ana", PNPM), "ben": person(tmp_path / "ben", PNPM)}
    (agreed,) = agreed_lines(team, people)
    made = offer(team, agreed, NOW).made
    assert made and made.proposal_id and not made.known
    reconcile(team, NOW)
    assert "ana and ben" in team.settings.review_file.read_text("utf-8")
    assert origin(team.settings, made.proposal_id)["said"][0]["harness"] == "ana and ben"
    again = offer(team, agreed, NOW).made
    assert again and again.known == "pending"
    decide(team, {made.proposal_id: REJECTED}, at("19:00"))
    after = offer(team, agreed, at("20:00")).made
    assert after and after.known == "rejected"
    assert len(ProposalLog(team.lake).frame) == 1


def test_only_promotions_are_read(team: Workspace, tmp_path: Path) -> None:
    people = {"ana": person(tmp_path / "ana", PNPM), "ben": person(tmp_path / "ben", PNPM)}
    for name in people:
        for table in TABLES:
            if table != "events":
                (tmp_path / name / table).mkdir()
                (tmp_path / name / table / f"{DAY}.parquet").write_bytes(b"not to be read")
    assert len(agreed_lines(team, people)) == 1


@pytest.mark.slow
def test_the_command_offers_shows_and_refuses(tmp_path: Path) -> None:
    places = [f"--person={name}={tmp_path / name}" for name in ("ana", "ben")]
    for name in ("ana", "ben"):
        person(tmp_path / name, PNPM)
    assert memory_json(tmp_path / "home", "team", *places, "--dry-run")["lines"][0]["owners"] == ["ana", "ben"]
    (line,) = memory_json(tmp_path / "home", "team", *places)["lines"]
    assert line["proposal_id"] and not line["known"]
    assert "not added, because it is already pending" in memory(tmp_path / "home", "team", *places).stdout
    for wrong, says in (
        (places[:1], "At least 2 people"),
        (["--person=ana", places[1]], "is not NAME=LAKE"),
        ([places[0], f"--person=ana={tmp_path / 'ben'}"], "named twice"),
        ([places[0], f"--person=cem={tmp_path / 'nowhere'}"], "does not exist"),
    ):
        refused = memory(tmp_path / "home", "team", *wrong)
        assert (
            refused.returncode == 2 and says in " ".join(refused.stderr.split()) and "Traceback" not in refused.stderr
        )
