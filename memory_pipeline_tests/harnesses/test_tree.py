"""Which entries of a tree were left behind, against the plain definition of it."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from memory_pipeline.harnesses.tree import abandoned, descendants

NAMES = [str(number) for number in range(12)]
names = st.sampled_from(NAMES)


@st.composite
def trees(draw: st.DrawFn) -> dict[str, str]:
    """As they are written: every entry but the first has a parent that came before it."""
    size = draw(st.integers(1, len(NAMES)))
    return {name: draw(st.sampled_from(NAMES[:number])) if number else "" for number, name in enumerate(NAMES[:size])}


damaged = st.dictionaries(names, st.one_of(names, st.just(""), st.just("lost")), min_size=1)
"""With parents that are not there, several roots and cycles."""


def chain(parents: dict[str, str], entry: str) -> list[str]:
    found: list[str] = []
    while entry in parents and entry not in found:
        found.append(entry)
        entry = parents[entry]
    return found


@given(st.one_of(trees(), damaged), names, st.dictionaries(names, names, max_size=3))
def test_left_is_what_hangs_on_a_kept_entry_and_is_not_kept(
    parents: dict[str, str], leaf: str, carried: dict[str, str]
) -> None:
    kept = set(chain(parents, leaf))
    for _ in carried:  # a summary may stand on a branch that another one carried over
        kept |= {name for summary, last in carried.items() if summary in kept for name in chain(parents, last)}
    left = {entry for entry in parents if entry not in kept and kept & set(chain(parents, entry))}
    assert abandoned(parents, leaf, carried) == left


@given(trees())
def test_of_a_whole_tree_all_is_left_but_the_way_to_the_leaf(parents: dict[str, str]) -> None:
    leaf = list(parents)[-1]
    assert abandoned(parents, leaf) == parents.keys() - set(chain(parents, leaf))


@given(damaged)
def test_an_unknown_leaf_leaves_nothing_behind(parents: dict[str, str]) -> None:
    assert abandoned(parents, "nowhere") == set()


@given(st.one_of(trees(), damaged), names)
def test_below_is_every_entry_whose_way_leads_through(parents: dict[str, str], entry: str) -> None:
    assume(entry in parents)
    assert descendants(parents, entry) == {entry, *(name for name in parents if entry in chain(parents, name))}


def test_a_long_session_is_no_deeper_than_the_stack() -> None:
    parents = {str(number): str(number - 1) for number in range(100_000)}
    assert abandoned(parents, "5") == {str(number) for number in range(6, 100_000)}
    assert len(descendants(parents, "5")) == 99_995
