"""A pattern that goes on keeps its id."""

from typing import Any, cast

from memory_pipeline.friction.patterns import Pattern
from memory_pipeline.friction.stage import numbered
from memory_pipeline.lake.rows import FrictionRow
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import event
from memory_pipeline_tests.rows import DAY


def row(number: int, *messages: str, day: str = "20250304", **other: Any) -> FrictionRow:
    evidence = [{"message_id": message, "start": 0, "end": 2} for message in messages]
    given = {"pattern_id": f"f-{day}-{number:03d}", "kind": "tool_misuse", "title": "Old", "projects": None}
    return cast(FrictionRow, given | {"evidence": evidence, "template": None} | other)


def pattern(text: str, *sessions: str, kind: str = "tool_misuse", title: str = "New") -> Pattern:
    return Pattern(kind, title, "AGENTS.md", tuple(event(text, session) for session in sessions))


def ids(*patterns: Pattern, known: tuple[FrictionRow, ...] = ()) -> list[str]:
    found = numbered(DAY, patterns, known)
    return [one if isinstance(one, str) else one["pattern_id"] for one in found]


def test_new_patterns_are_numbered_from_one() -> None:
    assert ids(pattern("a", "s1"), pattern("b", "s1")) == ["f-20250305-001", "f-20250305-002"]


def test_a_title_that_a_model_wrote_is_known_by_the_templates() -> None:
    written = row(1, title="Pip again", template="New")
    assert ids(pattern("elsewhere", "s1"), known=(written,)) == ["f-20250304-001"]
    assert ids(pattern("elsewhere", "s1", title="Pip again"), known=(written,)) == ["f-20250305-001"]


def test_a_number_of_the_day_is_given_once() -> None:
    known = (row(1, "other", day="20250305"), row(3, "another", day="20250305"))
    assert ids(*(pattern(text, "s1") for text in "abc"), known=known) == [f"f-20250305-{n:03d}" for n in (2, 4, 5)]


@each(
    ("known", "name"),
    [
        (row(7, "a/s2/0"), "f-20250304-007"),  # something that was seen is in both
        (row(7, "gone", title="New", projects=[]), "f-20250304-007"),  # or they are called the same
        (row(7, "gone"), "f-20250305-001"),
        (row(7, "a/s2/0", kind="recurring_failure"), "f-20250305-001"),  # of another kind
        (row(7, "gone", title="New", projects=["cli"]), "f-20250305-001"),  # of another project
    ],
)
def test_which_pattern_goes_on(known: FrictionRow, name: str) -> None:
    assert ids(pattern("a", "s1", "s2"), known=(known,)) == [name]


def test_of_two_that_were_one_the_first_keeps_the_id() -> None:
    both = row(7, "a/s1/0", "b/s1/0")
    assert ids(pattern("a", "s1"), pattern("b", "s1"), known=(both,)) == ["f-20250304-007", "f-20250305-001"]


def test_of_two_that_became_one_one_goes_on() -> None:
    known = (row(7, "a/s1/0"), row(8, "a/s2/0"))
    assert ids(pattern("a", "s1", "s2"), known=known) == ["f-20250304-007"]
