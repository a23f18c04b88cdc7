"""What models write in the formats that this project comes from: levels with times, marks of what is done, traces."""

import json

from memory_pipeline.llm.answers.lines import entries
from memory_pipeline.observations.model.answer import parse_answer
from memory_pipeline.observations.model.facts import ParsedFact
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.growth import grows_evenly

TEXT = "Redis runs in Docker at port 6379"


def facts(answer: str) -> list[ParsedFact]:
    parsed = parse_answer(f"<observations>\n{answer}\n</observations>")
    return [fact for segment in parsed.segments for fact in segment.facts]


LEVELS = [
    (f"[2026-03-05 09:15] CRITICAL {TEXT}", "high", "09:15"),
    (f"[2026-03-05 09:15] IMPORTANT {TEXT}", "medium", "09:15"),
    (f"[2026-03-05 09:15] NOTE {TEXT}", "low", "09:15"),
    (f"- [2026-03-05 09:15] IMPORTANT {TEXT}", "medium", "09:15"),
    (f"[2026-03-05T09:15:30] CRITICAL {TEXT}", "high", "09:15"),
    (f"CRITICAL 09:15 {TEXT}", "high", "09:15"),
    (f"* CRITICAL 09:15 {TEXT}", "high", "09:15"),
    (f"* NOTE 09:15 uv and {TEXT}", "low", "09:15"),
    (f"- [!] 14:30 {TEXT}", "high", "14:30"),
    (f"  - [i] 14:35 {TEXT}", "low", "14:35"),
    (f"* 🔴 14:30 {TEXT}", "high", "14:30"),
    (f"* 🟡 ({'09:15'}) {TEXT}", "medium", "09:15"),
]


def test_a_level_and_a_time_do_not_stay_in_the_text() -> None:
    for line, priority, clock in LEVELS:
        (fact,) = facts(line)
        assert (fact.text.removeprefix("uv and "), fact.priority, fact.clock) == (TEXT, priority, clock), line


SENTENCES = [
    "09:15 is when the backup of parcels runs",
    "CRITICAL sections of the worker hold a lock",
    "NOTE files lie in docs/",
]


def test_what_is_part_of_the_sentence_stays() -> None:
    for text in SENTENCES:
        assert [fact.text for fact in facts(f"* 🔴 {text}")] == [text]


DONE = [
    (f"* ✅ (14:03) {TEXT}", "medium", "progress"),
    (f"✅ {TEXT}", "medium", "progress"),
    (f"* 🔴 ✅ {TEXT}", "high", "progress"),
    (f"* ✅ 🟢 progress (14:03) [#3] {TEXT}", "low", "progress"),
    (f"* 🟡 {TEXT} ✅", "medium", "progress"),
    (f"* ✔️ {TEXT}", "medium", "progress"),
    (f"* 🔴 ✅ decision [#3] {TEXT}", "high", "decision"),
    (f"* 🟡 ✅ question {TEXT}", "medium", "progress"),  # a question that is answered is none
]


def test_what_is_marked_as_done() -> None:
    for line, priority, kind in DONE:
        (fact,) = facts(line)
        assert (fact.text, fact.priority, fact.kind, fact.is_done) == (TEXT, priority, kind, True), line


def test_what_is_done_below_something_is_a_fact_of_its_own() -> None:
    found = facts(f"* 🔴 The move of parcels to Docker\n  * ✅ {TEXT}\n* 🟡 The cron job is still missing")
    assert [(fact.text, fact.is_done) for fact in found] == [
        ("The move of parcels to Docker", False),
        (TEXT, True),
        ("The cron job is still missing", False),
    ]


TASKS = [
    ("✅ Move to Docker", None),
    ("Move to Docker ✅", None),
    ("Primary: ✅ Move to Docker\nSecondary: write the cron job", "Secondary: write the cron job"),
    ("Primary: write the cron job Secondary: ✅ Move to Docker", "Primary: write the cron job"),
    ("Write the cron job", "Write the cron job"),
]


def test_a_task_that_is_done_is_not_the_current_one() -> None:
    for told, open_task in TASKS:
        answer = f"<observations>\n* 🔴 {TEXT}\n</observations>\n<current-task>{told}</current-task>"
        assert parse_answer(answer).current_task == open_task, told


STEPS = ("logins were lost", "Redis had no volume", "sessions in Postgres", "one thing to back up")


TRACES = [
    f"* 🔴 decision (14:05) [#3] {TEXT}\n  trace: {' -> '.join(STEPS)}",
    f"* 🔴 decision (14:05) [#3] {TEXT}\n  - Decision trace: {' → '.join(STEPS)}",
    f"* 🔴 decision (14:05) [#3] {TEXT}\n  **trace**: {STEPS[0]} => {STEPS[1]} ->\n  {STEPS[2]} -> {STEPS[3]}",
    f"* 🔴 decision (14:05) [#3] {TEXT} (trace: {' -> '.join(STEPS)})",
]


def test_a_trace_is_kept_beside_the_fact() -> None:
    for lines in TRACES:
        fact, other = facts(f"{lines}\n* 🟡 The cron job is still missing")
        assert (fact.text, fact.kind, fact.clock, fact.refs, fact.trace) == (TEXT, "decision", "14:05", (3,), STEPS)
        assert other.trace == (), lines


def test_a_trace_of_one_step_and_a_trace_that_is_talked_of_are_none() -> None:
    (one,) = facts(f"* 🔴 {TEXT}\n  trace: logins were lost")
    assert (one.text, one.trace) == (TEXT, ())
    for text in ("The stack trace: see the log of the worker", "The stack trace: main -> worker -> queue"):
        (talk,) = facts(f"* 🔴 {text}")
        assert (talk.text, talk.trace) == (text, ())


def test_a_trace_in_json() -> None:
    item = {"text": TEXT, "priority": "high", "kind": "decision", "places": [3], "trace": " -> ".join(STEPS)}
    (fact,) = facts(json.dumps({"observations": [item]}))
    assert (fact.text, fact.trace) == (TEXT, STEPS)


@each("noise", ["✅", "trace:", "trace: a -> ", "* ✅ ", "CRITICAL 09:15 ", "Primary: ", "[!] 09:15 "])
def test_none_of_it_takes_long(noise: str) -> None:
    grows_evenly(lambda size: entries([f"* {noise * (size // len(noise))}"]), 100_000)
    grows_evenly(lambda size: parse_answer(f"<current-task>{noise * (size // len(noise))}</current-task>"), 100_000)
