"""The daily log: what a day's windows look like, and that a person's words around them stay."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.markdown.blocks import put_block
from memory_pipeline.text.priorities import MARKS
from memory_pipeline.workspace.daily_log.render import (
    LogFact,
    LogReflection,
    LogSegment,
    LogWindow,
    optimize_for_context,
    render_observations,
    write_daily_log,
    write_log_blocks,
    write_reflection,
)
from memory_pipeline_tests.cases import each

DAY = date(2026, 3, 5)
WORKER = LogSegment(
    "Debugged the worker",
    "Two functions shared a trigger; one was removed.",
    [
        LogFact("high", "09:15", "Two functions must not share a trigger"),
        LogFact("medium", "09:20", "Logs show it, stderr does not"),
        LogFact("low", "09:25", "Looked at retries"),
    ],
)
WINDOW = LogWindow("0123456789abcdef", "worker", "09:40", "compaction", 12, 3, [WORKER], "Fixing the worker")

SEGMENTED = """\
### 🔭 Observations (session: worker, 09:40)

**Trigger**: compaction
**Files**: 3 modified, 12 read

#### Debugged the worker
*Two functions shared a trigger; one was removed.*

* 🔴 (09:15) Two functions must not share a trigger
* 🟡 (09:20) Logs show it, stderr does not
* 🟢 (09:25) Looked at retries

**Current task**: Fixing the worker"""

FLAT = """\
### 🔭 Observations (session: worker, 09:40)

**Trigger**: shutdown
**Files**: 3 modified, 12 read

Date: 2026-03-05

* 🔴 (09:15) Two functions must not share a trigger
* 🟡 (09:20) Logs show it, stderr does not
* 🟢 (09:25) Looked at retries"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "memory" / "2026-03-05.md"


def write(log: Path, *windows: LogWindow) -> tuple[bool, list[str]]:
    result = write_daily_log(log, DAY, windows, backups=log.parent.parent / "backups")
    return result.changed, result.edited_by_hand


def test_segments_have_their_heading_narrative_and_facts() -> None:
    assert render_observations(WINDOW, DAY) == SEGMENTED


def test_facts_without_segments_are_shown_flat() -> None:
    flat = replace(WINDOW, trigger="shutdown", segments=[replace(WORKER, title="", narrative="")], current_task=None)
    assert render_observations(flat, DAY) == FLAT


@each("text", ["end -->", "<!-- /memory:observations:0123456789ab -->", "a\n# b\r\n\u2028c", "<\u200b!--"])
def test_no_text_can_break_out_of_its_line(text: str) -> None:
    everywhere = LogWindow(
        "k" * 64, text, "09:40", text, 1, 1, [LogSegment(text, text, [LogFact("low", "09:15", text)])], text
    )
    body = render_observations(everywhere, DAY)
    assert len(body.splitlines()) == len(
        render_observations(replace(WINDOW, segments=[replace(WORKER, facts=WORKER.facts[:1])]), DAY).splitlines()
    )
    assert put_block("", "k", body).state == "added"
    assert "<!--" not in body and "-->" not in body


@given(st.text())
def test_any_text_of_a_fact_makes_a_block_that_we_recognise(text: str) -> None:
    window = replace(WINDOW, session_name=text, segments=[LogSegment(text, text, [LogFact("high", "09:15", text)])])
    body = render_observations(window, DAY)
    assert put_block(put_block("", "k", body).text, "k", body).state == "unchanged"


def test_a_new_log_gets_its_heading_and_one_block_per_window(log: Path) -> None:
    other = replace(WINDOW, key="fedcba9876543210", session_name="other")
    assert write(log, WINDOW, other) == (True, [])
    text = log.read_text()
    assert text.startswith("# 2026-03-05\n\n<!-- memory:observations:0123456789ab ")
    assert SEGMENTED in text
    assert text.index("0123456789ab") < text.index("fedcba987654")


def test_writing_again_changes_nothing(log: Path) -> None:
    write(log, WINDOW)
    before = log.stat().st_mtime_ns
    assert write(log, WINDOW) == (False, [])
    assert log.stat().st_mtime_ns == before


def test_without_windows_no_log_is_made(log: Path) -> None:
    assert write(log) == (False, [])
    assert not log.exists()


def test_a_persons_text_stays_and_the_block_of_a_window_that_is_gone_goes(log: Path) -> None:
    log.parent.mkdir()
    log.write_bytes(b"# Thursday\r\n\r\nCalled the plumber.  ")
    other = replace(WINDOW, key="fedcba9876543210", session_name="other")
    write(log, WINDOW, other)
    with log.open("ab") as stream:
        stream.write(b"\r\nLate: \xff tea")
    assert write(log, replace(WINDOW, files_read=13)) == (True, [])
    after = log.read_bytes()
    assert after.startswith(b"# Thursday\r\n\r\nCalled the plumber.  \r\n\r\n<!--")
    assert after.endswith(b"\r\nLate: \xff tea")
    assert b"fedcba987654" not in after
    assert b"13 read" in after and after.count(b"\n") == after.count(b"\r\n")


def test_the_block_of_a_window_that_is_gone_stays_when_a_person_edited_it(log: Path) -> None:
    other = replace(WINDOW, key="fedcba9876543210", session_name="other")
    write(log, WINDOW, other)
    log.write_text(log.read_text("utf-8").replace("(session: other", "(session: my own name for it"), "utf-8")
    write(log, WINDOW)
    assert "my own name for it" in log.read_text("utf-8")


def test_a_window_that_a_person_edited_is_left_and_named(log: Path) -> None:
    write(log, WINDOW)
    log.write_text(log.read_text().replace("Looked at retries", "Looked at retries in vain"))
    before = log.read_text()
    assert write(log, replace(WINDOW, files_read=13)) == (False, ["0123456789abcdef"])
    assert log.read_text() == before


def test_other_blocks_of_the_log_live_beside_the_windows(log: Path) -> None:
    write(log, WINDOW)
    result = write_log_blocks(log, DAY, {"decisions": "* p-20260305-001 approved"}, backups=log.parent)
    assert result.changed and log.read_text().rstrip().endswith("<!-- /memory:decisions -->")


@each("marks", MARKS.values(), ids=MARKS)
def test_for_a_context_only_what_is_high_is_kept(marks: dict[str, str]) -> None:
    quiet = LogSegment("Looked around", "Nothing came of it.", [LogFact("low", "09:30", "Read the README")])
    window = replace(WINDOW, segments=[WORKER, quiet], marks=marks)
    log = f"# 2026-03-05\n\nA line by hand.\n\n{render_observations(window, DAY)}\n"
    assert optimize_for_context(log) == (
        "# 2026-03-05\n\nA line by hand.\n\n"
        + "\n".join(render_observations(replace(WINDOW, segments=[]), DAY).splitlines()[:4])
        + "\n\n#### Debugged the worker\n*Two functions shared a trigger; one was removed.*\n\n"
        + f"* {marks['high']} (09:15) Two functions must not share a trigger\n\n"
        + f"**Current task**: {WINDOW.current_task}\n"
    )


def test_for_a_context_what_was_proposed_is_not_said_again(log: Path) -> None:
    """The list says no priority, and what is high stands among the observations already."""
    write(log, WINDOW)
    write_reflection(
        log,
        DAY,
        LogReflection("The worker uses uv now.", 2, 300, 40, 1, {"p-20260305-001": "Use uv", "p-20260305-002": "Tabs"}),
        backups=log.parent,
    )
    log.write_text(log.read_text("utf-8") + "\n* `p-20260305-001` as I see it\n", "utf-8")
    kept = optimize_for_context(log.read_text("utf-8"))
    assert "Use uv" not in kept and "Tabs" not in kept
    assert "### 🔭 Reflected\n\nThe worker uses uv now.\n\n**Condensed**: 300 to 40" in kept
    assert "**Proposed**: 2, 1 said again" in kept and "* `p-20260305-001` as I see it" in kept


def test_for_a_context_a_flat_list_keeps_its_highs() -> None:
    flat = replace(WINDOW, segments=[replace(WORKER, title="", narrative="")])
    kept = optimize_for_context(render_observations(flat, DAY))
    assert [line for line in kept.splitlines() if line.startswith("* ")] == [
        "* 🔴 (09:15) Two functions must not share a trigger"
    ]
    assert optimize_for_context(kept) == kept
