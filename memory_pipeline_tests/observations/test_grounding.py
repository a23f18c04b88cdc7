"""Clock times and evidence: what counts as said."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from memory_pipeline.observations.evaluation import invented_times, missing_evidence
from memory_pipeline.observations.types import WindowTimes
from memory_pipeline.text.dates import clock_times
from memory_pipeline_tests.cases import each

NINE = datetime(2025, 7, 5, 9, 0, tzinfo=UTC)
LONDON = ZoneInfo("Europe/London")


@each(
    ("text", "times"),
    [
        ("at 09:15 and 9:15", {"09:15"}),  # one time, written twice
        ("(16:30) deployed", {"16:30"}),
        ("from 22:00 to 07:00", {"22:00", "07:00"}),
        ("23:59", {"23:59"}),
        ("24:00, 12:60, 99:99", set()),  # no such times
        ("16:9 and 1:1", set()),  # ratios
        ("12:30:45", set()),  # with seconds: a log's stamp, not a statement
        ("src/app.py:10:25", set()),  # line and column
        ("::1:2222", set()),
        ("v1.12:30", set()),
        ("", set()),
    ],
)
def test_clock_times(text: str, times: set[str]) -> None:
    assert clock_times(text) == times


@each(
    ("text", "wrong"),
    [
        ("nothing about time", []),
        ("we met at 10:00", []),  # 09:00 UTC is 10:00 in London in summer
        ("we met at 09:00", ["09:00"]),  # UTC is nobody's clock
        ("deploy at 16:30", []),  # was said
        ("deploy at 16:31 or 04:00", ["04:00", "16:31"]),
        ("lunch is at 12:30", []),  # was said in Markdown
    ],
)
def test_invented_times(text: str, wrong: list[str]) -> None:
    window = [(NINE, None, "The deployment is at 16:30, lunch at **12:30**.")]
    assert (
        invented_times({"text": text, "observed_at": NINE, "untimed": None}, WindowTimes.from_messages(window, LONDON))
        == wrong
    )


def test_an_observation_of_a_moment_when_nobody_spoke_is_invented() -> None:
    observed = {"text": "x", "observed_at": NINE.replace(minute=1), "untimed": None}
    assert invented_times(observed, WindowTimes.from_messages([(NINE, None, "x")], LONDON)) == ["09:01 UTC"]
    assert invented_times(observed, WindowTimes.from_messages([], LONDON)) == ["09:01 UTC"]


@each(
    ("text", "untimed", "wrong"),
    [
        ("Lunch is at noon.", "early in session", []),
        ("Lunch is at noon.", None, ["09:00 UTC"]),  # as if somebody had recorded it
        ("Lunch is at 10:00.", "early in session", ["10:00"]),  # what the clock in London would have shown
    ],
)
def test_a_message_without_a_recorded_time_gives_none(text: str, untimed: str | None, wrong: list[str]) -> None:
    window = [(NINE, "early in session", "Lunch is at noon.")]
    assert (
        invented_times(
            {"text": text, "observed_at": NINE, "untimed": untimed}, WindowTimes.from_messages(window, LONDON)
        )
        == wrong
    )


def observed(
    text: str, *spans: tuple[str, int, int], observer: str = "extractive-1", priority: str = "low", flags: str = ""
) -> dict[str, object]:
    evidence = [{"message_id": m, "start": s, "end": e} for m, s, e in spans]
    return {"text": text, "evidence": evidence, "observer": observer, "priority": priority, "flags": flags.split()}


TEXTS = {"a": "- **Never** use\n  npm. Ever.", "b": "Use pnpm."}


@each(
    ("observation", "why"),
    [
        (observed("Never use npm.", ("a", 2, 22)), None),  # Markdown and line breaks do not count
        (observed("Never use npm. Use pnpm.", ("a", 2, 22), ("b", 0, 9)), None),  # two places
        (observed("Never use npm", ("a", 2, 22)), "its text differs from its evidence"),  # a full stop does
        (observed("Never use npm.", ("a", 2, 22), ("b", 0, 9)), "its text differs from its evidence"),
        (observed("Do not use npm.", ("a", 2, 22), observer="openai:gpt"), None),  # a model may reword
        (observed("Use pnpm.", ("b", 0, 10)), "span 0-10 is outside of message b"),
        (observed("Use pnpm.", ("b", -9, 9)), "span -9-9 is outside of message b"),
        (observed("", ("b", 3, 3)), "span 3-3 is outside of message b"),  # of no words
        (observed("Use pnpm.", ("c", 0, 9)), "message c does not exist"),
        (observed("Use pnpm."), "it has no evidence"),
        (observed("Use pnpm.", flags="time_removed ungrounded"), None),  # what nothing carries is marked, and low
        (observed("Use pnpm.", flags="ungrounded", priority="medium"), "it has no evidence"),
        (observed("Use pnpm.", flags="ungrounded_specifics"), "it has no evidence"),
    ],
)
def test_missing_evidence(observation: dict[str, object], why: str | None) -> None:
    assert missing_evidence(observation, TEXTS) == why
