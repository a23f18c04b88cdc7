"""`memory admin audit`: what is printed, and the exit codes that CI reads."""

import json
from pathlib import Path

import pytest

from memory_pipeline_tests.cli.command import memory

TEXT = "# Rules\n- Use pnpm instead of npm\n- Use npm for the docs\n- Dashboards belong to the platform team\n"


@pytest.mark.parametrize(
    ("fail_on", "code"),
    [((), 1), (("--fail-on", "secret,duplicate"), 0), (("--fail-on", "contradicting"), 1), (("--fail-on", "none"), 0)],
)
def test_the_exit_code_is_of_the_kinds_that_are_named(tmp_path: Path, fail_on: tuple[str, ...], code: int) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text(TEXT)
    told = memory(tmp_path / "home", "admin", "audit", f"{path}", *fail_on)
    assert told.returncode == code, told.stderr
    assert "contradicting: line 2 says “Use pnpm instead of npm”" in told.stdout
    assert "3 lines of" in told.stdout and "No session has been read" in told.stdout


def test_as_json(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_text(TEXT)
    told = memory(tmp_path / "home", "admin", "audit", f"{path}", "--json")
    made = json.loads(told.stdout)
    assert told.returncode == 1 and made["failed"]
    assert made["counts"]["contradicting"] == 1
    assert [(line["line"], [f["kind"] for f in line["findings"]]) for line in made["lines"]] == [
        (2, []),
        (3, ["contradicting"]),
        (4, []),
    ]
    assert path.read_text() == TEXT


@pytest.mark.parametrize("given", ["secrets", "", "junk,lies"])
def test_an_unknown_kind_is_said(tmp_path: Path, given: str) -> None:
    told = memory(tmp_path / "home", "admin", "audit", "AGENTS.md", "--fail-on", given)
    assert told.returncode == 2
    assert "contradicting" in told.stderr


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    told = memory(tmp_path / "home", "admin", "audit", f"{tmp_path / 'none.md'}")
    assert (told.returncode, len(told.stderr.strip().splitlines())) == (2, 1)
    assert "There is no file" in told.stderr
