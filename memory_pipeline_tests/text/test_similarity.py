"""Two short texts are alike by the content words that they share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.text.relation import OBSERVED
from memory_pipeline.text.similarity import content_words, is_latin, overlap, words
from memory_pipeline_tests.cases import each


@each(
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


@each(
    ("text", "expected"),
    [
        ("用pnpm安装依赖", ["用", "pnpm", "安装", "装依", "依赖"]),  # no spaces between its words
        ("データベースは必ずPostgresを使う", ["データベース", "は", "必", "ず", "postgres", "を", "使", "う"]),
        ("로그에 남기지", ["로그", "그에", "남기", "기지"]),
    ],
)
def test_of_chinese_and_korean_two_neighbours_are_a_word(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@each(
    ("text", "expected"),
    [
        ("不要用npm，用pnpm", {"npm", "pnpm"}),  # the rest is grammar
        ("每次提交都要小", {"次提", "提交", "交都", "要小"}),
        ("データベースは必ずPostgresを使ってください", {"データベース", "postgres"}),
        ("してください", {"してください"}),  # nothing else: it counts
    ],
)
def test_content_words_without_spaces(text: str, expected: set[str]) -> None:
    assert content_words(text) == expected


@each(
    ("one", "other", "is_same"),
    [
        ("不要用pip，用poetry", "请用poetry，不要再用pip了", True),
        ("每次提交都要小，一个提交只做一件事", "提交要小，每个提交只做一件事", True),
        ("不要用npm，用pnpm", "不要用pip，用poetry", False),
        ("数据库一律使用Postgres", "Postgres的备份只在夜里运行", False),  # one Latin word in common
        ("pipではなくpoetryを使って", "pipじゃなくてpoetryを使ってください", True),
        ("ログにメールアドレスを出力しないでください", "メールアドレスはログに出さないで", True),
        ("npmではなくpnpmを使ってください", "pipではなくpoetryを使ってください", False),
        ("로그에 이메일을 출력하지 마세요", "로그에는 이메일을 출력하지 말 것", True),
        ("로그에 이메일을 출력하지 마세요", "커밋은 작게 나눠 주세요", False),
    ],
)
def test_what_says_the_same_without_spaces(one: str, other: str, is_same: bool) -> None:
    assert (overlap(content_words(one), content_words(other)) >= OBSERVED.overlap) is is_same


@each(
    ("text", "latin"),
    [
        ("Use uv, never pip", True),
        ("Größe immer in µm angeben", True),
        ("用 pnpm 不用 npm install", False),
        ("로그에 남기지 마세요", False),
        ("всегда используй Postgres", False),
        ("42 / 7", True),  # no letters at all
    ],
)
def test_what_the_bundled_model_can_judge(text: str, latin: bool) -> None:
    assert is_latin(text) is latin


@each(
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


@each(
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
