"""`memory status` counts the days of which something was let go of for its age; `memory show` says so of a message."""

from pathlib import Path

from memory_pipeline_tests.cli.command import memory
from memory_pipeline_tests.rows import day_after, say, workspace


def test_status_counts_the_days(tmp_path: Path) -> None:
    _, lake = workspace(tmp_path / ".memory-pipeline")
    for number in (0, 1):
        say(lake, f"s{number}", "user: Never use npm.", "assistant: Noted.", day=day_after(number))
    said = lake.read("messages", [day_after(0)])
    lake.retire("messages", said.with_columns(text=said["text"].replace("Noted.", "")), day_after(0))
    lake.retire("embeddings", lake.read("embeddings").clear(), day_after(0))
    lake.retire("embeddings", lake.read("embeddings").clear(), day_after(1))
    told = memory(tmp_path, "status").stdout
    assert "deleted by retention    words of 1 day, embeddings of 2 days" in told
    shown = memory(tmp_path, "show", "s0").stdout
    assert "Never use npm." in shown and "(its text is no longer kept)" in shown
    assert "deleted by retention" not in memory(tmp_path, "show", "s1").stdout
