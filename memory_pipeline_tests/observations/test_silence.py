"""Why nothing was kept: `memory show DAY` and `memory status` say it, from the tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

import polars as pl
import pytest

from memory_pipeline.cli.show import show
from memory_pipeline.observations import silence
from memory_pipeline.observations.silence import silences
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline_tests.conftest import assistant, conversation, tool, user
from memory_pipeline_tests.llm.openai_server import Fail, openai_server
from memory_pipeline_tests.sessions.machine import Machine

DAY = date(2025, 3, 3)
NINE = "2025-03-03T09:00"
SHORT = "its session has fewer than 5 user messages, and nothing worth keeping in what its user said"


def reasons(machine: Machine) -> list[tuple[str, str]]:
    catalogue = Catalogue(machine.lake, machine.settings)
    return [(found.reason, found.detail) for found in silences(machine.lake, catalogue, [DAY])]


def short(machine: Machine) -> None:
    machine.write("s.jsonl", *conversation(NINE, users=3))


def nobody(machine: Machine) -> None:
    machine.write("s.jsonl", assistant(NINE, "Hello."), tool("2025-03-03T09:01", "exit 0"))


def nothing(machine: Machine) -> None:
    machine.write("s.jsonl", *[user(f"2025-03-03T09:{n:02}", "ok") for n in range(5)])


def left_out(machine: Machine) -> None:
    machine.write("s.jsonl", *conversation(NINE), user("2025-03-03T10:00", "DO NOT INDEX"))


def copied(machine: Machine) -> None:
    """A fork with nothing of its own."""
    said = [*conversation(NINE), user("2025-03-03T10:00", "Never deploy parcels on a Friday.", "rule")]
    machine.write("a.jsonl", *said)
    machine.write("b.jsonl", *said)


@pytest.mark.parametrize(
    ("make", "reason", "detail"),
    [
        (short, SHORT, "3 of 5"),
        (nobody, "no message of a person in it", ""),
        (nothing, silence.NOTHING, ""),
        (left_out, silence.LEFT_OUT, "line 12 says DO NOT INDEX"),
        (copied, silence.REPEATED, ""),
    ],
)
def test_why_nothing_was_kept(make: Callable[[Machine], None], reason: str, detail: str, machine: Machine) -> None:
    make(machine)
    machine.run(DAY)
    assert reasons(machine) == [(reason, detail)]


def test_a_turn_that_was_taken_back_is_a_reason(machine: Machine) -> None:
    """On the next day the user goes back to the evening before, and begins another branch there."""
    path = machine.write(
        "s.jsonl",
        *conversation("2025-03-02T09:00"),
        user(NINE, "Write it in Perl.", "taken back"),
        user("2025-03-04T09:00", "Write it in Python.", "instead"),
    )
    records = [json.loads(line) for line in path.read_text().splitlines()]
    records[-1]["parentId"] = records[-2]["parentId"]
    machine.write_lines("s.jsonl", *records)
    machine.run(DAY)
    assert reasons(machine) == [("all that the user typed in it was taken back", "")]


def test_a_session_that_goes_on_is_still_open(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    now = datetime.now(UTC)
    machine.write("s.jsonl", *[user(now - timedelta(seconds=5 - n), f"This is message {n}.") for n in range(5)])
    machine.run(now.date(), (now - timedelta(seconds=5)).date())
    found = silences(machine.lake, Catalogue(machine.lake, machine.settings))
    assert found[-1].reason == "the session is still active"
    assert found[-1].detail == "observed 10 minutes after its last message"


def test_what_waits_for_a_model_says_what_it_answered(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write("s.jsonl", *conversation(NINE))
    with openai_server(Fail(500, "The model is down.")) as server:
        for name, value in {
            **{"OPENAI_API_KEY": "sk-test", "OBSERVER_MODEL": "openai:scripted", "OBSERVER_BASE_URL": server.url},
            **{"MEMORY_MODEL_RETRIES": "0", "MEMORY_DAILY_BUDGET_TOKENS": "10000000"},
        }.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(Exception, match="down"):
            machine.run(DAY)
    ((reason, detail),) = reasons(machine)
    assert reason == silence.WAITS
    assert "The model is down." in detail


def test_what_the_model_answered_unusably_says_so(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.write("s.jsonl", *conversation(NINE))
    with openai_server("I am sorry, I cannot help with that.") as server:
        for name, value in {
            **{"OPENAI_API_KEY": "sk-test", "OBSERVER_MODEL": "openai:scripted", "OBSERVER_BASE_URL": server.url},
            **{"MEMORY_MODEL_RETRIES": "0", "MEMORY_DAILY_BUDGET_TOKENS": "10000000"},
        }.items():
            monkeypatch.setenv(name, value)
        machine.run(DAY)
    ((reason, detail),) = reasons(machine)
    assert reason == silence.UNUSABLE
    assert detail


def test_days_that_were_not_run_yet_say_so(machine: Machine) -> None:
    machine.write("s.jsonl", *conversation(NINE))
    machine.due()  # reads the file, and runs nothing
    assert reasons(machine) == [(silence.NOT_STORED, f"`memory run --from {DAY} --to {DAY}`")]


def test_the_log_says_it_of_each_session_and_the_status_counts(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = user("2025-03-03T10:00", "Never deploy parcels on a Friday.")
    machine.write("long.jsonl", *conversation(NINE), rule)
    machine.write("short.jsonl", *conversation("2025-03-03T12:30", users=3, topic="invoices"))
    machine.run(DAY)
    capsys.readouterr()
    show(f"{DAY}")
    shown = capsys.readouterr().out
    assert "Never deploy parcels" in shown
    assert "No observations came from 1 of the 2 windows of 2025-03-03:\n" in shown
    assert f"\n  12:30 Please look at invoices, part 0.: {SHORT} (3 of 5)\n" in shown
    told = machine.status(capsys)
    assert (told["windows"], told["windows_with_nothing"]) == (2, {SHORT: 1})
    show(f"{DAY}", high=True)  # goes into a model's context
    assert "No observations came" not in (said := capsys.readouterr()).out
    assert "No observations came" in said.err


def test_every_window_without_an_observation_has_one_reason(machine: Machine) -> None:
    for make in (short, nobody, copied):
        make(machine)
    machine.write("late.jsonl", *conversation("2025-03-04T09:00", users=2))
    machine.run()
    kept = machine.lake.read("observations")["dedupe_key"].unique().to_list()
    empty = machine.lake.read("windows").filter(~pl.col("dedupe_key").is_in(kept)).height
    found = silences(machine.lake, Catalogue(machine.lake, machine.settings))
    assert empty == sum(each.is_window for each in found) > 0
    assert all(each.reason for each in found)
