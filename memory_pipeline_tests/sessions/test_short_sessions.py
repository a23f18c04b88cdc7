"""The rule of five counts the session: what fell short is observed when the session has five user messages in all."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
import pytest

from memory_pipeline.cli.choosing import RECENT_DAYS, days_in
from memory_pipeline.harnesses.model import Message, ParsedSession, Source
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.sessions.file_rows import new_row, read_row
from memory_pipeline.sessions.forks import typed_in_all
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.conftest import Entry, assistant, compaction, conversation, user, utc
from memory_pipeline_tests.sessions.machine import Machine

pytestmark = pytest.mark.usefixtures("only_two_stages")

MONDAY, TUESDAY = date(2025, 3, 3), date(2025, 3, 4)
EVENING = conversation("2025-03-03T23:40", users=4, topic="the evening")
NIGHT = conversation("2025-03-04T00:10", users=4, topic="the night")
SHORT = "its session has fewer than 5 user messages"


def windows(machine: Machine) -> list[tuple[date, str, str, bool, str | None]]:
    rows = sorted(machine.rows("windows"), key=lambda w: (w["started_at"], w["session_id"]))
    return [(w["day"], w["session_id"], w["trigger"], w["observed"], w["reason"]) for w in rows]


def observed(machine: Machine) -> dict[tuple[str, date], bool]:
    return {(w["session_id"], w["day"]): w["observed"] for w in machine.rows("windows")}


def one(at: str, text: str = "One more thing about the parcels.") -> Entry:
    return user(at, text)


def test_four_and_four_over_midnight_are_observed(machine: Machine) -> None:
    machine.write("s.jsonl", *EVENING, *NIGHT)
    machine.run()
    assert windows(machine) == [(MONDAY, "s", "shutdown", True, None), (TUESDAY, "s", "shutdown", True, None)]
    assert {row["day"] for row in machine.rows("observations")} == {MONDAY, TUESDAY}


def test_the_tail_after_a_compaction_is_observed(machine: Machine) -> None:
    before = conversation("2025-03-03T09:00", users=8, topic="before")
    after = conversation("2025-03-03T12:00", users=3, topic="after")
    machine.write("s.jsonl", *before, compaction("2025-03-03T11:00"), *after)
    machine.run()
    assert [(w[2], w[3]) for w in windows(machine)] == [("compaction", True), ("shutdown", True)]


def test_a_compaction_alone_makes_no_session_long(machine: Machine) -> None:
    before = conversation("2025-03-03T09:00", users=2, topic="before")
    after = conversation("2025-03-03T12:00", users=2, topic="after")
    machine.write("s.jsonl", *before, compaction("2025-03-03T11:00"), *after)
    machine.run()
    assert [w[2:] for w in windows(machine)] == [("compaction", True, None), ("shutdown", False, SHORT)]
    assert [w["rules_only"] for w in machine.rows("windows")] == [False, True]


def test_what_is_said_a_week_later_has_the_first_day_observed_once(machine: Machine) -> None:
    later = MONDAY + timedelta(days=7)
    machine.write("other.jsonl", *conversation("2025-03-03T09:00", topic="invoices"))
    machine.write("s.jsonl", *EVENING)
    machine.run()
    assert observed(machine) == {("other", MONDAY): True, ("s", MONDAY): False}
    mine = pl.col("session_id") == "other"
    kept = {name: machine.lake.read(name).filter(mine) for name in ("segments", "observations")}

    machine.write("s.jsonl", *EVENING, one(f"{later}T09:00"))
    assert machine.due() == [MONDAY, later]
    machine.run()
    assert observed(machine) == {("other", MONDAY): True, ("s", MONDAY): True, ("s", later): True}
    assert {s["session_id"] for s in machine.rows("segments", MONDAY)} == {"other", "s"}
    for name, frame in kept.items():
        assert machine.lake.read(name, [MONDAY]).filter(mine).equals(frame.filter(pl.col("day") == MONDAY))
    assert machine.tables() == machine.made_anew()

    machine.write("s.jsonl", *EVENING, one(f"{later}T09:00"), one(f"{later + timedelta(days=1)}T09:00"))
    assert machine.due() == [later + timedelta(days=1)]  # the first day has all that it can have


def test_a_day_is_out_of_date_exactly_when_the_session_reaches_five(machine: Machine) -> None:
    days = [MONDAY + timedelta(days=n) for n in range(4)]
    said = [one(f"{days[0]}T09:00"), one(f"{days[0]}T09:10")]
    machine.write("s.jsonl", *said)
    machine.run()
    said.append(one(f"{days[1]}T09:00"))
    machine.write("s.jsonl", *said)
    assert machine.due() == [days[1]]
    machine.run()
    said += [one(f"{days[2]}T09:00"), one(f"{days[2]}T09:10")]
    machine.write("s.jsonl", *said)
    assert machine.due() == days[:3]
    machine.run()
    assert set(observed(machine).values()) == {True}
    machine.write("s.jsonl", *said, one(f"{days[3]}T09:00"))
    assert machine.due() == [days[3]]


def test_a_fork_that_goes_on_has_its_original_observed(machine: Machine) -> None:
    """What they share belongs to the original: without this it would be observed nowhere."""
    machine.write("original.jsonl", *EVENING)
    machine.run()
    machine.write("fork.jsonl", *EVENING, *NIGHT[:4])
    machine.run()
    assert observed(machine) == {("original", MONDAY): True, ("fork", TUESDAY): True}
    assert machine.tables() == machine.made_anew()


def test_copies_of_a_session_make_it_no_longer(machine: Machine) -> None:
    machine.write("a/s.jsonl", *EVENING)
    machine.write("b/s.jsonl", *EVENING)
    machine.run()
    assert [w[1:] for w in windows(machine)] == [("s", "shutdown", False, SHORT)]


def test_a_session_in_two_files_counts_what_both_have(machine: Machine) -> None:
    machine.write("a/s.jsonl", *EVENING, session_id="s")
    machine.write("b/s.jsonl", *EVENING[4:], *NIGHT[:2], session_id="s")
    machine.run()
    assert observed(machine) == {("s", MONDAY): True, ("s", TUESDAY): True}


PLAN = "Implement the following plan:\n\n# Parcels by region\n\nEach region gets a depot of its own."


def test_an_approved_plan_makes_a_session_long(machine: Machine) -> None:
    work = assistant("2025-03-03T09:05", "I gave each region a depot, since the audit office asks for it.")
    machine.write("plan.jsonl", user("2025-03-03T09:00", PLAN), work, one("2025-03-03T09:10"))
    machine.write("alone.jsonl", user("2025-03-03T10:00", PLAN), assistant("2025-03-03T10:05", "Done."))
    machine.write("spoken-of.jsonl", one("2025-03-03T11:00"), user("2025-03-03T11:05", PLAN))
    machine.run()
    assert observed(machine) == {("plan", MONDAY): True, ("alone", MONDAY): True, ("spoken-of", MONDAY): False}
    machine.write("plan.jsonl", user("2025-03-03T09:00", PLAN), work, one("2025-03-03T09:10"), *NIGHT[:1])
    machine.run()
    assert observed(machine)["plan", TUESDAY]
    assert machine.tables() == machine.made_anew()


def test_what_a_model_gave_a_sub_agent_was_approved_by_nobody() -> None:
    nine, zone = utc("2025-03-03T09:00"), ZoneInfo("UTC")
    messages = (Message("1", "injected", nine, nine, PLAN, 1), Message("2", "assistant", nine, nine, "Done.", 2))
    session = ParsedSession("s", "claude_code", "Parcels", "/work", messages)
    row = new_row("s.jsonl", Source("s.jsonl"), "1")
    assert read_row(row, session, zone)["begins_with_plan"]
    assert not read_row(row, replace(session, session_id="s/agent-1"), zone)["begins_with_plan"]


def row(session: str, *days: list[str] | None, inherited: int = 0, parent: str | None = None, **other: Any) -> Any:
    entries = [{"typed": typed, "inherited": inherited} for typed in days]
    return {"session_id": session, "parent_id": parent, "excluded": None, "days": entries} | other


@each(
    ("rows", "typed"),
    [
        ([row("s", ["1", "2"], ["3"])], {"s": 3}),
        ([row("s", ["1", "2"]), row("s", ["2", "3"])], {"s": 3}),  # two files of one session
        ([row("s", ["1", "2"]), row("t", ["3"])], {"s": 2, "t": 1}),
        ([row("s", ["1", "2"]), row("t", ["1", "2", "3"])], {"s": 3, "t": 3}),  # a fork with the ids of its original
        ([row("s", ["1"]), row("t", ["5", "6"], inherited=1, parent="s")], {"s": 2, "t": 2}),  # with ids of its own
        ([row("s", ["1"]), row("t", ["5", "6"], parent="s")], {"s": 1, "t": 2}),  # started by it, no copy
        ([row("s", ["1"]), row("t", ["1", "2"], excluded="line 1 says DO NOT INDEX")], {"s": 1}),
        ([row("s", None)], {"s": 0}),  # read by an earlier version, and gone since
        ([row("s")], {"s": 0}),
    ],
)
def test_how_many_messages_were_typed_in_a_session(rows: list[Any], typed: dict[str, int]) -> None:
    assert typed_in_all(rows) == typed


# --- which days a plain `memory run` does ---


def test_a_run_of_the_last_days_takes_the_day_that_fell_short_with_it(machine: Machine) -> None:
    days = [MONDAY + timedelta(days=n) for n in range(1, RECENT_DAYS + 2)]
    for day in days:
        machine.write(f"{day}.jsonl", *conversation(f"{day}T09:00", topic=f"{day}"))
    machine.write("s.jsonl", *EVENING)
    machine.run()
    assert chosen(machine) == days[-RECENT_DAYS:]
    machine.write("s.jsonl", *EVENING, one(f"{days[-1]}T10:00"))
    assert chosen(machine) == [MONDAY, *days[-RECENT_DAYS:]]
    machine.run()
    assert chosen(machine) == days[-RECENT_DAYS:]


def chosen(machine: Machine) -> list[date]:
    """The days of a `memory run` without options."""
    catalogue = Catalogue(machine.lake, machine.settings)
    catalogue.refresh(find_sources(roots(machine.settings)))
    return days_in(catalogue, None, everything=False)


# --- what is observed of a session that stays short ---

RULE = "Never deploy on a Friday, because nobody is there to watch it."


def test_a_rule_in_a_short_session_is_observed_and_nothing_else_of_it(machine: Machine) -> None:
    talk = conversation("2025-03-03T09:00", users=2)
    machine.write("s.jsonl", *talk, user("2025-03-03T10:00", RULE))
    machine.run()
    (window,) = machine.rows("windows")
    assert (window["observed"], window["rules_only"], window["reason"]) == (False, True, SHORT)
    assert [(o["text"], o["priority"], o["trust"]) for o in machine.rows("observations")] == [(RULE, "high", "user")]
    assert RULE in machine.settings.daily_log(MONDAY).read_text("utf-8")
    assert machine.due() == []


def test_a_correction_in_a_short_session_is_observed(machine: Machine) -> None:
    said = "No, that is wrong: the parcels service must use the staging database, not production."
    machine.write("s.jsonl", *conversation("2025-03-03T09:00", users=1), user("2025-03-03T10:00", said))
    machine.run()
    assert [o["text"] for o in machine.rows("observations")] == [said]


def test_a_short_session_without_a_rule_gives_nothing(machine: Machine) -> None:
    machine.write("s.jsonl", *EVENING)
    machine.run()
    assert machine.rows("segments") == machine.rows("observations") == []


def test_when_the_session_becomes_long_its_rule_keeps_its_id(machine: Machine) -> None:
    machine.write("s.jsonl", *EVENING[:4], user("2025-03-03T23:50", RULE))
    machine.run()
    (rule,) = machine.rows("observations")
    machine.write("s.jsonl", *EVENING[:4], user("2025-03-03T23:50", RULE), *NIGHT)
    machine.run()
    found = {o["observation_id"]: o for o in machine.rows("observations", MONDAY)}
    assert found[rule["observation_id"]]["text"] == RULE
    assert set(observed(machine).values()) == {True}
