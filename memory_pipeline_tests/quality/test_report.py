"""The figures by day, and what is told of a week."""

from pathlib import Path
from zoneinfo import ZoneInfo

from memory_pipeline.lake.tables import TABLES
from memory_pipeline.quality.report import Figure, acceptance, costs, make_figures
from memory_pipeline.quality.results import ADVICE, Checked, Result, changes
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import DAY, day_after, decision, observation, proposal, put, say, workspace
from memory_pipeline_tests.test_definitions import CHECKS


def figures(tmp_path: Path, *results: Result) -> dict[str, Figure]:
    _, lake = workspace(tmp_path)
    say(lake, "s1", "user: Never deploy on a Friday, my key is [redacted:github-token:3fa91c].", "assistant: Noted.")
    say(lake, "s2", "user: Deploy the parcel service.", day=day_after(1))
    high = {"priority": "high", "kind": "rule", "trust": "user"}
    put(lake, "observations", observation("Never deploy on a Friday.", **high), observation("It should be.", **high))
    put(lake, "observations", observation("Never deploy on a Friday.", day=day_after(1), session="s2", priority="low"))
    put(lake, "proposals", proposal(1, "Never deploy on a Friday."), proposal(2, "It should be."))
    put(lake, "events", decision("p-20250305-001"), decision("p-20250305-002", "rejected"))
    return {figure.key: figure for figure in make_figures(lake, results, ZoneInfo("UTC"))}


def test_each_is_of_the_days_that_have_any(tmp_path: Path) -> None:
    found = figures(tmp_path)
    assert found["offered"].by_day == {DAY: 2}
    assert found["rejected"].by_day == {DAY: 0.5}
    assert found["money"].by_day == {}


def test_those_of_checks_are_the_numbers_that_the_checks_stored(tmp_path: Path) -> None:
    result = Result("observations", "regurgitation", DAY, False, False, "", {"repeating": 1, "checked": 4})
    nothing = Result("observations", "regurgitation", day_after(1), True, False, "", {"repeating": 0, "checked": 0})
    assert figures(tmp_path, result, nothing)["repeating"].by_day == {DAY: 0.25}


@each(
    ("before", "now", "told"),
    [(7, 6, "fails for the first time"), (5, 7, "passes again"), (5, 3, "more often"), (3, 5, "less often")],
)
def test_a_check_that_goes_otherwise_than_last_week_is_told(before: int, now: int, told: str) -> None:
    passed = [n < before for n in range(7)] + [n < now for n in range(7)]
    results = {day_after(n): Result("a", "b", day_after(n), ok, True) for n, ok in enumerate(passed)}
    (line,) = changes([Checked("a/b", "", results)], day_after(13))
    assert line.startswith("a/b") and told in line


def test_one_that_goes_as_before_is_not_told() -> None:
    results = {day_after(n): Result("a", "b", day_after(n), n % 7 > 0, True) for n in range(14)}
    assert changes([Checked("a/b", "", results)], day_after(13)) == []


def test_ends_are_counted_by_section_and_money_by_stage(tmp_path: Path) -> None:
    _, lake = workspace(tmp_path)
    put(lake, "proposals", proposal(1, "One.", section="User"), proposal(2, "Two.", section="User"))
    put(lake, "events", decision("p-20250305-001"))
    assert acceptance(lake) == [{"section": "User", "approved": 1, "pending": 1}]
    call = dict.fromkeys(TABLES["ledger"].columns) | {"day": DAY, "stage": "observe", "model": "m", "cached": False}
    call |= {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.5}
    put(lake, "ledger", *({**call, "call_id": f"{n}"} for n in range(2)))
    assert costs(lake) == [{"stage": "observe", "model": "m", "calls": 2, "tokens": 30, "usd": 1.0}]


def test_every_check_has_advice() -> None:
    assert {check.partition(":")[2] for check in CHECKS} == set(ADVICE)
