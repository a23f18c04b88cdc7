"""Sessions that ask to be left out, and those that the pipeline's own model commands wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from memory_pipeline.llm.prompts import MARKER, mark_prompt
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.conftest import Entry, assistant, tool, user, write_session

NINE, TEN = "2026-05-01T09:00:00", "2026-05-01T09:10:00"
MARK = "DO NOT INDEX"


def excluded(tmp_path: Path, *entries: Entry) -> str | None:
    return parse_file(write_session(tmp_path / "a.jsonl", user(NINE, "Good morning."), *entries)).excluded


def test_what_the_user_says_anywhere_in_a_session_excludes_it(tmp_path: Path) -> None:
    assert excluded(tmp_path) is None
    assert excluded(tmp_path, user(TEN, f"This is private: {MARK} please.")) == f"line 3 says {MARK}"


@each(
    "entry",
    [
        pytest.param(assistant(TEN, f"I found {MARK} in a file."), id="the model"),
        pytest.param(tool(TEN, f"README: {MARK}"), id="a tool"),
        pytest.param(user(TEN, "Please do not index this folder."), id="words in small letters"),
        pytest.param(tool(TEN, mark_prompt("Observe.")), id="the pipeline's prompt in a tool's output"),
        pytest.param(assistant(TEN, mark_prompt("Observe.")), id="the pipeline's prompt told by the model"),
        pytest.param(user(TEN, f"Why does it say {MARKER}?"), id="a question about the pipeline's prompt"),
    ],
)
def test_only_the_user_excludes_a_session(tmp_path: Path, entry: Entry) -> None:
    assert excluded(tmp_path, entry) is None


@each(
    ("line", "meant"),
    [
        (MARK, True),
        (f"<!-- {MARK} -->", True),
        (f"**{MARK} THIS PROJECT.**", True),
        (f"<INSTRUCTIONS>{MARK}</INSTRUCTIONS>", True),
        (f"Write {MARK} into a session to leave it out.", False),
        (f"`{MARK}` is a mark of the pipeline.", False),
    ],
)
def test_in_the_instructions_of_a_project_only_a_line_of_its_own_is_the_mark(
    tmp_path: Path, line: str, meant: bool
) -> None:
    told = f"# AGENTS.md instructions for /home/ada\n\nBe brief.\n{line}\nUse two decimals."
    assert excluded(tmp_path, user(TEN, told)) == (f"line 3 says {MARK}" if meant else None)


def test_a_session_of_the_pipelines_own_command_is_known_by_its_prompt(tmp_path: Path) -> None:
    path = write_session(tmp_path / "own.jsonl", user(NINE, mark_prompt("Observe this.")), assistant(TEN, "Nothing."))
    assert parse_file(path).excluded == "written by the pipeline's own model command"
