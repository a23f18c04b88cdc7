"""Sentences are spans of their text; code, tables and rules are none of them."""

from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.text.sentences import clip, sentences, squeeze
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.growth import grows_evenly


def cut(text: str) -> list[str]:
    return [text[s.start : s.end] for s in sentences(text)]


@each(
    ("text", "expected"),
    [
        ("", []),
        ("  \n\t\n", []),
        ("Use pnpm. Never npm! Why? Speed…", ["Use pnpm.", "Never npm!", "Why?", "Speed…"]),
        ("no full stop", ["no full stop"]),
        ("It is in app.py, version 3.2.1 of it.", ["It is in app.py, version 3.2.1 of it."]),  # no space after the dot
        ("See e.g. the cache, i.e. Redis. Done.", ["See e.g. the cache, i.e. Redis.", "Done."]),
        ("Plan B. stays. Then go.", ["Plan B. stays.", "Then go."]),  # an initial
        ('He said "stop." Then left.', ['He said "stop."', "Then left."]),  # the quote belongs to its sentence
        ("**Use pnpm.** Then go.", ["**Use pnpm.**", "Then go."]),
        ("用 pnpm。不要用 npm！好", ["用 pnpm。", "不要用 npm！", "好"]),  # no space is needed
        ("one line\nanother line", ["one line", "another line"]),
        ("Windows.\r\nLine ends.\r\n", ["Windows.", "Line ends."]),
    ],
)
def test_prose_is_cut_into_sentences(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


@each(
    "text",
    [
        "```python\nx = 1. Or two.\n```",
        "~~~\ncode\n~~~",
        "  ```\nindented fence\n  ```",
        "```\nnever closed. Still code.",  # a message that was cut off
        "| a. | b |\n|---|---|",
        "---",
        "=====",
        "    const x = 1;",  # indented, and ends like code
    ],
)
def test_what_is_no_prose_has_no_sentences(text: str) -> None:
    assert cut(text) == []
    assert cut(f"Before.\n{text}") == ["Before."]


def test_prose_goes_on_after_a_closed_fence() -> None:
    assert cut("Run this:\n```\nmake. test.\n```\nThen wait.") == ["Run this:", "Then wait."]


@each(
    ("text", "expected"),
    [
        ("Use pnpm.", [("prose", "Use pnpm.")]),
        ("- Use pnpm.", [("bullet", "Use pnpm.")]),
        ("* Use pnpm. Always.", [("bullet", "Use pnpm."), ("bullet", "Always.")]),
        ("12) Use pnpm.", [("bullet", "Use pnpm.")]),
        ("  - [x] Use pnpm.", [("bullet", "Use pnpm.")]),
        ("## Use pnpm.", [("heading", "## Use pnpm.")]),
        ("**Rules**:", [("heading", "**Rules**:")]),
        ("-5 degrees", [("prose", "-5 degrees")]),
    ],
)
def test_bullets_and_headings_are_told_from_prose(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(s.kind, text[s.start : s.end]) for s in sentences(text)] == expected


@each(
    ("text", "paragraphs"),
    [
        ("One. Two.\nThree.", "000"),  # a line break alone does not end a paragraph
        ("One.\n\nTwo.", "01"),
        ("- One. Two.\n- Three.", "001"),
        ("- One.\n  still one.", "00"),  # the bullet goes on
        ("One.\n```\ncode\n```\nTwo.", "01"),
        ("# One\nTwo.", "00"),
    ],
)
def test_paragraphs(text: str, paragraphs: str) -> None:
    numbers = [s.paragraph for s in sentences(text)]
    order = list(dict.fromkeys(numbers))
    assert "".join(str(order.index(number)) for number in numbers) == paragraphs


MARKDOWN = st.text(st.sampled_from(list("aB1 .!?。\n\r\t-*#`~|:)(\"'é🔴\u2028\x0b")), max_size=80)


@given(MARKDOWN)
def test_spans_are_in_order_disjoint_and_trimmed(text: str) -> None:
    end = 0
    for sentence in sentences(text):
        assert end <= sentence.start < sentence.end <= len(text)
        said = text[sentence.start : sentence.end]
        assert said == said.strip() and said
        end = sentence.end


@given(MARKDOWN)
def test_no_word_of_plain_prose_is_lost(text: str) -> None:
    plain = text.translate(dict.fromkeys(map(ord, "-*#`~|:)(1;")))
    assert "".join("".join(cut(plain)).split()) == "".join(plain.split())


@each(
    ("text", "expected"),
    [
        ("- **Use**  pnpm\n  always", "Use pnpm always"),
        ("see [the docs](https://example.org/a_b) 🔴✅", "see the docs"),
        ("![shot](a.png) of it", "shot of it"),
        ("2 * 3", "2 * 3"),  # single asterisks may be arithmetic
        ("`__init__` file", "`__init__` file"),
        ("exactly 1000**3 bytes", "exactly 1000**3 bytes"),
        ("call f(**kwargs) once", "call f(**kwargs) once"),
    ],
)
def test_squeeze_leaves_the_words(text: str, expected: str) -> None:
    assert squeeze(text) == expected


@each(
    ("text", "limit", "expected"),
    [
        ("short", 5, "short"),
        ("two  \n words", 20, "two words"),
        ("the quick brown fox", 12, "the quick…"),  # at a word
        ("a incomprehensibilities", 12, "a incompreh…"),  # unless too little would be left
        ("incomprehensible", 5, "inco…"),
    ],
)
def test_clip_cuts_at_a_word(text: str, limit: int, expected: str) -> None:
    assert clip(text, limit) == expected


@given(st.text(), st.integers(1, 60))
def test_clip_is_never_longer_than_its_limit(text: str, limit: int) -> None:
    assert len(clip(text, limit)) <= limit
    assert "\n" not in clip(text, limit)


@each(
    ("text", "row"),
    [
        ("- one\n- two", "one; two"),
        ("It makes:\n\n1. ids.\n2. times", "It makes: ids; times"),
        ("3. **Third** thing,\n4. fourth", "Third thing; fourth"),
        ("a line\nand its end", "a line and its end"),
        ("version 1.\n2 items", "version 1. 2 items"),
    ],
)
def test_items_of_a_list_become_a_row(text: str, row: str) -> None:
    assert squeeze(text) == row


def test_blank_lines_in_place_of_a_paste_take_even_time() -> None:
    grows_evenly(lambda size: squeeze("Use uv." + "\n" * size + "Never pip."), 2_000)
