"""`memory review` at a terminal: one proposal at a time, decided by single keys."""

from __future__ import annotations

import re
import resource
import signal
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline_tests.cases import nightly
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.cli.terminal import Terminal
from memory_pipeline_tests.rows import DAY, events, observation, proposal, put, say, workspace

LINES = (
    "Never use npm in this repository, always pnpm.",
    "The parcels API answers 404, not 403, for foreign parcels.",
    "Commit messages say why the change was made.",
)
IDS = [f"p-{DAY:%Y%m%d}-{number:03d}" for number in range(1, 31)]


def offer(home: Path, *texts: str) -> Lake:
    """A workspace in which these lines, each said by the person in one message, are pending in this order."""
    _, lake = workspace(home / ".memory-pipeline")
    messages = say(lake, "s1", *(f"user: Please note: {text}" for text in texts))
    spans = [{"message_id": m["message_id"], "start": 13, "end": len(m["text"])} for m in messages]
    told = list(zip(texts, spans, strict=True))
    put(lake, "observations", *(observation(text, evidence=[span]) for text, span in told))
    put(lake, "proposals", *(proposal(n, text, evidence=[span]) for n, (text, span) in enumerate(told, 1)))
    return lake


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Three lines are pending."""
    offer(tmp_path / "home", *LINES)
    return tmp_path / "home"


def lake_of(home: Path) -> Lake:
    return Lake(home / ".memory-pipeline" / "lake")


def states(home: Path) -> list[str]:
    return [str(status) for status in ProposalLog(lake_of(home)).frame["status"]]


def in_memory(home: Path) -> list[str]:
    """The lines that MEMORY.md has, without their dates and ids."""
    path = home / ".memory-pipeline" / "MEMORY.md"
    text = path.read_text("utf-8") if path.exists() else ""
    return re.findall(r"^- \(.*?\) (.*?) <!--", text, re.M)


def decided(
    home: Path, keys: str, *, seen: str = "There are no more proposals.", env: dict[str, str] | None = None
) -> str:
    """Press these keys, then q at the end; what was shown."""
    with Terminal(home, "review", env=env) as terminal:
        terminal.sees("1 of 3")
        terminal.press(keys)
        terminal.sees(seen)
        terminal.press("q")
        assert terminal.ends() == 0
        return terminal.text


def test_each_comes_with_what_was_said_and_where(home: Path) -> None:
    with Terminal(home, "review") as terminal:
        terminal.sees(f"1 of 3 · {IDS[0]} · 🔴 Hard Rules")
        terminal.sees(LINES[0])
        terminal.sees("2025-03-05 09:00 · you in “session s1”")
        terminal.sees("/sessions/s1.jsonl:1")
        terminal.sees(f"after: Please note: {LINES[1]}")
        terminal.press("l")
        terminal.sees(f"2 of 3 · {IDS[1]}")
        terminal.sees("/sessions/s1.jsonl:2")
        terminal.sees(f"before: Please note: {LINES[0]}")


def test_words_that_differ_from_the_line_are_quoted(tmp_path: Path) -> None:
    lake = offer(tmp_path, *LINES)
    row = proposal(4, "Parcels of others do not exist.", priority="high", support=9)
    put(lake, "proposals", row | {"evidence": lake.read("proposals")["evidence"][1].to_list() * 3})
    with Terminal(tmp_path, "review") as terminal:
        terminal.sees("Parcels of others do not exist.")
        terminal.sees(f"“{LINES[1]}”")
        terminal.sees("and 1 more: `memory why p-20250305-004`")


def test_keys_decide_at_once_and_the_lines_reach_memory(home: Path) -> None:
    shown = decided(home, "arl")
    assert states(home) == ["approved", "rejected", "pending"]
    assert in_memory(home) == [LINES[0]]
    assert "1 approved, 1 rejected, 1 pending." in shown
    assert IDS[0] not in (review := (home / ".memory-pipeline" / "REVIEW.md").read_text("utf-8"))
    assert IDS[2] in review
    assert events(lake_of(home), "decided")["surface"].unique().to_list() == ["command"]


def test_an_edited_line_is_promoted_as_edited(home: Path) -> None:
    shown = decided(home, "e and npx\nll")
    assert "approved as: Never use npm in this repository, always pnpm. and npx" in shown
    assert in_memory(home) == [f"{LINES[0]} and npx"]
    assert events(lake_of(home), "decided")["text"].to_list() == [f"{LINES[0]} and npx"]


def test_the_line_can_be_edited_anywhere(home: Path) -> None:
    decided(home, "e\x01Really: \x05\x7f!\nll")  # home, end, backspace
    assert in_memory(home) == ["Really: Never use npm in this repository, always pnpm!"]


@pytest.mark.parametrize("keys", ["e\n", "e\x15\n", "e\x01\x0b\x04"], ids=["unchanged", "emptied", "end of input"])
def test_an_edit_that_changes_nothing_decides_nothing(home: Path, keys: str) -> None:
    shown = decided(home, f"{keys}lll")
    assert "Unchanged; still pending." in shown
    assert states(home) == ["pending"] * 3


def test_ctrl_c_gives_up_an_edit_and_not_the_review(home: Path) -> None:
    with Terminal(home, "review") as terminal:
        terminal.sees("1 of 3")
        terminal.press("e")
        terminal.sees(f"> {LINES[0]}")
        terminal.press(" all wrong")
        terminal.sees("all wrong")
        time.sleep(1)  # Python's input() takes no signal between showing a key and waiting for the next one
        terminal.press("\x03")
        terminal.sees("Unchanged; still pending.")
        terminal.sees("1 of 3")
        terminal.press("rllq")
        assert terminal.ends() == 0
    assert states(home) == ["rejected", "pending", "pending"]


def test_the_last_step_can_be_undone_until_the_next_is_taken(home: Path) -> None:
    with Terminal(home, "review") as terminal:
        terminal.sees("1 of 3")
        terminal.press("u")
        terminal.sees("Nothing to undo")
        terminal.press("a")
        terminal.sees("2 of 3")
        terminal.press("u")
        terminal.sees(f"undone: {IDS[0]} is pending")
        terminal.sees("1 of 3")
        terminal.press("ra")
        terminal.sees("3 of 3")
        terminal.press("u")
        terminal.sees("2 of 3")
        terminal.press("u")
        terminal.sees("Nothing to undo: earlier decisions are recorded.")
        terminal.press("q")
        assert terminal.ends() == 0
    assert states(home) == ["rejected", "pending", "pending"]
    assert events(lake_of(home), "decided").height == 1
    assert in_memory(home) == []


def test_a_kill_costs_the_last_decision_only(home: Path) -> None:
    with Terminal(home, "review") as terminal:
        terminal.sees("1 of 3")
        terminal.press("ar")
        terminal.sees("3 of 3")
        terminal.signal(signal.SIGKILL)
        terminal.ends()
    assert states(home) == ["approved", "pending", "pending"]
    assert memory_json(home, "review")["promoted"] == [IDS[0]]
    assert in_memory(home) == [LINES[0]]


def test_a_wrong_key_tells_the_right_ones_and_decides_nothing(home: Path) -> None:
    with Terminal(home, "review") as terminal:
        terminal.sees("1 of 3")
        for wrong in ("x", "ü", "\x1b[A", "\x1bOB", "\x1b[15~", "\x1b"):  # letters, arrows, F5, escape
            terminal.press(wrong)
            terminal.sees("Unknown key. The keys are:")
            terminal.sees("?  this list")
        terminal.press("\n?")
        terminal.sees("a  approve")
        terminal.press("q")
        assert terminal.ends() == 0
    assert terminal.text.count("Unknown key") == 6
    assert states(home) == ["pending"] * 3


@pytest.mark.parametrize("how", ["Ctrl-C", "the window is closed", *nightly("Ctrl-D", "SIGTERM")])
def test_whatever_ends_it_keeps_what_is_decided(home: Path, how: str) -> None:
    with Terminal(home, "review") as terminal:
        terminal.sees("1 of 3")
        terminal.press("ar")
        terminal.sees("3 of 3")
        match how:
            case "Ctrl-C":
                terminal.press("\x03")
                assert terminal.ends() == 128 + signal.SIGINT
            case "Ctrl-D":
                terminal.press("\x04")
                assert terminal.ends() == 0
            case "SIGTERM":
                terminal.signal(signal.SIGTERM)
                assert terminal.ends() == 128 + signal.SIGTERM
            case _:
                terminal.hang_up()
                terminal.ends()
        if how != "the window is closed":
            assert "1 approved, 1 rejected, 1 pending." in terminal.text
            assert terminal.modes_now() == terminal.modes
    assert states(home) == ["approved", "rejected", "pending"]
    assert in_memory(home) == [LINES[0]]


def test_a_proposal_that_was_decided_elsewhere_meanwhile_stays_as_it_was(home: Path) -> None:
    with Terminal(home, "review") as terminal:
        terminal.sees("1 of 3")
        assert memory(home, "review", "--reject", IDS[0]).returncode == 0
        terminal.press("aa")
        terminal.sees(f"{IDS[0]} is already rejected")
        terminal.press("q")
        assert terminal.ends() == 0
    assert states(home) == ["rejected", "approved", "pending"]
    assert in_memory(home) == [LINES[1]]


def show_since(home: Path, number: int, days: int) -> None:
    """The proposal with that number was first shown so many days ago, and on each day since."""
    shown_at = datetime.now(UTC) - timedelta(days=days)
    row = {
        "day": shown_at.date(),
        "proposal_id": IDS[number - 1],
        "surface": "REVIEW.md",
        "kind": "shown",
        "happened_at": shown_at,
    }
    put(lake_of(home), "events", row)
    for passed in range(days):
        on = {"day": (shown_at + timedelta(days=passed)).date(), "proposal_id": IDS[number - 1]}
        put(lake_of(home), "events", on | {"kind": "shown_day", "surface": "REVIEW.md"})


def test_what_expires_soon_leads_and_says_so(home: Path) -> None:
    show_since(home, 3, days=6)
    show_since(home, 2, days=8)
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    with Terminal(home, "review") as terminal:
        terminal.sees(f"{IDS[1]} expired")
        terminal.sees(f"1 of 2 · {IDS[2]}")
        terminal.sees(f"expires on {tomorrow}")
        terminal.press("l")
        terminal.sees(f"2 of 2 · {IDS[0]}")
        assert "expires" not in terminal.text.split(IDS[0])[1]
        terminal.press("q")
        assert terminal.ends() == 0
    assert states(home) == ["pending", "expired", "pending"]


def test_what_was_shown_is_on_record(home: Path) -> None:
    with Terminal(home, "review") as terminal:
        terminal.sees("1 of 3")
        terminal.press("l")
        terminal.sees("2 of 3")
        terminal.press("q")
        assert terminal.ends() == 0
    shown = events(lake_of(home), "shown").filter(pl.col("surface") == "command")
    assert sorted(shown["proposal_id"]) == IDS[:2]
    assert memory(home, "review").returncode == 0
    shown = events(lake_of(home), "shown").filter(pl.col("surface") == "command")
    assert sorted(shown["proposal_id"]) == IDS[:3]


def test_a_line_that_must_not_be_promoted_is_told_with_the_reason(home: Path) -> None:
    (home / ".memory-pipeline" / "MEMORY.md").write_text(f"# Memory\n\n## Hard Rules\n\n- {LINES[0]}\n", "utf-8")
    shown = decided(home, "all")
    assert f"{IDS[0]} is not promoted: MEMORY.md already says this, in line 5" in shown
    assert "0 approved, 0 rejected, 1 invalid, 2 pending." in shown
    assert states(home) == ["invalid", "pending", "pending"]


def test_a_narrow_window_is_filled_and_not_exceeded(home: Path) -> None:
    with Terminal(home, "review", columns=40) as terminal:
        terminal.sees("1 of 3")
        terminal.press("?")
        terminal.sees("this list")
        terminal.press("ae is it?\n")
        terminal.sees("3 of 3")
        terminal.press("lq")
        assert terminal.ends() == 0
    shown = [line for line in terminal.text.splitlines() if "/" not in line and not line.startswith("> ")]
    assert max(map(len, shown)) <= 40
    assert " ".join(LINES[2].split()) in " ".join(terminal.text.split())
    assert in_memory(home) == [LINES[0], f"{LINES[1]} is it?"]


def test_nothing_of_a_transcript_moves_the_cursor_or_hides(tmp_path: Path) -> None:
    offer(tmp_path, "Never \x1b[2J\x1b]0;title\x07 use\u202e npm\u200b.", *LINES[1:])
    with Terminal(tmp_path, "review") as terminal:
        terminal.sees("1 of 3")
        terminal.sees("jsonl:1")
        terminal.press("q")
        assert terminal.ends() == 0
    assert "Never [2J]0;title use npm." in terminal.text
    assert not re.search("[\x07\u202e\u200b]", terminal.text)


def test_without_anything_pending_it_says_so(tmp_path: Path) -> None:
    with Terminal(tmp_path, "review") as terminal:
        terminal.sees("Nothing is pending.")
        assert terminal.ends() == 0


def test_where_it_is_asked_for_or_nobody_is_there_it_is_a_list(home: Path) -> None:
    piped = memory(home, "review")
    with Terminal(home, "review", "--list", columns=240) as terminal:
        assert terminal.ends() == 0
    assert piped.stdout.splitlines() == terminal.text.splitlines()
    assert "3 pending. `memory review --approve ID`" in piped.stdout
    with Terminal(home, "review", "--approve", IDS[0]) as terminal:
        terminal.sees("2 pending.")
        assert terminal.ends() == 0


def test_a_page_of_twenty_is_decided_quickly_and_the_next_one_follows(tmp_path: Path) -> None:
    offer(tmp_path, *(f"Rule {n}: the {word} service is deployed by hand." for n, word in enumerate(_words(30))))
    begun = processor_seconds()
    with Terminal(tmp_path, "review", "--list") as terminal:
        assert terminal.ends() == 0
    one_call, begun = processor_seconds() - begun, processor_seconds()
    with Terminal(tmp_path, "review") as terminal:
        for number, key in enumerate("ar" * 10, 1):
            terminal.sees(f"{number} of 30")
            terminal.press(key)
        terminal.sees("21 of 30")
        terminal.press("q")
        assert terminal.ends() == 0
    assert processor_seconds() - begun < 20 * one_call  # 3 calls were measured
    assert sorted(states(tmp_path)) == ["approved"] * 10 + ["pending"] * 10 + ["rejected"] * 10
    assert len(in_memory(tmp_path)) == 10


def processor_seconds() -> float:
    """Of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _words(count: int) -> list[str]:
    return [f"{chr(97 + n % 26)}{'lmnopqrst'[n // 26]}{chr(122 - n % 26)}ira" for n in range(count)]
