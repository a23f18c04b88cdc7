"""`memory context --compaction`: a summary, or nothing and the exit code 0."""

from __future__ import annotations

import json
from pathlib import Path

from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.conftest import conversation, user, write_session


def test_as_pi_wants_it(tmp_path: Path) -> None:
    rule = user("2025-03-05T08:00:00", "Never use npm here, always use pnpm for the web client.", "first")
    path = write_session(tmp_path / "s" / "one.jsonl", rule, *conversation("2025-03-05T09:00:00"))
    options = ("--first-kept", "the parcel service 4 asked", "--tokens-before", "777", "--seconds", "60", "--json")
    found = memory(tmp_path / "home", "context", "--compaction", str(path), *options)
    made = json.loads(found.stdout)
    assert found.returncode == 0
    assert {"summary", "firstKeptEntryId", "tokensBefore", "details"} == set(made)
    assert (made["firstKeptEntryId"], made["tokensBefore"]) == ("the parcel service 4 asked", 777)
    assert "Never use npm here" in made["summary"]
    assert "part 4" not in made["summary"]
    plain = memory(tmp_path / "home", "context", "--compaction", str(path), "--seconds", "60")
    assert "Never use npm here" in plain.stdout


def test_it_fails_open(tmp_path: Path) -> None:
    for session in ("nowhere", str(tmp_path)):
        found = memory(tmp_path / "home", "context", "--compaction", session)
        assert (found.stdout, found.returncode) == ("", 0)
        assert found.stderr.startswith("No summary: ")
    wrong = memory(tmp_path / "home", "context", "--compaction", "x", env={"MEMORY_BRIEF_TOKENS": "many"})
    assert (wrong.stdout, wrong.returncode) == ("", 0)
    assert "MEMORY_BRIEF_TOKENS='many'" in wrong.stderr
