"""`memory show`: the day's log as a person reads it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import typer

from memory_pipeline.cli.console import FAILED, MISUSED
from memory_pipeline.cli.show import show

BLOCK = """# {day}

My own line. <!-- my own comment -->

<!-- memory:observations:bebcf6620f89 3fbd925527e7 -->
### Observations of {day}

* 🔴 (09:21) always use uv
* 🟢 (09:33) one thing i don't know yet
<!-- /memory:observations:bebcf6620f89 -->

By hand, below.
"""


@pytest.fixture
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the logs of a workspace."""
    monkeypatch.setenv("MEMORY_TIMEZONE", "UTC")
    folder = tmp_path / "workspace" / "memory"
    folder.mkdir(parents=True)
    return folder


def write(logs: Path, day: str) -> str:
    text = BLOCK.format(day=day)
    (logs / f"{day}.md").write_text(text, "utf-8")
    return text


def test_it_shows_no_fences_and_the_file_keeps_them(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = write(logs, "2026-03-05")
    show("2026-03-05")
    shown = capsys.readouterr().out
    assert shown.splitlines() == [line for line in text.splitlines() if "memory:" not in line]
    assert (logs / "2026-03-05.md").read_text("utf-8") == text


def test_what_is_high_has_no_fences_and_no_gaps_where_they_were(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(logs, "2026-03-05")
    show("2026-03-05", high=True)
    shown = capsys.readouterr().out
    assert "always use uv" in shown and "By hand, below." in shown
    assert "don't know" not in shown and "memory:" not in shown and "\n\n\n" not in shown


@pytest.mark.parametrize(("word", "back"), [("today", 0), ("yesterday", 1), ("Yesterday", 1), (None, 0)])
def test_today_and_yesterday_are_days(
    word: str | None, back: int, logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = datetime.now(UTC).date()
    for days in range(3):
        write(logs, f"{now - timedelta(days=days)}")
    show(word)
    assert f"Observations of {now - timedelta(days=back)}" in capsys.readouterr().out


@pytest.mark.parametrize(("day", "code"), [("tomorrow", MISUSED), ("2026-3-5", MISUSED), ("2026-03-04", FAILED)])
def test_a_day_that_is_none_or_has_no_log_is_one_sentence(
    day: str, code: int, logs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(logs, "2026-03-05")
    with pytest.raises(typer.Exit) as left:
        show(day)
    assert left.value.exit_code == code
    assert day in capsys.readouterr().err
