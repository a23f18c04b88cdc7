"""Which words of users are about one thing."""

import time

import pytest

from memory_pipeline.friction.clustering import Words, clusters, terms_of
from memory_pipeline.text.phrases import phrase_encoder

OTHER = (
    "The kiln log needs a header.",
    "Sort the glazes by cone.",
    "Rename the oven module.",
    "Write shorter commits.",
)


def grouped(*texts: str, by_words: bool = False) -> list[list[int]]:
    """Groups of the texts, among others that users said."""
    vectors = [None] * len(texts) if by_words else list(phrase_encoder().encode(texts))
    return clusters(texts, vectors, Words.among([*texts, *OTHER]))


@pytest.mark.parametrize(
    "texts",
    [
        ("Use uv, not pip, here.", "Again: use uv, not pip."),
        ("Nimm uv statt pip.", "Wieder pip! Nimm bitte uv statt pip."),
        ("Usa uv en vez de pip.", "Otra vez: usa uv en vez de pip."),
        ("用 uv，不要用 pip。", "又错了，用 uv，不要用 pip。"),
    ],
)
@pytest.mark.parametrize("by_words", [False, True])
def test_what_says_the_same_is_one(texts: tuple[str, str], by_words: bool) -> None:
    assert grouped(*texts, *OTHER, by_words=by_words) == [[0, 1]]


def test_different_things_are_no_group() -> None:
    assert grouped(*OTHER) == []


@pytest.mark.parametrize("texts", [(), ("Use uv.",), ("", "", ""), ("\x00", "‮"), ("please", "please do")])
def test_nothing_and_noise(texts: tuple[str, ...]) -> None:
    assert all(len(group) > 1 for group in grouped(*texts))


@pytest.mark.parametrize(
    "texts",
    [
        ("the commit message says what changed, not why", "your commits never tell the reason"),
        ("leg die Testdatei neben das Modul", "put the test file next to the module"),
        ("los tests van junto al módulo", "Tests liegen neben dem Modul"),
    ],
)
def test_vectors_find_what_words_do_not_also_in_another_language(texts: tuple[str, str]) -> None:
    assert grouped(*texts, *OTHER) == [[0, 1]]
    assert grouped(*texts, *OTHER, by_words=True) == []


@pytest.mark.parametrize("by_words", [False, True])
def test_what_gives_up_different_things_is_not_the_same_however_alike(by_words: bool) -> None:
    texts = ("Use uv instead of pip for the kiln.", "Use uv instead of poetry for the kiln.")
    assert grouped(*texts, by_words=by_words) == []


def test_the_order_of_texts_does_not_matter() -> None:
    texts = ("Use uv, not pip, here.", *OTHER, "Again: use uv, not pip.")
    ((one, other),) = grouped(*texts)
    ((first, last),) = grouped(*reversed(texts))
    assert {texts[one], texts[other]} == {texts[::-1][first], texts[::-1][last]}


NEAR = ("Not in this branch, burners bake.", "Clay deserves another branch.")


def after(deeds: tuple[str, str], texts: tuple[str, str] = NEAR, *, elsewhere: int = 0) -> list[list[int]]:
    """Groups of two texts, each said after a deed; the first deed was done so many times more."""
    every = [*texts, *OTHER, *(f"Sort shelf{i}." for i in range(elsewhere))]
    did = [{deeds[0]}, {deeds[1]}, *[set[str]()] * len(OTHER), *[{deeds[0]}] * elsewhere]
    return clusters(every, list(phrase_encoder().encode(every)), Words.among(every, did), did)


def test_two_that_sound_a_little_alike_are_one_thing_after_the_same_deed() -> None:
    assert after(("ran git push", "ran git push")) == [[0, 1]]
    assert after(("ran git push", "ran pytest")) == []


def test_what_is_done_all_the_time_tells_nothing() -> None:
    assert not any({0, 1} <= set(group) for group in after(("ran git push", "ran git push"), elsewhere=60))


def test_a_name_has_its_parts() -> None:
    assert terms_of("Use docker-compose") >= {"docker-compose"}
    assert terms_of("please always use it") == frozenset()


def test_a_thousand_copies_and_two_thousand_others_take_seconds() -> None:
    texts = ["Use uv, not pip."] * 1_000 + [f"Put thing{i} beside shelf{i} of room{i}." for i in range(2_000)]
    began = time.process_time()
    found = clusters(texts, [None] * len(texts), Words.among(texts))
    assert found[0] == list(range(1_000))
    assert time.process_time() - began < 20
