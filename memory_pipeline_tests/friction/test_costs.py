"""What an occurrence costs, in messages and minutes."""

from memory_pipeline.friction.patterns import cost, request_before, user_after
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import turns

WORK = ("user: Build it.", "call: Bash(command=make)", "fails: error", "call: Bash(command=make)", "user: Again!")


@each(
    ("minutes", "lost"),
    [
        (1.0, (4, 4.0)),
        (0.5, (4, 2.0)),
        (5.0, (4, 20.0)),
        (90.0, (4, 20.0)),  # of a pause five minutes count
        (-3.0, (4, 0.0)),  # a clock that was set back
    ],
)
def test_messages_and_minutes_are_counted_and_pauses_are_capped(minutes: float, lost: tuple[int, float]) -> None:
    assert cost(turns(*WORK, minutes=minutes), 0, 4) == lost


def test_one_occurrence_costs_thirty_messages_and_minutes_at_most() -> None:
    assert cost(turns(*WORK * 50, minutes=4), 0, 249) == (30, 30.0)


@each(("began", "ended"), [(2, 2), (3, 2), (4, 99)])
def test_what_began_where_it_ended_costs_nothing(began: int, ended: int) -> None:
    assert cost(turns(*WORK), began, ended) == (0, 0.0)


@each(("position", "before", "after"), [(2, 0, 4), (4, 0, 4), (0, 0, 4)])
def test_the_request_before_and_the_user_after(position: int, before: int, after: int) -> None:
    made = turns(*WORK)
    assert (request_before(made, position), user_after(made, position)) == (before, after)


def test_without_a_user_it_is_the_place_itself_and_the_end() -> None:
    made = turns("call: Bash(command=make)", "fails: error", "assistant: Sorry.")
    assert (request_before(made, 1), user_after(made, 1)) == (1, 2)
