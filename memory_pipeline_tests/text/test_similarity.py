"""Two short texts are alike by the content words that they share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.text.similarity import content_words, overlap, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("Use PNPM, not npm!", ["use", "pnpm", "not", "npm"]),
        ("see src/app/main.py:12.", ["see", "src/app/main.py:12"]),  # a path is one word, its full stop is none
        ("set MAX_RETRIES=3", ["set", "max_retries", "3"]),
        ("mail mira@example.org", ["mail", "mira@example.org"]),
        ("node 22.1, c++", ["node", "22.1", "c"]),
        ("Straße über Größe", ["straße", "über", "größe"]),
        ("用 pnpm", ["用", "pnpm"]),
        ("- * `` !?", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_each_chinese_character_is_a_word() -> None:
    """Chinese has no spaces between its words."""
    assert words("用pnpm安装") == ["用", "pnpm", "安", "装"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please use the pnpm lockfile", {"use", "pnpm", "lockfile"}),
        ("a b c", {"a", "b", "c"}),  # nothing of content: everything counts
        ("do it", {"do", "it"}),
        ("", set()),
    ],
)
def test_content_words(text: str, expected: set[str]) -> None:
    assert content_words(text) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("use pnpm", "use pnpm", 1.0),
        ("use pnpm", "Please, use pnpm!", 1.0),  # only common words differ
        ("pnpm lockfile", "pnpm cache", 1 / 3),
        ("pnpm lockfile", "docker image", 0.0),
        ("", "", 0.0),  # two empty texts say nothing, so not the same
        ("pnpm", "", 0.0),
    ],
)
def test_overlap(one: str, other: str, expected: float) -> None:
    assert overlap(content_words(one), content_words(other)) == pytest.approx(expected)


@given(st.text(), st.text())
def test_overlap_is_symmetric_and_between_0_and_1(one: str, other: str) -> None:
    a, b = content_words(one), content_words(other)
    assert overlap(a, b) == overlap(b, a)
    assert 0.0 <= overlap(a, b) <= 1.0


@given(st.text())
def test_a_text_with_words_is_entirely_like_itself(text: str) -> None:
    assert overlap(content_words(text), content_words(text)) == (1.0 if words(text) else 0.0)
