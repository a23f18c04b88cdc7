"""Other markers reach the logs of days that are done with, and no block that a user edited."""

from dataclasses import replace
from pathlib import Path

import pytest

from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import MARKS
from memory_pipeline.workspace.daily_log.markers import write_markers
from memory_pipeline.workspace.daily_log.render import write_daily_log
from memory_pipeline_tests.workspace.daily_log.test_render import DAY, WINDOW

OTHER = replace(WINDOW, key="fedcba9876543210", session_name="other")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(workspace=tmp_path, timezone="UTC", default_session_dirs=False)


def write(path: Path, settings: Settings) -> None:
    """A log of two windows, the first edited by a user, and a list of their own."""
    write_daily_log(path, DAY, [WINDOW, OTHER], backups=settings.backups)
    text = path.read_text("utf-8").replace("Looked at", "Took a look at", 1)
    path.write_text(text + "\n* 🔴 (10:00) buy milk\n", "utf-8")


@pytest.mark.parametrize("markers", ["brackets", "words"])
@pytest.mark.parametrize("folder", [".", "archive"])
def test_other_markers_reach_a_log_that_is_written_already(settings: Settings, markers: str, folder: str) -> None:
    path = settings.log_dir / folder / f"{DAY}.md"
    write(path, settings)
    switched = settings.model_copy(update={"markers": markers})
    before = path.read_text("utf-8")
    assert write_markers(switched) == [path]
    after, marks = path.read_text("utf-8"), MARKS[markers]
    assert after.count(f"* {marks['high']} (09:15) Two functions") == 1
    assert after.count(f"* {marks['low']} (09:25) Looked at retries") == 1
    assert "* 🟢 (09:25) Took a look at retries" in after  # edited by hand
    assert "* 🔴 (10:00) buy milk" in after  # a user's own
    assert write_markers(switched) == []
    assert write_markers(settings) == [path]
    assert path.read_text("utf-8") == before


def test_the_log_is_as_if_it_had_been_written_so(settings: Settings) -> None:
    path = settings.log_dir / f"{DAY}.md"
    write_daily_log(path, DAY, [WINDOW], backups=settings.backups)
    write_markers(settings.model_copy(update={"markers": "words"}))
    words = replace(WINDOW, marks=MARKS["words"])
    assert not write_daily_log(path, DAY, [words], backups=settings.backups).changed


def test_without_logs_there_is_nothing_to_do(settings: Settings) -> None:
    assert write_markers(settings) == []
