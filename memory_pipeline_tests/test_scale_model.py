"""The model on paper: what is given comes out again, and a size that is within what was measured passes no limit."""

from benchmarks.scale_model import CONSTANTS, SIZES, Size, limits_of, load_of


def test_what_is_given_comes_out() -> None:
    load = load_of(Size("200 people", 200))
    assert load.messages_a_day == 400_000 and load.transcripts_a_day == 5e9
    assert load_of(Size("ten years", 1, 10)).tables == 10 * load_of(Size("a year", 1)).tables


def test_every_constant_has_its_source() -> None:
    assert all(constant.source and constant.unit and constant.date >= "2026-11" for constant in CONSTANTS.values())


def test_what_is_passed_first_stands_first() -> None:
    assert limits_of(Size("a month", 1, 30 / 365)) == []
    for size in SIZES:
        days = [limit.day for limit in limits_of(size)]
        assert days == sorted(days) and all(day <= 365 * size.years for day in days)
    shared = limits_of(Size("all in one", 200, 1, in_one_workspace=True))
    assert shared[0].turn_on == "a workspace a person"
