"""Lines become fewer and shorter: highs that say the same are one, and the rare words of each are kept."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.distillation.lines import NARRATIVE, Line, count_words, distil
from memory_pipeline.text.condense import rarity_in
from memory_pipeline.text.similarity import content_words
from memory_pipeline_tests.rows import at

RULE = "Never use npm here because the lockfile belongs to pnpm."


def line(text: str, priority: str = "high", *, name: str = "", clock: str = "09:00") -> Line:
    return Line(text, "rule", priority, (name or f"o-{text}",), at(clock), at(clock))


def rarity(*lines: Line) -> dict[str, float]:
    return rarity_in([content_words(each.text) for each in lines])


def test_highs_stay_as_they_are_while_there_is_room() -> None:
    lines = [line(RULE), line("Asked: look at the parcel service. Ended with: it runs again.", "low")]
    assert RULE in [each.text for each in distil(lines, 25, rarity(*lines), verbatim=0.4)]


def test_highs_are_shortened_when_they_would_take_all_of_the_room() -> None:
    (kept,) = distil([line(RULE)], 4, rarity(line(RULE)))
    assert count_words(kept.text) <= 4
    assert set(kept.text.split()) < set(RULE.split())
    assert kept.sources == (f"o-{RULE}",)


@pytest.mark.parametrize("priority", ["high", "low"])
def test_a_shortened_line_still_says_no(priority: str) -> None:
    """A rule without its Never would be its opposite."""
    rule = line(RULE, priority)
    (kept,) = distil([rule], 4, rarity(rule))
    assert kept.text.startswith("Never ")
    assert distil([rule], 2, rarity(rule)) == []


def test_what_is_left_with_no_only_is_left_out() -> None:
    assert distil([line("Never do it.")], 4, {}) == []


def test_the_rare_words_are_kept_in_every_line_that_has_them() -> None:
    said = ["The service reads the queue.", "The service writes the queue.", "The service drops parcels in Leipzig."]
    lines = [line(text, "low", clock=f"09:0{n}") for n, text in enumerate([*said, "Leipzig answers slowly."])]
    kept = distil(lines, 4, {"leipzig": 3.0, "parcels": 2.0, "answers": 1.0, "queue": 0.1, "service": 0.05})
    assert [each.text for each in kept] == ["parcels Leipzig.", "Leipzig answers"]


def test_a_line_that_is_not_high_has_two_words_or_none() -> None:
    """One word says nothing to who reads it."""
    lines = [line("Leipzig answers slowly.", "low"), line("So many parcels.", "low", clock="10:00")]
    known = {"leipzig": 1.0, "answers": 0.9, "parcels": 5.0}
    assert [each.text for each in distil(lines, 2, known)] == ["Leipzig answers"]
    assert distil(lines, 1, known) == []
    assert [each.text for each in distil([line("So many parcels.")], 9, known)] == ["parcels."]


def test_a_piece_counts_what_its_words_count_on_average() -> None:
    lines = [line("perhaps you've parcels", "low"), line("Leipzig answers.", "low", clock="10:00")]
    known = {"ve": 2.5, "parcels": 1.0, "leipzig": 1.0, "answers": 1.0}
    assert [each.text for each in distil(lines, 3, known)] == ["Leipzig answers."]
    path = line(r"see C:\depot\parcels\late.md for more news")
    known = {"c": 1.0, "depot": 1.0, "parcels": 1.0, "late.md": 1.0, "more": 0.5, "news": 0.7}
    assert [each.text for each in distil([path], 5, known)] == [r"C:\depot\parcels\late.md news"]


def test_a_narrative_takes_the_room_that_the_facts_leave() -> None:
    told = replace(line("Asked: drop parcels in Leipzig.", "low"), kind=NARRATIVE)
    fact = line("Leipzig drops parcels.", "low", clock="10:00")
    known = rarity(fact) | {"asked": 9.0}
    assert distil([told, fact], 3, known) == [fact]
    assert [each.text for each in distil([told, fact], 6, known)] == ["Asked: parcels Leipzig.", fact.text]


def test_near_duplicates_are_one_line_with_the_newest_words() -> None:
    old, new = (
        line("Use pnpm for all packages here.", name="a"),
        line("Use pnpm for all packages.", name="b", clock="10:00"),
    )
    (kept,) = distil([old, new], 100, rarity(old, new), verbatim=0.4)
    assert (kept.text, kept.sources) == (new.text, ("b", "a"))
    assert (kept.first_seen, kept.last_seen) == (at("09:00"), at("10:00"))


def test_what_is_not_high_is_not_merged() -> None:
    lines = [line("Use pnpm for all packages.", "medium", name=name) for name in "ab"]
    assert len(distil(lines, 100, rarity(*lines))) == 2


SOME = ("never", "npm", "pnpm", "lockfile", "parcel", "queue", "Leipzig", "the", "of", "…", "404", "don't")
WORDS = st.lists(st.sampled_from(SOME), max_size=12)
LINES = st.lists(
    st.builds(
        lambda n, said, priority, minute: Line(
            " ".join(said), "rule", priority, (f"o-{n}",), at(f"09:{minute:02}"), at(f"09:{minute:02}")
        ),
        st.integers(0, 10**6),
        WORDS,
        st.sampled_from(["high", "medium", "low"]),
        st.integers(0, 59),
    ),
    max_size=12,
    unique_by=lambda each: each.sources,
)


@given(LINES, st.integers(0, 80))
def test_a_distillation_fits_invents_nothing_and_does_not_depend_on_order(lines: list[Line], room: int) -> None:
    known = rarity(*lines)
    kept = distil(lines, room, known)
    assert sum(count_words(each.text) for each in kept) <= room
    by_id = {each.sources[0]: each for each in lines}
    named = [source for each in kept for source in each.sources]
    assert len(named) == len(set(named)) and set(named) <= set(by_id)
    for each in kept:
        before = by_id[each.sources[0]].text.split()
        assert set(each.text.split()) <= set(before)
        assert {"never", "don't"} & set(each.text.split()) == {"never", "don't"} & set(before)
    assert distil(lines[::-1], room, known) == kept
