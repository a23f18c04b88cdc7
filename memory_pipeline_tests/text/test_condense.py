"""What is rare in a text stays when it is condensed, within its share, in order, and the same each time."""

import os
import subprocess
import sys

from memory_pipeline.text.condense import condense, rarity_in
from memory_pipeline.text.similarity import content_words
from memory_pipeline.text.tokens import estimate
from memory_pipeline_tests.cases import each

CHAT = [
    "That sounds really great, good to hear!",
    "I adopted two greyhounds in Lisbon last week.",
    "Wow, that is so good, it sounds really great to me!",
    "Really good to hear that it was great!",
    "What else is good?",
    "My sister Ines bakes sourdough on Sundays.",
    "That is great, really!",
]


@each("share", [0.0, 0.1, 0.2, 0.5, 0.9, 1.0])
def test_never_more_than_its_share_and_in_order(share: float) -> None:
    kept = condense(CHAT, share)
    assert kept == sorted(set(kept))
    assert sum(estimate(CHAT[i]) for i in kept) <= share * sum(map(estimate, CHAT))


def test_what_is_specific_stays_before_what_everybody_says() -> None:
    assert condense(CHAT, 0.4) == [1, 5]
    assert condense(CHAT, 1.0) == list(range(len(CHAT)))


@each(
    ("more", "less"),
    [
        ("they met Vera there", "they met later there"),  # a name
        ("they met 1987 there", "they met later there"),  # a number
        ("they met app.py there", "they met later there"),  # a file
        ("they met fooBar there", "they met foobaz there"),  # an identifier
        ("we met people outside", "he met people outside"),  # of themselves
        ("they met people there", "they met people there?"),  # a question asks for facts, and is none
        ("they met 你好 there", "they met 你好 there？"),
    ],
)
def test_of_two_the_one_that_says_more(more: str, less: str) -> None:
    rarity = dict.fromkeys(content_words(more) | content_words(less), 1.0)
    share = max(estimate(more), estimate(less)) / (estimate(more) + estimate(less))
    if content_words(more) == content_words(less):
        less += " so"  # with the very same words only one would be kept anyway
    assert condense([less, more], share, rarity) == [1]


def test_the_same_words_are_kept_once() -> None:
    assert condense(["Ines moved to Porto.", "Porto? Ines moved to Porto!", "I see."], 1.0) == [0, 2]


def test_rarity_from_elsewhere_decides() -> None:
    texts = ["the orchard froze", "the kettle boiled"]
    assert condense(texts, 0.5, {"orchard": 2.0, "kettle": 0.1, "froze": 1.0, "boiled": 1.0}) == [0]
    assert condense(texts, 0.5, {"orchard": 0.1, "kettle": 2.0, "froze": 1.0, "boiled": 1.0}) == [1]


def test_rarity_is_that_of_texts_and_not_of_mentions() -> None:
    rarity = rarity_in([frozenset({"a", "b"}), frozenset({"a"})])
    assert rarity["b"] > rarity["a"] > 0
    assert rarity_in([]) == {}


def test_nothing_condenses_to_nothing() -> None:
    assert condense([], 0.2) == []
    assert condense(["", "  "], 0.5) in ([], [1])


def test_the_order_of_a_set_does_not_matter() -> None:
    """Words are sets, whose order differs from one process to the next."""
    code = f"from memory_pipeline.text.condense import condense; print(condense({CHAT * 3 + ['Ines met Vera.']!r}, .4))"
    answers = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(answers) == 1
