"""Windows: every message of a session in exactly one, cut at compactions and at the zone's midnight."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as change

from memory_pipeline.harnesses.model import Compaction, Image, Message, ParsedSession, Role
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline.sessions.windows import (
    COMPLETED,
    Window,
    begins_with_plan,
    cut_windows,
    dedupe_key,
    digest,
    reason_not_observed,
    windows_by_day,
)
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.conftest import assistant, compaction, user, utc, write_session

UTC_ZONE = ZoneInfo("UTC")
NOON = utc("2025-03-05T12:00")


def said(minute: float, role: Role = "user", text: str = "text", id: str | None = None) -> Message:
    at = NOON + timedelta(minutes=minute)
    return Message(id or f"m{minute}", role, at, at, text, line=int(minute) + 2)


def session(*messages: Message, compactions: tuple[tuple[str, ...], ...] = (), id: str = "s") -> ParsedSession:
    return ParsedSession(id, "pi", "name", "/src", messages, tuple(Compaction(ids) for ids in compactions))


def cut(parsed: ParsedSession, zone: str = "UTC") -> list[Window]:
    return cut_windows(parsed, parsed.messages, ZoneInfo(zone))


def shape(windows: list[Window]) -> list[tuple[str, list[str]]]:
    return [(w.trigger, [m.message_id for m in w.messages]) for w in windows]


# --- where windows begin and end ---


def test_a_session_without_compaction_is_one_shutdown_window() -> None:
    assert shape(cut(session(said(0), said(1)))) == [("shutdown", ["m0", "m1"])]


def test_a_session_without_messages_has_no_window() -> None:
    assert cut(session()) == []


def test_what_each_compaction_summarised_away_is_a_window_and_the_rest_is_another() -> None:
    parsed = session(said(0), said(1), said(2), said(3), compactions=(("m0", "m1"), ("m2",)))
    assert shape(cut(parsed)) == [("compaction", ["m0", "m1"]), ("compaction", ["m2"]), ("shutdown", ["m3"])]


def test_an_empty_compaction_makes_no_window() -> None:
    parsed = session(said(0), said(1), compactions=((), ("m0",), ()))
    assert shape(cut(parsed)) == [("compaction", ["m0"]), ("shutdown", ["m1"])]


def test_a_compaction_of_the_next_day_leaves_the_evening_before_as_it_was() -> None:
    """Else a window that was observed yesterday would be another one today."""
    evening, night = said(11 * 60), said(13 * 60)
    windows = cut(session(evening, night, compactions=((evening.message_id, night.message_id),)))
    assert [(w.day, w.trigger) for w in windows] == [
        (date(2025, 3, 5), "shutdown"),
        (date(2025, 3, 6), "compaction"),
    ]
    assert windows[0].dedupe_key == cut(session(evening))[0].dedupe_key
    assert windows[0].dedupe_key != windows[1].dedupe_key


def test_a_real_file_is_cut_where_its_compaction_says(tmp_path: Path) -> None:
    """`kept` is the first entry that stays in the context; the summary itself is part of the rest."""
    path = write_session(
        tmp_path / "s.jsonl",
        user("2025-03-05T12:00", "one"),
        assistant("2025-03-05T12:01", "two"),
        user("2025-03-05T12:02", "three", id="kept"),
        compaction("2025-03-05T12:03", kept="kept"),
        user("2025-03-05T12:04", "four"),
    )
    windows = cut(parse_file(path))
    assert [(w.trigger, [m.text for m in w.messages]) for w in windows] == [
        ("compaction", ["one", "two"]),
        ("shutdown", ["three", "What was said so far.", "four"]),
    ]


MIDNIGHTS = [
    # zone, the last moment of 5 March there
    ("UTC", "2025-03-05T23:59:59.999"),
    ("Europe/London", "2025-03-05T23:59:59.999"),
    ("America/New_York", "2025-03-06T04:59:59.999"),
    ("Asia/Kolkata", "2025-03-05T18:29:59.999"),
    ("Pacific/Kiritimati", "2025-03-05T09:59:59.999"),  # 14 hours ahead
]


@each(("zone", "last"), MIDNIGHTS)
def test_midnight_of_the_zone_cuts_a_session_in_two(zone: str, last: str, tmp_path: Path) -> None:
    moment = utc(last)
    path = write_session(
        tmp_path / "s.jsonl", user(moment, "before"), user(moment + timedelta(milliseconds=1), "after")
    )
    days = windows_by_day(parse_file(path), ZoneInfo(zone))
    assert {day: [m.text for w in windows for m in w.messages] for day, windows in days.items()} == {
        date(2025, 3, 5): ["before"],
        date(2025, 3, 6): ["after"],
    }


def test_the_repeated_hour_of_autumn_is_one_window() -> None:
    """01:30 happens twice in London on 26 October; it is still one day."""
    moments = [utc("2025-10-26T00:30"), utc("2025-10-26T01:30"), utc("2025-10-26T23:59")]
    messages = [change(said(i), said_at=moment) for i, moment in enumerate(moments)]
    assert [len(w.messages) for w in cut(session(*messages), "Europe/London")] == [3]


@st.composite
def sessions(draw: st.DrawFn) -> ParsedSession:
    """Any session of up to three days with up to three compactions, many messages at one and the same time."""
    minutes = sorted(draw(st.lists(st.integers(0, 3 * 24 * 6), max_size=12)))
    messages = [said(minute * 10, id=f"m{number}") for number, minute in enumerate(minutes)]
    owner = draw(st.lists(st.integers(0, 3), min_size=len(messages), max_size=len(messages)))
    compactions = (tuple(m.message_id for m, o in zip(messages, owner, strict=True) if o == n) for n in range(3))
    return session(*messages, compactions=tuple(compactions))


@given(sessions(), st.sampled_from(["UTC", "America/New_York", "Pacific/Kiritimati"]))
def test_every_message_lies_in_exactly_one_window(parsed: ParsedSession, zone: str) -> None:
    windows = cut(parsed, zone)
    assert sorted(m.message_id for w in windows for m in w.messages) == sorted(m.message_id for m in parsed.messages)
    assert all(w.messages for w in windows)
    assert len({w.dedupe_key for w in windows}) == len(windows)
    for window in windows:
        assert {m.said_at.astimezone(ZoneInfo(zone)).date() for m in window.messages} == {window.day}


@given(sessions())
def test_windows_by_day_are_the_same_windows(parsed: ParsedSession) -> None:
    by_day = windows_by_day(parsed, UTC_ZONE)
    assert [w for day in by_day for w in by_day[day]] == sorted(cut(parsed), key=lambda w: w.day)
    assert all(w.day == day for day, windows in by_day.items() for w in windows)


@given(sessions())
def test_a_day_cut_by_itself_has_the_keys_that_it_has_in_the_whole(parsed: ParsedSession) -> None:
    for windows in windows_by_day(parsed, UTC_ZONE).values():
        messages = [m for m in parsed.messages if any(m in w.messages for w in windows)]
        assert cut_windows(parsed, messages, UTC_ZONE) == windows


# --- dedupe keys ---


def test_a_dedupe_key_is_a_hash_of_session_trigger_and_first_time() -> None:
    key = dedupe_key("s", "shutdown", NOON)
    assert key == hashlib.sha256(b"s\x1fshutdown\x1f2025-03-05T12:00:00+00:00").hexdigest()
    others = [
        dedupe_key("t", "shutdown", NOON),
        dedupe_key("s", "compaction", NOON),
        dedupe_key("s", "shutdown", NOON + timedelta(milliseconds=1)),
    ]
    assert len({key, *others}) == 4


def test_a_window_that_grows_keeps_its_key() -> None:
    """The session was read while it went on: its observations must be replaced, not doubled."""
    (before,) = cut(session(said(0), said(1)))
    (after,) = cut(session(said(0), said(1), said(2)))
    assert before.dedupe_key == after.dedupe_key == dedupe_key("s", "shutdown", NOON)


def test_windows_of_one_time_and_trigger_have_different_keys_and_keep_them() -> None:
    same = [said(0, id=name) for name in "abc"]
    parsed = session(*same, compactions=(("a",), ("b",), ("c",)))
    keys = [w.dedupe_key for w in cut(parsed)]
    assert len(set(keys)) == 3
    assert keys[0] == dedupe_key("s", "compaction", NOON)
    assert keys == [w.dedupe_key for w in cut(parsed)]


# --- what a window says of itself ---

PASTED = 'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nValueError: no such depot\n'


def window(*messages: Message, trigger: str = "shutdown") -> Window:
    return Window("k", "s", date(2025, 3, 5), trigger, messages)


def test_tool_and_injected_text_is_counted_apart_from_what_was_said() -> None:
    spoken = window(said(0, "user", "x" * 35), said(1, "assistant", "x" * 35))
    assert (spoken.tokens, spoken.tokens_said, spoken.user_messages) == (20, 20, 1)
    full = window(*spoken.messages, said(2, "tool", "x" * 30), said(3, "injected", "x" * 35))
    assert (full.tokens, full.tokens_said, full.user_messages) == (40, 20, 1)


@each(
    ("messages", "expected"),
    [
        ([], None),
        ([said(0, "assistant", "Shall I?")], None),
        ([said(0, text="Fix\n the  tests"), said(1, "assistant", "done")], "Fix the tests"),
        ([said(0, text="Fix it"), said(1, text="No, this one"), said(2, text="  \n")], "No, this one"),
        ([said(0, text="x" * 300)], "x" * 199 + "…"),
        (
            [said(0, text="Fix the tests of the notifier"), said(1, text="ok, works. great")],
            "Fix the tests of the notifier",
        ),
        ([said(0, text="Fix the tests"), said(1, text="after that commit push")], "Fix the tests"),
        ([said(0, text="ok, works. great")], None),
        ([said(0, text="Fix the tests of the depot"), said(1, text=PASTED)], "Fix the tests of the depot"),
    ],
)
def test_the_current_task_is_the_last_thing_said_to_be_worked_on(messages: list[Message], expected: str | None) -> None:
    assert window(*messages).current_task == expected


@each(
    ("messages", "expected"),
    [
        ([], None),
        ([said(0), said(1, "assistant", "Done.\nShall I  commit?\n")], "Shall I commit?"),
        ([said(0), said(1, "assistant", "Done.\nShall I  commit?")], "Shall I commit?"),
        ([said(0), said(1, "assistant", "Shall I?"), said(2, "tool", "exit 0")], "Shall I?"),  # a tool is no answer
        ([said(0), said(1, "assistant", "Shall I?"), said(2, "user", "yes")], "yes"),  # nobody went on
        ([said(0), said(1, "assistant", "Done.")], COMPLETED),
        ([said(0), said(1, "assistant", "終わりました。続けますか？")], "終わりました。続けますか？"),
    ],
)
def test_the_suggested_response_is_what_waits_for_an_answer(messages: list[Message], expected: str | None) -> None:
    assert window(*messages).suggested_response == expected


def test_a_compaction_ends_nothing_so_the_task_goes_on() -> None:
    cut = window(said(0, text="Move the parcels to Postgres"), said(1, "assistant", "Half done."), trigger="compaction")
    assert cut.suggested_response == "Move the parcels to Postgres"


FIVE = [said(i) for i in range(5)]
INJECTED = said(9, "injected", "AGENTS.md")


@each(
    ("messages", "trigger", "idle", "expected"),
    [
        (FIVE, "shutdown", True, None),
        (FIVE, "shutdown", False, "the session is still active"),
        (FIVE[:4], "shutdown", True, "its session has fewer than 5 user messages"),
        (FIVE[:4], "shutdown", False, "the session is still active"),  # there may come more
        (
            [*FIVE[:4], INJECTED],
            "shutdown",
            True,
            "its session has fewer than 5 user messages",
        ),  # nobody typed that one
        (FIVE[:1], "compaction", True, None),  # what was worth summarising is worth observing
        (FIVE[:1], "compaction", False, None),
        ([INJECTED], "compaction", True, "no message of a person in it"),
        ([said(0, "assistant"), said(1, "tool")], "shutdown", True, "no message of a person in it"),
    ],
)
def test_why_a_window_is_not_observed(messages: list[Message], trigger: str, idle: bool, expected: str | None) -> None:
    assert reason_not_observed(window(*messages, trigger=trigger), idle=idle, typed=0, min_user_messages=5) == expected


def test_every_window_with_a_person_is_observed_when_no_number_is_asked_for() -> None:
    assert reason_not_observed(window(said(0)), idle=True, typed=0, min_user_messages=0) is None
    assert reason_not_observed(window(INJECTED), idle=True, typed=0, min_user_messages=0) is not None


PLAN = said(0, "injected", "Implement the following plan:\n\n# Parcels by region")
HOOK = said(0, "injected", "<system-reminder>Today is Monday.</system-reminder>")


@each(
    ("messages", "expected"),
    [
        ([PLAN], True),
        ([HOOK, PLAN, said(1), said(2, "assistant")], True),
        ([said(0), PLAN], False),  # spoken of later, or put in by somebody else
        ([said(0, "assistant"), PLAN], False),
        ([HOOK, said(1)], False),
        ([said(0, text=PLAN.text)], False),  # no program passed it on
        ([change(PLAN, voided=True), said(1)], False),
        ([], False),
    ],
)
def test_a_session_begins_with_an_approved_plan(messages: list[Message], expected: bool) -> None:
    assert begins_with_plan(messages) is expected


@each(
    ("messages", "idle", "expected"),
    [
        ([PLAN, said(1, "assistant")], True, None),  # the user approved it and said no more
        ([PLAN, said(1)], True, None),
        ([PLAN, said(1)], False, "the session is still active"),
        ([said(1)], True, None),  # another day of it
        ([said(1, "assistant")], True, "no message of a person in it"),
    ],
)
def test_what_an_approved_plan_begins_is_observed(messages: list[Message], idle: bool, expected: str | None) -> None:
    reason = reason_not_observed(window(*messages), idle=idle, typed=1, min_user_messages=5, has_plan=True)
    assert reason == expected


# --- the digest of a day: equal exactly when the day's rows are ---

Change = Callable[[ParsedSession], ParsedSession]
LATER = datetime.fromisoformat("2025-03-05T12:30:00+00:00")


def of_first(**changes: Any) -> Change:
    return lambda s: replace(s, messages=(change(s.messages[0], **changes), *s.messages[1:]))


def of_session(**changes: Any) -> Change:
    return lambda s: replace(s, **changes)


CHANGES: list[Change] = [
    of_first(message_id="other"),
    of_first(role="assistant"),
    of_first(said_at=NOON + timedelta(seconds=1)),
    of_first(written_at=LATER),
    of_first(text="other"),
    of_first(line=99),
    of_first(tool_name="bash"),
    of_first(is_error=True),
    of_first(voided=True),
    of_first(images=(Image(1, 0, "image/png"),)),
    of_first(files_read=("a.py",)),
    of_session(session_id="other"),
    of_session(cwd="/other"),
    of_session(compactions=(Compaction(("m0",)),)),
    of_session(compactions=(Compaction(("m0",), LATER),)),
    of_session(parent_id="p", inherited=frozenset({"m0"})),
    of_session(excluded="line 1 says DO NOT INDEX"),
    of_session(messages=(said(0), said(1), said(2))),
    of_session(messages=(said(0),)),
]


def digest_of(parsed: ParsedSession) -> str:
    return digest(parsed, cut(parsed))


@each("changed", CHANGES)
def test_whatever_changes_what_was_said_changes_the_digest(changed: Change) -> None:
    parsed = session(said(0), said(1))
    assert digest_of(parsed) == digest_of(session(said(0), said(1)))
    assert digest_of(changed(parsed)) != digest_of(parsed)


def test_what_a_session_does_later_leaves_the_digest_of_its_earlier_days() -> None:
    parsed = session(said(0))
    later = replace(parsed, name="another title", files_read=("later.py",))
    assert digest_of(later) == digest_of(parsed)


def test_what_no_row_shows_does_not_change_the_digest() -> None:
    """A new record type in the file must not cost a rebuild."""
    parsed = session(said(0))
    assert digest_of(replace(parsed, records=7, unknown_records={"new_type": 3})) == digest_of(parsed)
