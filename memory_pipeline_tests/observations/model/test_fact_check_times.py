"""No stored fact bears or mentions a time that nobody said, whatever a model writes, in every zone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipeline.lake.tables import TABLES
from memory_pipeline.observations.evaluation import judge_evidence, judge_specifics, judge_timestamps
from memory_pipeline.observations.model.fact_check import FactCheck
from memory_pipeline.observations.model.facts import ParsedFact
from memory_pipeline.observations.rows import rows_of
from memory_pipeline.observations.types import Segment, WindowMessage
from memory_pipeline.settings import Settings
from memory_pipeline.text.dates import clock_times
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.examples import times
from memory_pipeline_tests.observations.talking import LONDON, talk
from memory_pipeline_tests.rows import DAY

WINDOW = talk(
    "user: The backup runs at 23:15, lunch is at **12:30**, tea at 2:30.",
    "assistant: Noted, the log says 04:05:06 and src/app.py:10:25.",
    "user: Fine.",
)
FACT_CHECK = FactCheck(WINDOW, LONDON)
"""Messages at 09:00, 09:01 and 09:02; 23:15, 12:30 and 2:30 were said."""


@each(
    ("text", "left"),
    [
        ("Deployed (15:30).", "Deployed."),
        ("Deployed ( 15:30 ) again", "Deployed again"),
        ("(15:30) Deployed", "Deployed"),
        ("15:30 Deployed", "Deployed"),
        ("Deployed at 15:30.", "Deployed."),
        ("Deployed (at 15:30), then tested", "Deployed, then tested"),
        ("Deployed at 15:30 UTC.", "Deployed."),
        ("Deployed at 3:30 pm, then tested", "Deployed, then tested"),
        ("Deployed at 3:30 p.m. and tested", "Deployed and tested"),
        ("Deployed at 3:30PM", "Deployed"),
        ("Deployed around 15:30, 16:20 and 17:10.", "Deployed,."),
        ("Deployed from 15:30 to 16:20", "Deployed"),
        ("Deployed between 15:30 and 16:20 again", "Deployed again"),
        ("Deployed 15:30-16:20", "Deployed"),
        ("Deployed (15:30 – 16:20)", "Deployed"),
        ("Deployed on 2025-03-05T15:30Z", "Deployed on 2025-03-05"),
        ("Deployed on 2025-03-05 15:30", "Deployed on 2025-03-05"),
        ("Um 15:30 Uhr ausgerollt, vers 16:20 fertig", "ausgerollt, fertig"),
        ("在15:30部署", "在 部署"),
        ("v15:30x", "v x"),
        ("Deployed\n(15:30)\ntoday", "Deployed today"),
        ("1(15:31)2:30", "1 2:30"),  # what is left must not stand together as another time
        ("9(15:31):30", ""),  # nor here
        ("15:30", ""),
    ],
)
def test_an_invented_time_is_removed_however_it_is_written(text: str, left: str) -> None:
    assert FACT_CHECK.without_invented_times(text) == (left, True)


@each(
    "text",
    [
        "The backup runs at 23:15.",
        "The backup (23:15) runs",
        "lunch at 12:30",  # said in Markdown
        "Decided at 09:01, confirmed 9:02",  # times of messages, also without the zero
        "The ratio is 16:9 and (14:99) is no time",
        "The log says 04:05:06 in src/app.py:10:25",  # a stamp, and a place in a file
        "at 99:15, 24:00, 1:2",
        "two  spaces\nand a line",
        "",
    ],
)
def test_times_that_were_said_stay_and_so_does_everything_else(text: str) -> None:
    assert FACT_CHECK.without_invented_times(text) == (text, False)


@each(
    ("text", "left"),
    [
        ("The backup moved from 23:15 to 03:45.", "The backup moved from 23:15."),
        ("The backup moved from 03:45 to 23:15.", "The backup moved to 23:15."),
        ("23:15 or 3:45", "23:15 or"),
        ("At 3:45 the log says 13:45:00, not 03:45:09", "the log says 13:45:00, not 03:45:09"),  # a stamp is left alone
        ("12:30 and 4:05", "12:30 and"),
    ],
)
def test_only_the_invented_ones_go(text: str, left: str) -> None:
    assert FACT_CHECK.without_invented_times(text) == (left, True)


def test_a_message_that_nobody_timed_lends_no_clock() -> None:
    window = [replace(m, untimed="early in session") for m in WINDOW]
    check = FactCheck(window, LONDON)
    assert check.without_invented_times("Agreed at 09:01.") == ("Agreed.", True)
    assert check.without_invented_times("The backup runs at 23:15.") == ("The backup runs at 23:15.", False)
    fact = check.check(ParsedFact("The backup runs at 23:15.", "high", "rule", "09:00", (1,)), range(3))
    assert (fact.untimed, fact.flags) == ("early in session", ("time_removed",))


def test_the_local_time_of_a_message_counts_and_utc_does_not() -> None:
    tokyo = FactCheck(WINDOW, ZoneInfo("Asia/Tokyo"))
    assert tokyo.without_invented_times("Agreed at 18:00.") == ("Agreed at 18:00.", False)
    assert tokyo.without_invented_times("Agreed at 09:00.") == ("Agreed.", True)


# --- whatever a model writes ---

ZONES = ("UTC", "Asia/Tokyo", "America/New_York", "Europe/London", "Asia/Kathmandu")
SETTINGS = {zone: Settings(workspace=Path(), timezone=zone, default_session_dirs=False) for zone in ZONES}
STARTS = (
    datetime(2025, 3, 5, 9, tzinfo=UTC),
    datetime(2025, 11, 2, 5, 20, tzinfo=UTC),  # 01:20 in New York, forty minutes before it is 01:00 again
    datetime(2025, 3, 9, 6, 50, tzinfo=UTC),  # ten minutes before an hour that New York has not
    datetime(2025, 10, 26, 0, 30, tzinfo=UTC),  # the same in London
    datetime(2025, 3, 5, 14, 55, 30, tzinfo=UTC),  # five minutes before midnight in Tokyo
)
PIECES = st.sampled_from(
    [
        *("worker", "lock", "src/app.py", "v1.2.3", "`uv`", "**now**", "don't", "字", "鎖", "Friday"),
        *(
            "09:00",
            "9:00",
            "01:30",
            "(18:05)",
            "at 14:55",
            "15:30 UTC",
            "3:30 pm",
            "05:20:10",
            "1(15:31)2:31",
            "T23:59Z",
        ),
        *("9", ":", "30", "(", ")", "-", "to", "\n", "\u2028", "\u202f", "😀", "x", "."),
    ]
)
TEXTS = st.lists(PIECES, max_size=8).flatmap(lambda parts: st.sampled_from([" ".join(parts), "".join(parts)]))
TURNS = st.tuples(st.sampled_from(["user", "assistant", "tool", "injected"]), TEXTS, st.integers(0, 4000))
CLOCKS = st.none() | st.sampled_from(["09:00", "01:30", "01:40", "23:59", "25:00", "18:05"])
FACTS = st.builds(
    ParsedFact,
    text=TEXTS | st.text(max_size=40),
    priority=st.sampled_from(["high", "medium", "low"]),
    kind=st.sampled_from(["rule", "question", "decision", "statement"]),
    clock=CLOCKS,
    refs=st.lists(st.integers(-1, 8), max_size=3).map(tuple),
)


class Tables:
    """Rows that judges read in place of a lake's."""

    def __init__(self, messages: Sequence[WindowMessage], observations: list[dict[str, Any]]) -> None:
        said = [
            {"message_id": m.message_id, "role": m.role, "said_at": m.said_at, "text": m.text, "dedupe_key": "w"}
            for m in messages
        ]
        self.rows = {"messages": said, "observations": observations}

    def read(self, table: str, _: object) -> pl.DataFrame:
        return pl.DataFrame(self.rows[table], schema=TABLES[table].columns)

    def is_retired(self, *_: object) -> bool:
        return False


@settings(max_examples=times(2.5))
@given(
    st.lists(TURNS, min_size=1, max_size=6),
    st.lists(FACTS, min_size=1, max_size=4),
    st.sampled_from(ZONES),
    st.sampled_from(STARTS),
    st.integers(0, 5),
)
def test_the_rows_of_any_answer_pass_the_checks_that_block(
    turns: list[tuple[str, str, int]], facts: list[ParsedFact], zone: str, start: datetime, shown_from: int
) -> None:
    messages, moment = [], start
    for number, (role, text, pause) in enumerate(turns):
        moment += timedelta(seconds=pause)
        quoted = ((0, len(text) // 2),) if role == "user" and number % 2 and len(text) > 1 else ()
        messages.append(WindowMessage(f"m{number}", role, moment, text, quoted=quoted))
    shown = range(min(shown_from, len(messages) - 1), len(messages))
    fact_check = FactCheck(messages, ZoneInfo(zone))
    stored = [fact_check.check(fact, shown) for fact in facts]
    assert {f.observed_at for f in stored} <= {messages[i].said_at for i in shown}
    segment = Segment("It was about the worker.", messages[0].message_id, messages[-1].message_id, tuple(stored))
    window = {"day": DAY, "dedupe_key": "w", "session_id": "s"}
    tables: Any = Tables(messages, rows_of(window, [segment], "openai:gpt", ZoneInfo(zone)).observations)
    for judge in (judge_timestamps, judge_evidence):
        verdict = judge(Workspace(SETTINGS[zone], tables), DAY)
        assert (verdict.passed, verdict.offenders) == (True, [])
    flagged = sum("ungrounded_specifics" in f.flags for f in stored)
    assert judge_specifics(Workspace(SETTINGS[zone], tables), DAY).numbers["flagged"] == flagged
    assert not [
        o for o in judge_specifics(Workspace(SETTINGS[zone], tables), DAY).offenders if "not in the session" in o
    ]


def test_the_property_can_fail() -> None:
    """A fact as the model wrote it, without what `FactCheck` does, is found."""
    fact = replace(FACT_CHECK.check(ParsedFact("Fine.", "low", "rule", None, (3,)), range(3)), text="Fine at 15:30.")
    segment = Segment("x", "m1", "m3", (fact,))
    rows = rows_of({"day": DAY, "dedupe_key": "w", "session_id": "s"}, [segment], "openai:gpt", LONDON)
    tables: Any = Tables(WINDOW, rows.observations)
    assert not judge_timestamps(Workspace(SETTINGS["UTC"], tables), DAY).passed


@settings(max_examples=times(5))
@given(TEXTS | st.text(alphabet="0123456789:() Tat-ampm", max_size=30))
def test_nothing_but_said_times_is_left_and_the_second_time_nothing_changes(text: str) -> None:
    left, is_removed = FACT_CHECK.without_invented_times(text)
    assert clock_times(left) <= FACT_CHECK.times
    assert is_removed is not (clock_times(text) <= FACT_CHECK.times)
    assert FACT_CHECK.without_invented_times(left) == (left, False)
