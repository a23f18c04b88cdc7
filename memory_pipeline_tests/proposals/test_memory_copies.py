"""A MEMORY.md that is gone comes back with the next line, byte for byte, and an empty one is a new beginning."""

import logging
import shutil
from pathlib import Path

import pytest

from memory_pipeline.markdown.safe_write import copies_of
from memory_pipeline.proposals.memory_file import lines_of
from memory_pipeline_tests.proposals.test_crashes import Killed, die_at
from memory_pipeline_tests.proposals.test_review import FRIDAY, TABS, UTC, UV, Story


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """Two lines are approved, and a person wrote one of their own."""
    return _story(tmp_path)


def _story(folder: Path) -> Story:
    story = Story(folder)
    story.memory.write_bytes(b"# Memory\r\n\r\nBy hand: \xff\r\n\r\n## Hard Rules\r\n- Be kind\r\n")
    story.mark(UV, "x")
    story.mark(FRIDAY, "x")
    story.run()
    return story


def ids(story: Story) -> set[str]:
    return {line.proposal_id for line in lines_of(story.memory.read_bytes()) if line.proposal_id}


def without(data: bytes, proposal_id: str) -> bytes:
    return b"".join(line for line in data.splitlines(keepends=True) if proposal_id.encode() not in line)


def test_what_was_written_first_is_kept_and_what_a_person_wrote_since(story: Story) -> None:
    written = story.memory.read_bytes()
    assert copies_of(story.memory, story.settings.backups)[-1].read_bytes() == written
    story.memory.write_bytes(mine := written + b"- Mine\r\n")
    story.run(2)
    story.run(3)
    assert [path.read_bytes() for path in copies_of(story.memory, story.settings.backups)][-2:] == [written, mine]


@pytest.mark.parametrize("left", [None, bytes(64)])
def test_the_next_line_is_added_to_what_was_there(
    story: Story, left: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    written = story.memory.read_bytes()
    story.memory.unlink()
    if left is not None:
        story.memory.write_bytes(left)
    story.run(2)
    assert not story.memory.exists() or story.memory.read_bytes() == left  # only where there is a line to write
    story.mark(TABS, "x")
    with caplog.at_level(logging.WARNING):
        story.run(3)
    assert without(story.memory.read_bytes(), TABS) == written
    assert ids(story) == {UV, FRIDAY, TABS}
    assert f"{story.memory} was missing; it was restored from {story.settings.backups}" in caplog.text


def test_a_line_that_a_person_removed_stays_away_and_an_empty_file_starts_anew(story: Story) -> None:
    story.memory.write_bytes(without(story.memory.read_bytes(), UV))
    story.run(2)
    story.memory.unlink()
    story.mark(TABS, "x")
    story.run(3)
    assert ids(story) == {FRIDAY, TABS}

    story.memory.write_bytes(b"")
    story.run(4)
    assert story.memory.read_bytes() == b""
    story.mark(UTC, "x")
    story.run(5)
    assert ids(story) == {UTC}


def test_without_any_copy_the_lines_come_back_from_the_tables(story: Story, caplog: pytest.LogCaptureFixture) -> None:
    for path in copies_of(story.memory, story.settings.backups):
        path.unlink()
    story.memory.unlink()
    story.mark(TABS, "x")
    story.run(2)
    assert ids(story) == {UV, FRIDAY, TABS}
    assert "it was restored from the tables" in caplog.text


def test_a_crash_while_it_is_put_back_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = _story(tmp_path / "made")
    made.mark(TABS, "x")
    written = made.memory.read_bytes()
    made.memory.unlink()
    kept = shutil.copytree(made.settings.workspace, tmp_path / "kept")

    def again() -> None:
        shutil.rmtree(made.settings.workspace)
        shutil.copytree(kept, made.settings.workspace)

    with monkeypatch.context() as patch:
        seen = die_at(patch, 0, before=True)
        made.run(2)
    wanted = made.memory.read_bytes()
    assert without(wanted, TABS) == written
    first = seen.index("MEMORY.md")
    assert len(seen) > first + 2  # the file, its copy, the tables
    for number in range(first + 1, len(seen) + 1):
        for before in (True, False):
            again()
            with monkeypatch.context() as patch:
                die_at(patch, number, before=before)
                with pytest.raises(Killed):
                    made.run(2)
            assert not made.memory.exists() or made.memory.read_bytes() == wanted
            made.memory.unlink(missing_ok=True)  # at the worst moment once more
            made.run(3)
            made.mark(UTC, "x")
            made.run(4)
            assert ids(made) == {UV, FRIDAY, TABS, UTC}
