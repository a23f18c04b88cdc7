"""What became of a proposal: of what nobody timed only the day is told."""

from __future__ import annotations

from datetime import UTC
from pathlib import Path

from memory_pipeline.proposals.history import history
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import DAY, at, observation, proposal, put, workspace

TEXT = "Never deploy on a Friday."


@each(("untimed", "moment"), [(None, at("15:20")), ("early in session", DAY)])
def test_what_was_said_again(tmp_path: Path, untimed: str | None, moment: object) -> None:
    settings, lake = workspace(tmp_path, timezone="UTC")
    offered = proposal(1, TEXT)
    again = observation(TEXT, session="s2", clock="15:20", untimed=untimed)
    put(lake, "proposals", offered)
    put(lake, "observations", again)
    put(
        lake,
        "supports",
        {
            "day": DAY,
            "proposal_id": offered["proposal_id"],
            "reflection_id": "r-1",
            "sessions": 1,
            "session_ids": ["s2"],
            "said_at": at("15:20").astimezone(UTC),
            "sources": [again["observation_id"]],
        },
    )
    told = history(Workspace(settings, lake), offered["proposal_id"])
    assert [(event["event"], event["moment"]) for event in told] == [("offered", DAY), ("said again", moment)]
