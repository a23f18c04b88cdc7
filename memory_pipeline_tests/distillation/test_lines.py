"""Lines become fewer, never shorter: highs stay, what is said again is one line, the best of the rest follow."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.distillation.lines import NARRATIVE, Line, count_words, distil
from memory_pipeline.text.relation import says_all
from memory_pipeline.text.similarity import words
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import at

RULE = "In parcel-tracker always use uv, never pip install, because the docker image has no compiler."


def line(text: str, priority: str = "high", *, name: str = "", clock: str = "09:00", kind: str = "rule") -> Line:
    return Line(text, kind, priority, (name or f"o-{text}",), at(clock), at(clock))


def texts(lines: list[Line]) -> list[str]:
    return [each.text for each in lines]


@each("room", [0, 4, 100])
def test_a_high_stays_whole_whatever_the_room(room: int) -> None:
    """ "always use uv, never pip install" was once "always never install"."""
    assert texts(distil([line(RULE)], room)) == [RULE]


def test_of_the_rest_whole_lines_stay_as_far_as_there_is_room() -> None:
    long, short = line("The queue overflowed since retries had no limit.", "low"), line("Leipzig is slow.", "low")
    for room in range(20):
        kept = distil([line(RULE), long, short], count_words(RULE) + room)
        assert set(texts(kept)) <= {RULE, long.text, short.text}
        assert (short in kept, long in kept) == (room >= 3, room >= 11)


def test_the_best_of_the_rest_stay_by_priority_kind_support_and_how_new_they_are() -> None:
    said = [
        line("Pnpm is preferred over npm.", "medium", kind="preference"),
        line("Asked: move the depot. Ended with: moved.", "low", kind=NARRATIVE),
        line("The worker lives in depot/worker.", "medium", kind="convention"),
        line("Two parcels were lost at noon.", "medium", kind="statement", clock="11:00"),
        line("One parcel was lost at ten.", "medium", kind="statement", clock="10:00"),
        line("Looked at the retries of the worker.", "low", kind="progress"),
    ]
    costs = [count_words(each.text) for each in said]
    for n in range(len(said) + 1):
        kept = distil(said[::-1], sum(costs[:n]))
        assert set(texts(kept)) >= set(texts(said[:1] if n else [])) and sum(map(count_words, texts(kept))) <= sum(
            costs[:n]
        )
    assert set(texts(distil(said, sum(costs) - costs[-1]))) == set(texts(said[:-1]))
    twice = [line("One parcel was lost at ten.", "medium", kind="statement", name="again", clock="08:00"), *said[3:5]]
    (kept_one,) = distil(twice, costs[4])
    assert kept_one.text == said[4].text and len(kept_one.sources) == 2  # support before how new it is


def test_what_is_said_again_is_one_line_with_the_newest_words() -> None:
    old = line("Use pnpm for packages here.", name="a")
    new = line("Always use pnpm for all packages here.", name="b", clock="10:00")
    (kept,) = distil([old, new], 100)
    assert (kept.text, kept.sources) == (new.text, ("b", "a"))
    assert (kept.first_seen, kept.last_seen) == (at("09:00"), at("10:00"))


@each(
    ("old", "new"),
    [
        (
            "The depot in Leipzig must not be asked twice a minute.",
            "The depot in Leipzig must be asked twice a minute.",
        ),
        ("Always use uv, never pip.", "Always use pip, never uv."),
        ("Retries stop after five attempts.", "Retries stop after six attempts."),
        ("Parcels go to Leipzig on Mondays.", "Parcels go to Dresden on Mondays."),
        ("Freitags wird nie in Leipzig ausgeliefert.", "Freitags wird in Leipzig ausgeliefert."),
        ("生产环境不要使用这个数据库", "生产环境使用这个数据库"),
        ("金曜日に本番環境へデプロイしない", "金曜日に本番環境へデプロイする"),
    ],
)
def test_a_negation_an_object_or_a_number_never_goes(old: str, new: str) -> None:
    kept = distil([line(old, name="a"), line(new, name="b", clock="10:00")], 0)
    assert texts(kept) == [old, new]


def test_a_high_is_never_taken_into_a_line_that_is_less() -> None:
    high, low = (
        line("Use pnpm for packages.", name="a"),
        line("Use pnpm for all packages.", "low", name="b", clock="10:00"),
    )
    assert texts(distil([high, low], 100)) == [high.text, low.text]
    said = replace(low, text="Use pnpm for packages.")
    (kept,) = distil([high, said], 100)
    assert (kept.priority, kept.sources) == ("high", ("a", "b"))


def test_a_month_of_many_highs_is_done_soon() -> None:
    """Each is compared with those that share its rarest word, not with all."""
    said = [
        replace(
            line(f"Depot {n} sends parcel {n * 7} to the customer at {n % 24}:00.", name=f"{n}"),
            last_seen=at("09:00") + timedelta(minutes=n),
        )
        for n in range(3_000)
    ]
    assert len(distil(said, 0)) == 3_000


SOME = (
    "never",
    "npm",
    "pnpm",
    "lockfile",
    "parcel",
    "queue",
    "Leipzig",
    "the",
    "of",
    "…",
    "404",
    "don't",
    "不要",
    "使用",
)
LINES = st.lists(
    st.builds(
        lambda n, said, priority, minute: Line(
            " ".join(said), "rule", priority, (f"o-{n}",), at(f"09:{minute:02}"), at(f"09:{minute:02}")
        ),
        st.integers(0, 10**6),
        st.lists(st.sampled_from(SOME), min_size=1, max_size=12),
        st.sampled_from(["high", "medium", "low"]),
        st.integers(0, 59),
    ),
    max_size=12,
    unique_by=lambda each: each.sources,
)


@given(LINES, st.integers(0, 80))
def test_every_line_is_whole_and_no_high_is_lost(lines: list[Line], room: int) -> None:
    kept = distil(lines, room)
    by_id = {each.sources[0]: each for each in lines}
    named = [source for each in kept for source in each.sources]
    assert len(named) == len(set(named)) and set(named) <= set(by_id)
    assert {line.sources[0] for line in lines if line.priority == "high"} <= set(named)
    for line in kept:
        assert line.text == by_id[line.sources[0]].text and line.priority == by_id[line.sources[0]].priority
        assert all(says_all(words(line.text), words(by_id[source].text)) for source in line.sources)
    rest = [each for each in kept if each.priority != "high"]
    highs = sum(count_words(each.text) for each in kept if each.priority == "high")
    assert not rest or highs + sum(count_words(each.text) for each in rest) <= room
    assert distil(lines[::-1], room) == kept
