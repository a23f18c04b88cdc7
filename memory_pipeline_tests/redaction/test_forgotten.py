"""What was forgotten is known again by its hashes, in whatever form it stands."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.redaction import Redactor
from memory_pipeline.redaction.forgotten import (
    MARK,
    MESSAGE,
    SESSION,
    Forgotten,
    Phrases,
    Runs,
    id_digest,
    moved,
    words_digest,
    words_in,
)
from memory_pipeline_tests.cases import each

SALT = b"0123456789abcdef"


def forgotten(*texts: str) -> Forgotten:
    by_length: dict[int, frozenset[str]] = {}
    for sequence in Phrases(texts).sequences:
        digest = words_digest(SALT, sequence)
        by_length[len(sequence)] = by_length.get(len(sequence), frozenset()) | {digest}
    return Forgotten(SALT, words=by_length)


@each(
    ("words", "text", "left"),
    [
        ("Acme Corp", "the invoice of ACME  corp, of May", f"the invoice of {MARK}, of May"),
        ("Acme Corp", "acme corporation pays", "acme corporation pays"),
        ("zebra", "a\\nzebra in JSON", f"a\\n{MARK} in JSON"),
        ("snake case", "a **snake**_case name", f"a **{MARK} name"),
        ("a b", "a b a b", f"{MARK} {MARK}"),
        ("one two three", "one two three four", f"{MARK} four"),
        ("東京", "私は東京に行く", f"私は{MARK}に行く"),
        ("Straße", "in der STRASSE", f"in der {MARK}"),
        ("C:\\new", "C:\\new is", f"{MARK} is"),
    ],
)
def test_words_are_found_whatever_stands_between_them(words: str, text: str, left: str) -> None:
    assert forgotten(words).without(text) == left
    assert Phrases([words]).without(text) == left
    assert Redactor(SALT, forgotten(words)).redact(text) == left


@given(
    st.text(alphabet="ab c.\\n[]", max_size=40), st.lists(st.text(alphabet="abc ", min_size=1, max_size=8), max_size=3)
)
def test_hashes_find_what_the_words_find_and_nothing_twice(text: str, words: list[str]) -> None:
    once = Phrases(words).without(text)
    assert forgotten(*words).without(text) == once
    assert forgotten(*words).without(once) == once


def test_hashes_hold_no_words_and_depend_on_the_salt() -> None:
    assert words_digest(SALT, ("zebra",)) != words_digest(b"other", ("zebra",))
    assert "zebra" not in repr(forgotten("zebra"))
    assert id_digest(SALT, SESSION, "a") != id_digest(SALT, MESSAGE, "a")


def test_a_session_goes_with_those_that_it_started() -> None:
    known = Forgotten(SALT, sessions=frozenset({id_digest(SALT, SESSION, "one")}))
    assert known.has_session("one")
    assert known.has_session("one/agent-7")
    assert not known.has_session("two")
    assert not known.has_message("one")


def test_nothing_forgotten_costs_nothing() -> None:
    assert Forgotten().version == ""
    assert not Forgotten()
    assert forgotten("zebra").version != forgotten("other").version


def test_places_move_with_the_marks() -> None:
    text = "the zebra crossing"
    spans = Phrases(["zebra"]).spans(text)
    new = Phrases(["zebra"]).without(text)
    start = text.index("crossing")
    assert new[moved(start, spans) : moved(len(text), spans)] == "crossing"
    assert moved(0, spans) == 0


def test_a_stretch_of_six_words_is_told_and_fewer_are_not() -> None:
    runs = Runs(["one two three four five six seven eight", "short words here", "no"])
    assert runs.are_in("cut off: two three four five six seven…")
    assert not runs.are_in("two three four five six")
    assert runs.are_in("| Short words, here |")
    assert not runs.are_in("no")


def test_a_mark_is_a_word_that_nobody_says() -> None:
    assert [word.text for word in words_in(f"a {MARK} b")] == ["a", MARK, "b"]
    assert forgotten("forgotten").without(MARK) == MARK
