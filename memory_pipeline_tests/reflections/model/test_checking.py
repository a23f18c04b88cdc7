"""Of a model's lines those stay that their observations carry, with no more weight than these have."""

from dataclasses import replace
from typing import Any

from memory_pipeline.reflections.model.answer import ParsedLine
from memory_pipeline.reflections.model.checking import Checker
from memory_pipeline.reflections.model.rendering import batches
from memory_pipeline.reflections.types import Observation, ReflectionLine
from memory_pipeline.text.tokens import estimate
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import at, day_after


def seen(number: int, text: str, *, ago: int = 0, **other: Any) -> Observation:
    fields = {"priority": "high", "kind": "decision", "trust": "user", "session_id": "s1", "tokens": 10} | other
    day = day_after(-ago)
    return Observation(observation_id=f"o-{number}", day=day, observed_at=at(day=day), text=text, **fields)


REDIS = seen(1, "Redis is installed in Docker for the queue of parcels.", ago=4)
PORT = seen(
    2, "The Redis of the queue listens on port 6379.", ago=3, session_id="s2", priority="medium", trust="assistant"
)
PIP = seen(3, "In shop-api packages are installed with pip.", ago=5, kind="state_change")
UV = seen(4, "In shop-api packages are now installed with uv 0.5.1.", ago=1, kind="state_change", trust="assistant")
FRIDAY = seen(5, "Never deploy on a Friday after 15:00.", kind="rule")
PASTED = seen(6, "Always run the linter before a commit.", kind="rule", trust="paste", priority="medium")
ASKED = seen(7, "Should the parcels be sorted by weight?", kind="question", priority="medium")
DOUBTED = seen(8, "The worker retries every parcel seven times.", flags=("ungrounded",), priority="high")
ALL = (REDIS, PORT, PIP, UV, FRIDAY, PASTED, ASKED, DOUBTED)


def check(text: str, *sources: int, **other: Any) -> ReflectionLine | None:
    fields: dict[str, Any] = {"section": 2, "kind": "decision", "priority": "high", "replaced": ()} | other
    return Checker(ALL).check(ParsedLine(text=text, sources=sources, **fields))


def test_a_line_over_two_observations() -> None:
    line = check("Redis runs in Docker for the queue of parcels, on port 6379.", 2, 1)
    assert line
    assert line.sources == ("o-2", "o-1")  # the one that has most of its words first
    assert (line.priority, line.kind, line.section, line.trust) == ("high", "decision", 2, "user")
    assert (line.sessions, line.first_seen, line.last_seen) == (2, REDIS.observed_at, PORT.observed_at)


@each(
    ("text", "sources"),
    [
        ("Redis runs in Docker for the queue.", ()),  # no source
        ("Redis runs in Docker for the queue.", (0, 9, 4711)),  # none that was shown
        ("Redis runs in Docker for the queue.", (5,)),  # one that does not say it
        ("Redis is installed in Docker on port 6380.", (1, 2)),  # a number that nobody said
        ("Redis is installed in Docker, see `infra/redis.yml`.", (1, 2)),  # a path that nobody said
        ("Never deploy on a Friday after 16:30.", (5,)),  # a time that nobody said
        ("Postgres keeps the customers and their addresses in Frankfurt.", (1,)),  # another thing
        ("The worker retries every parcel seven times.", (8,)),  # nobody knows whether it is so
    ],
)
def test_a_line_that_nothing_carries_is_dropped(text: str, sources: tuple[int, ...]) -> None:
    assert check(text, *sources) is None


def test_an_observation_that_says_nothing_of_it_gives_no_support() -> None:
    line = check("Never deploy on a Friday after 15:00.", 5, 1, 4711)
    assert line and line.sources == ("o-5",)


@each(
    ("told", "source", "priority"),
    [("high", 2, "medium"), ("low", 2, "low"), (None, 5, "medium"), ("high", 5, "high")],
)
def test_a_line_is_never_above_its_best_source(told: str | None, source: int, priority: str) -> None:
    line = check(ALL[source - 1].text, source, priority=told)
    assert line and line.priority == priority


def test_what_is_doubted_gives_no_high() -> None:
    both = (replace(PORT, priority="low"), replace(DOUBTED, text=PORT.text))
    line = Checker(both).check(ParsedLine(PORT.text, (1, 2), (), None, None, "high"))
    assert line and line.priority == "medium"
    assert line.sources[0] == PORT.observation_id


@each(
    ("told", "source", "kind"),
    [
        ("rule", 6, "statement"),  # what was pasted is nobody's rule
        ("preference", 4, "state_change"),  # nor does the agent have preferences
        ("rule", 5, "rule"),
        ("rule", 1, "rule"),  # the person decided it
        ("root_cause", 1, "root_cause"),
        (None, 4, "state_change"),
        ("decision", 7, "question"),  # what was only asked
    ],
)
def test_the_kind_of_a_line(told: str | None, source: int, kind: str) -> None:
    line = check(ALL[source - 1].text, source, kind=told)
    assert line and line.kind == kind


def test_a_line_names_what_it_replaces() -> None:
    line = check("In shop-api packages are installed with uv 0.5.1 instead of pip.", 4, replaced=(3,))
    assert line and (line.sources, line.superseded) == (("o-4",), ("o-3",))
    line = check("In shop-api packages are installed with pip.", 3, replaced=(4,))
    assert line and line.superseded == ()  # the newer one is not replaced by the older


def test_without_a_section_the_kind_tells_it() -> None:
    line = check(FRIDAY.text, 5, section=None, kind="rule")
    assert line and line.section == 1


def test_words_of_another_language_are_held_against_theirs() -> None:
    observed = (seen(1, "部署前必须先运行迁移脚本。"), seen(2, "Der Export läuft nachts um 02:30 mit cron."))
    checker = Checker(observed)
    assert checker.check(ParsedLine("部署前先运行迁移脚本。", (1,), (), 1, "rule", "high"))
    assert checker.check(ParsedLine("Der Export läuft nachts mit cron, um 02:30.", (2,), (), 3, None, "high"))
    assert not checker.check(ParsedLine("部署前先运行迁移脚本。", (2,), (), 1, "rule", "high"))


def test_batches_are_about_equal() -> None:
    """A small rest might be answered with nothing at all, and the day would be lost for it."""
    observed = [seen(i, f"The worker number {i:02d} is called w{i:02d}.") for i in range(10)]
    whole = batches(observed, 10_000, None)
    assert [len(batch.observed) for batch in whole] == [10]
    cap = estimate(whole[0].text) - 20
    assert [len(batch.observed) for batch in batches(observed, cap, None)] == [5, 5]


@each(("project", "superseded"), [("shop", ("o-3",)), ("kiln", ())])
def test_a_line_replaces_nothing_of_another_project(project: str, superseded: tuple[str, ...]) -> None:
    seen_in = [replace(PIP, projects=("shop",)), replace(UV, projects=(project,))]
    parsed = ParsedLine("In shop-api packages are now installed with uv 0.5.1.", (2,), (1,), 2, "state_change", "high")
    line = Checker(seen_in).check(parsed)
    assert line
    assert line.superseded == superseded
