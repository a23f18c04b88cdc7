"""Keyword search over short texts: rare words before common ones, short texts before long ones."""

from memory_pipeline.text.bm25 import BM25

TEXTS = [
    "The cache of the parcel service is cleared at night.",
    "The parcel service has a cache; the parcel service has a queue; the parcel service has retries and a log.",
    "Postgres listens for changes.",
]


def test_the_text_with_the_rarer_word_is_first() -> None:
    assert BM25(TEXTS).search("parcel night", 10) == [0, 1]
    assert BM25(TEXTS).search("what does postgres do with a parcel?", 10)[0] == 2


def test_of_two_that_say_it_the_shorter_one_is_first() -> None:
    assert BM25(["queue and retries and logs and other things", "the queue"]).search("queue", 10) == [1, 0]


def test_no_more_are_given_than_are_wanted() -> None:
    assert BM25(TEXTS).search("parcel", 1) == [0] or BM25(TEXTS).search("parcel", 1) == [1]


def test_equals_are_in_the_order_of_the_texts() -> None:
    assert BM25(["one cache", "two other", "one cache"]).search("cache", 10) == [0, 2]


def test_common_words_and_strange_ones_find_nothing() -> None:
    assert BM25(TEXTS).search("the of a and", 10) == []
    assert BM25(TEXTS).search("kubernetes", 10) == []


def test_nothing_is_found_in_nothing() -> None:
    assert BM25([]).search("cache", 10) == []
    assert BM25(["", "…"]).search("cache", 10) == []
