"""`memory status` counts the days of which something was let go of for its age; `memory show` says so of a message."""

from pathlib import Path

from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.rows import day_after, say, workspace


def test_show_says_which_texts_are_gone(tmp_path: Path) -> None:
    _, lake = workspace(tmp_path / ".memory-pipeline")
    for number in (0, 1):
        say(lake, f"s{number}", "user: Never use npm.", "assistant: Noted.", day=day_after(number))
    said = lake.read("messages", [day_after(0)])
    lake.retire("messages", said.with_columns(text=said["text"].replace("Noted.", "")), day_after(0))
    shown = memory(tmp_path, "show", "s0").stdout
    assert "Never use npm." in shown and "(its text is no longer kept)" in shown
    assert "no longer kept" not in memory(tmp_path, "show", "s1").stdout
