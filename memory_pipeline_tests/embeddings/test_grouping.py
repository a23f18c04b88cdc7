"""Which short texts say the same, by vectors and by words."""

from memory_pipeline.text.relation import Likeness, groups
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import FakeEncoder

ENCODER = FakeEncoder("uv", "pip", "tests", "friday")


def grouped(
    texts: list[str], *, without: str = "", min_cosine: float = 0.75, min_overlap: float = 0.5
) -> list[list[int]]:
    """Positions of the texts by group; the positions in `without` have no vector."""
    ids = [f"{i}" for i in range(len(texts))]
    vectors = {i: ENCODER.vector(text) for i, text in zip(ids, texts, strict=True) if i not in without}
    found = groups(ids, dict(zip(ids, texts, strict=True)), vectors, Likeness(min_overlap, min_cosine))
    return [[int(i) for i in group] for group in found]


def test_nothing_is_no_group() -> None:
    assert grouped([]) == []


def test_the_same_meaning_in_other_words_is_one_group() -> None:
    assert grouped(["use uv", "uv, everywhere", "run the tests", "all tests pass"]) == [[0, 1], [2, 3]]


def test_the_first_leads_and_the_order_stays() -> None:
    assert grouped(["run the tests", "use uv", "tests!", "uv!"]) == [[0, 2], [1, 3]]


@each(
    ("min_cosine", "expected"),
    [
        (0.70, [[0, 1]]),  # the cosine of {uv} and {uv, pip} is 0.707
        (0.71, [[0], [1]]),
    ],
)
def test_the_cosine_from_which_two_say_the_same(min_cosine: float, expected: list[list[int]]) -> None:
    assert grouped(["uv", "uv or pip"], min_cosine=min_cosine) == expected


def test_neighbours_of_neighbours_do_not_chain() -> None:
    """{uv} ~ {uv, pip} ~ {pip}, but {uv} and {pip} have nothing in common."""
    assert grouped(["uv", "uv or pip", "pip"], min_cosine=0.70) == [[0, 1], [2]]


@each("without", ["01", "0", "1"])
def test_where_a_vector_is_missing_words_decide(without: str) -> None:
    """By vectors these two are the same (both are about uv), by words they are not."""
    assert grouped(["use uv for builds", "uv breaks on windows"], without=without) == [[0], [1]]
    assert grouped(["run nightly builds", "nightly builds run"], without=without) == [[0, 1]]


@each(
    ("min_overlap", "expected"),
    [
        (0.5, [[0, 1]]),  # two of four words
        (0.51, [[0], [1]]),
    ],
)
def test_the_overlap_from_which_two_say_the_same(min_overlap: float, expected: list[list[int]]) -> None:
    texts = ["nightly builds crash", "nightly builds pass"]
    assert grouped(texts, without="01", min_overlap=min_overlap) == expected
