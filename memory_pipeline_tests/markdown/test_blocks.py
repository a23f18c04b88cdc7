"""Our blocks in a person's markdown: replaced while they are ours, left alone once a person has edited them."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.markdown.blocks import (
    append_block,
    cut_block,
    damage,
    has_block,
    insert_lines,
    newline_of,
    one_line,
    put_block,
    split_lines,
)
from memory_pipeline_tests.cases import each

PERSON = "# 2026-03-05\n\nCalled the plumber.  \n"


def block(body: str, key: str = "k") -> str:
    return put_block("", key, body).text


def test_a_block_looks_like_this() -> None:
    assert block("aaa") == "<!-- memory:k 9834876dcfb0 -->\naaa\n<!-- /memory:k -->\n"


@each(
    ("text", "gap"),
    [
        ("", ""),
        ("\ufeff", ""),
        ("\ufeff\ufeff", "\n\n"),
        ("line\n", "\n"),
        ("line", "\n\n"),  # no final newline
        ("line\n\n", ""),  # there is a blank line already
        ("line\n   ", "\n"),  # a blank line of spaces without an end
        ("line\r\n", "\r\n"),
    ],
)
def test_a_new_block_goes_to_the_end_after_one_blank_line(text: str, gap: str) -> None:
    result = put_block(text, "k", "aaa")
    expected = block("aaa").replace("\n", newline_of(text))
    assert (result.text, result.state) == (text + gap + expected, "added")


def test_the_same_body_changes_no_byte() -> None:
    text = PERSON + "\n" + block("one\ntwo") + "after\n"
    assert put_block(text, "k", "one\ntwo") == put_block(text, "k", "\none\r\ntwo\n\n")
    assert put_block(text, "k", "one\ntwo").state == "unchanged"


def test_an_untouched_block_is_replaced_in_place() -> None:
    text = PERSON + "\n" + block("one") + "after"
    result = put_block(text, "k", "two\nthree")
    assert (result.text, result.state) == (PERSON + "\n" + block("two\nthree") + "after", "replaced")


def test_a_file_that_an_editor_turned_to_windows_line_endings_still_holds_our_block() -> None:
    text = (PERSON + "\n" + block("one\ntwo")).replace("\n", "\r\n")
    assert put_block(text, "k", "one\ntwo").state == "unchanged"
    assert put_block(text, "k", "two").text == (PERSON + "\n" + block("two")).replace("\n", "\r\n")


@each(
    "text",
    [
        block("one").replace("one", "one, and more"),
        block("one").replace("one\n", "one\n\n"),
        block("one").replace("<!-- /memory:k -->\n", ""),  # never closed
        block("one").replace("<!-- memory:k", "<!-- k"),  # never opened
        block("one").replace(" -->\none", "-->\none"),  # bent by a formatter
        block("one").replace("<!-- memory", "  <!-- memory"),
        block("one").replace("memory:k 7", "memory:k "),
        block("one") + block("one"),  # doubled
        block("one") + block("two"),
        "<!-- /memory:k -->\n" + block("one"),
        "```\n<!-- memory:k\n```\n",
    ],
)
def test_a_block_that_a_person_had_a_hand_in_is_left_as_it_is(text: str) -> None:
    result = put_block(PERSON + text, "k", "new")
    assert (result.text, result.state) == (PERSON + text, "edited")


def test_keys_that_begin_alike_are_different_blocks() -> None:
    text = block("one", "a:1") + block("two", "a:12")
    assert put_block(text, "a:1", "new").text == block("new", "a:1") + block("two", "a:12")
    assert put_block(text, "a", "new").state == "added"


@each(("key", "body"), [("", "a"), ("a b", "a"), ("k", "<!-- /memory:k -->"), ("k", "x <!--memory:j")])
def test_keys_and_bodies_that_would_break_a_block_are_refused(key: str, body: str) -> None:
    with pytest.raises(ValueError, match="block"):
        put_block("", key, body)


PIECES = st.sampled_from(
    [
        "\n",
        "\r\n",
        "\r",
        "\n\n",
        "\ufeff",
        "\x85",
        "\u2028",
        "# h",
        "```",
        "<!--",
        "-->",
        "<!-- memory:k",
        "memory:k -->",
    ]
)
WORDS = st.text(max_size=8) | st.just("\udcff")  # a byte that is no UTF-8
PERSONS_TEXT = st.lists(PIECES | WORDS, max_size=12).map("".join)
BODIES = st.lists(
    st.sampled_from(["\n", "\r\n", "\r", "* 🔴 (09:15) fact", " "]) | st.text(max_size=8), max_size=6
).map("".join)


@given(PERSONS_TEXT, BODIES, BODIES)
def test_nothing_outside_the_block_changes(text: str, first: str, second: str) -> None:
    added = put_block(text, "k", first)
    if added.state == "edited":
        assert added.text == text and "memory:k" in text
        return
    assert added.text.startswith(text)
    assert put_block(added.text, "k", first) == put_block(added.text, "k", first + "\n")
    assert put_block(added.text, "k", first).state == "unchanged"
    replaced = put_block(added.text + "\nafter", "k", second)
    assert replaced.text.startswith(text) and replaced.text.endswith("\nafter")
    back = put_block(replaced.text, "k", first)
    assert back.text == added.text + "\nafter"


@given(st.text() | PERSONS_TEXT)
def test_one_line_is_one_visible_line_without_comments(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1 and line == line.strip() == one_line(line)
    assert "<!--" not in line and "-->" not in line
    line.encode("utf-8")


@each(
    ("text", "line"),
    [
        (" two\n lines\u2028and\tmore ", "two lines and more"),
        ("Vec<String> -> x", "Vec<String> -> x"),
        ("a --> b <!-- c", "a --&gt; b &lt;!-- c"),
        ("<\u200b!-\u200b- hidden", "&lt;!-- hidden"),  # a comment that appears once hidden characters are gone
        ("pay \u202egnp.exe\u202c", "pay gnp.exe"),  # reversed direction
        ("family 👨‍👩‍👧", "family 👨‍👩‍👧"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_what_one_line_makes_of_a_text(text: str, line: str) -> None:
    assert one_line(text) == line


@given(PERSONS_TEXT, st.data())
def test_inserted_lines_lose_nothing(text: str, data: st.DataObject) -> None:
    lines = split_lines(text)
    assert "".join(lines) == text and all(re.fullmatch(r"[^\n]*\n|[^\n]+", line) for line in lines)
    index = data.draw(st.integers(0, len(lines)))
    insert_lines(lines, index, ["X1", "X2"], "\n")
    assert re.sub(r"X1\nX2\n|\nX1\nX2$", "", "".join(lines), count=1) == text


TEXTS = st.text(alphabet=st.sampled_from("ab#\n\r \ufeff-\udc80"), max_size=12)


@given(st.none() | TEXTS, st.text(alphabet="xy\n", max_size=5))
def test_a_block_that_is_cut_again_leaves_what_was_there(text: str | None, body: str) -> None:
    assert cut_block(append_block(text, "k", body), "k") == text


@given(TEXTS, TEXTS)
def test_what_is_written_around_a_block_stays(before: str, after: str) -> None:
    """A line before it, and a line after it."""
    text = f"{before}\n{append_block('', 'k', 'body')}\n{after}"
    assert cut_block(text, "k") == f"{before}\n{after}"


def test_two_blocks_leave_in_any_order() -> None:
    text = append_block(append_block("no final newline", "a", "1"), "b", "2")
    for first, second in (("a", "b"), ("b", "a")):
        left = cut_block(text, first)
        assert left is not None and cut_block(left, second) == "no final newline"


@each(
    ("edit", "line", "what"),
    [
        (lambda text: text.replace("<!-- /memory:k -->", ""), 3, "without the other"),
        (lambda text: text + text, 8, "one more mark of the block that begins in line 3"),
        (lambda text: text.replace("body", "my body"), 3, "edited by hand, down to line 5"),
    ],
)
def test_damage_is_named_with_its_line(edit: Callable[[str], str], line: int, what: str) -> None:
    text = edit(append_block("one\ntwo\n", "k", "body"))
    found = damage(text, "k")
    assert found is not None
    assert found[0] == line
    assert what in found[1]
    with pytest.raises(ValueError, match="not as it was written"):
        cut_block(text, "k")


def test_without_a_block_nothing_is_damaged() -> None:
    assert damage("text <!-- memory:other 9834876dcfb0 -->", "k") is None
    assert not has_block("text", "k")
