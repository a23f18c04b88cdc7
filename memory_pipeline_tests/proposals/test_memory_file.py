"""MEMORY.md: lines are inserted into the right section, and not one byte of what a person wrote is lost."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipeline.proposals.memory_file import MemoryLine, Promotion, add_lines, lines_of, normalised, strike_words
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.examples import times

DAY = date(2026, 3, 5)
SECTIONS = ["User", "Hard Rules", "System Architecture", "Patterns"]
LINE = "- (2026-03-05) Use uv <!-- p-20260305-001 -->"


def promotion(text: str = "Use uv", section: str = "Hard Rules", number: int = 1) -> Promotion:
    return Promotion(f"p-20260305-{number:03d}", section, text, DAY)


def add(current: str, *promotions: Promotion) -> str:
    return add_lines(current.encode(), promotions or [promotion()], SECTIONS).data.decode()


@each("current", [None, b""])
def test_without_a_file_it_is_made_with_all_sections(current: bytes | None) -> None:
    data, present = add_lines(current, [promotion()], SECTIONS)
    assert data.decode() == (f"# Memory\n\n## User\n\n## Hard Rules\n{LINE}\n\n## System Architecture\n\n## Patterns\n")
    assert present == []


@each(
    ("before", "after"),
    [
        # at the end of the section's own content, whatever follows
        ("## Hard Rules\n- a\n- b\n\n## Next\n", f"## Hard Rules\n- a\n- b\n{LINE}\n\n## Next\n"),
        ("## Hard Rules\n- a\n\n### Naming\n- b\n", f"## Hard Rules\n- a\n{LINE}\n\n### Naming\n- b\n"),
        ("## Hard Rules\n- a\n\n---\n\n## Next\n", f"## Hard Rules\n- a\n{LINE}\n\n---\n\n## Next\n"),
        ("## Hard Rules\n\n## Next\n", f"## Hard Rules\n{LINE}\n\n## Next\n"),
        ("## Hard Rules\nSome prose.  \n\n\n", f"## Hard Rules\nSome prose.  \n{LINE}\n\n\n"),
        # the heading at any level, in any case, closed or underlined
        ("# hard  RULES ##\n", f"# hard  RULES ##\n{LINE}\n"),
        ("Hard Rules\n----------\n- a\n\nNext\n====\n", f"Hard Rules\n----------\n- a\n{LINE}\n\nNext\n====\n"),
        ("\ufeff# Hard Rules\n", f"\ufeff# Hard Rules\n{LINE}\n"),
        # the first of several
        ("## Hard Rules\n## Hard Rules\n", f"## Hard Rules\n{LINE}\n## Hard Rules\n"),
        # no heading: in code, in a comment, in front matter, without its space
        ("```\n## Hard Rules\n```\n", f"```\n## Hard Rules\n```\n\n## Hard Rules\n{LINE}\n"),
        ("~~~~ sh\n~~~\n# Hard Rules\n~~~~\n", f"~~~~ sh\n~~~\n# Hard Rules\n~~~~\n\n## Hard Rules\n{LINE}\n"),
        ("<!--\n## Hard Rules\n-->\n", f"<!--\n## Hard Rules\n-->\n\n## Hard Rules\n{LINE}\n"),
        ("---\n# Hard Rules\n---\n", f"---\n# Hard Rules\n---\n\n## Hard Rules\n{LINE}\n"),
        ("##Hard Rules\n", f"##Hard Rules\n\n## Hard Rules\n{LINE}\n"),
        # code that is never closed hides nothing, else each run would add the section again
        ("```\n## Hard Rules\n", f"```\n## Hard Rules\n{LINE}\n"),
        # a heading inside code does not end the section
        ("## Hard Rules\n```\n# x\n```\n", f"## Hard Rules\n```\n# x\n```\n{LINE}\n"),
        # a missing section is made at the end
        ("# Memory\n- a\n", f"# Memory\n- a\n\n## Hard Rules\n{LINE}\n"),
        ("# Memory\n- a\n\n", f"# Memory\n- a\n\n## Hard Rules\n{LINE}\n"),
        # line endings and the missing last one are followed
        ("## Hard Rules\r\n- a", f"## Hard Rules\r\n- a\r\n{LINE}"),
        ("# Memory", f"# Memory\n\n## Hard Rules\n{LINE}"),
        # so is the person's bullet
        ("## Hard Rules\n* a\n    - b\n", f"## Hard Rules\n* a\n    - b\n{LINE.replace('- ', '* ', 1)}\n"),
        ("## Hard Rules\n1. a\n", f"## Hard Rules\n1. a\n{LINE}\n"),
    ],
)
def test_where_a_line_goes(before: str, after: str) -> None:
    assert add(before) == after
    assert add(after) == after


def test_lines_keep_their_order_and_find_a_section_just_made() -> None:
    first, second, third = promotion("a", "C#", 1), promotion("b", "C#", 2), promotion("c", "c#", 3)
    assert add("# Memory\n", first, second, third).splitlines() == [
        "# Memory",
        "",
        "## C#",
        "- (2026-03-05) a <!-- p-20260305-001 -->",
        "- (2026-03-05) b <!-- p-20260305-002 -->",
        "- (2026-03-05) c <!-- p-20260305-003 -->",
    ]


@each(
    "line",
    [
        "- said there <!-- p-20260305-007 --> and <!-- p-20260305-001 -->",  # a line has one id
        "* (2025-01-01)  use   UV. <!-- p-20250101-009 -->",
        "- Use\n  uv",
        "Use uv.",
        "### Tools\n- use uv",
    ],
)
def test_what_is_there_already_is_not_added_but_reported(line: str) -> None:
    current = f"## Hard Rules\n{line}\n\n## Patterns\n- b\n".encode()
    assert add_lines(current, [promotion()], SECTIONS) == (current, ["p-20260305-001"])


@each(
    "line",
    [
        "- Use uv <!-- p-20260305-001 -->",
        "- something else <!-- p-20260305-001 -->",  # edited since
        "- moved, see <!-- by me: p-20260305-001, p-20260305-007 -->",
    ],
)
def test_a_line_with_its_id_is_ours_and_not_added_again(line: str) -> None:
    current = f"## Hard Rules\n{line}\n".encode()
    assert add_lines(current, [promotion()], SECTIONS) == (current, [])


@each(
    "line",
    [
        "- Use uv always",
        "```\nUse uv\n```",
        "- x <!-- p-20260305-0011 -->",
        "- unlike p-20260305-001",  # a mention is not the line's id
        "## Patterns\n- Use uv",  # another section
    ],
)
def test_what_only_looks_alike_does_not_stop_a_line(line: str) -> None:
    assert add_lines(f"## Hard Rules\n{line}\n".encode(), [promotion()], SECTIONS).present == []


def test_two_equal_lines_of_one_batch_are_added_once() -> None:
    result = add_lines(b"", [promotion("Use uv", number=1), promotion("use uv.", number=2)], SECTIONS)
    assert result.present == ["p-20260305-002"]


def test_a_text_cannot_become_another_line_or_comment() -> None:
    text = add("## Hard Rules\n", promotion("a\n## Patterns\n- b <!-- p-20260305-002 -->"))
    assert text == (
        "## Hard Rules\n- (2026-03-05) a ## Patterns - b &lt;!-- p-20260305-002 --&gt; <!-- p-20260305-001 -->\n"
    )


@each("wrong", [promotion("\u200b "), Promotion("x -->", "Patterns", "a", DAY)])
def test_a_line_without_text_or_id_is_refused(wrong: Promotion) -> None:
    with pytest.raises(ValueError, match="cannot be promoted"):
        add_lines(b"# Memory\n", [wrong], SECTIONS)


def test_the_lines_of_a_memory_file() -> None:
    text = """\
\ufeff- before any heading
# Memory
A paragraph
over two lines.

## Hard Rules ##
- (2026-03-05) Use uv <!-- p-20260305-001 -->
* wrapped
  text <!-- p-20260305-002 -->
***
<!-- a comment alone -->
```
code
```
1. numbered
"""
    assert lines_of(text.encode()) == [
        MemoryLine(1, "", "before any heading", None),
        MemoryLine(3, "Memory", "A paragraph over two lines.", None),
        MemoryLine(7, "Hard Rules", "Use uv", "p-20260305-001"),
        MemoryLine(8, "Hard Rules", "wrapped text", "p-20260305-002"),
        MemoryLine(15, "Hard Rules", "numbered", None),
    ]
    assert lines_of(None) == []


PIECES = st.sampled_from(
    [
        b"\n",
        b"\r\n",
        b"\r",
        b"\n\n",
        b"  \n",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\xe2\x82",
        b"\xe2\x80\xa8",
        b"---\n",
        b"===\n",
        b"# Memory\n",
        b"## Hard Rules\n",
        b"## hard rules ##\r\n",
        b"### Sub\n",
        b"Patterns\n",
        b"- Use uv\n",
        b"* b",
        b"```\n",
        b"~~~\n",
        b"<!--",
        b"-->",
        b"<!-- p-20260305-001 -->",
        b"p-20260305-002",
        b"    code\n",
        b"> q\n",
    ]
)
FILES = st.lists(PIECES | st.binary(max_size=6), max_size=14).map(b"".join)
PROMOTIONS = st.lists(
    st.builds(
        promotion,
        st.sampled_from(["Use uv", "use uv.", "a --> b", "```", "# x"])
        | st.text(min_size=1, max_size=6).map("x".__add__),
        st.sampled_from(["Hard Rules", "Patterns", "C#", "Memory"]),
        st.integers(1, 5),
    ),
    max_size=5,
)


def is_kept_in(old: bytes, new: bytes) -> bool:
    """Whether ``old`` is what remains when whole inserted lines are taken out of ``new``."""
    lines = iter(new.split(b"\n"))
    return all(line in lines for line in old.split(b"\n")[:-1]) and any(
        line.startswith(old.split(b"\n")[-1]) for line in lines
    )


@settings(max_examples=times(3))
@given(FILES, PROMOTIONS)
def test_no_byte_is_lost_and_adding_again_adds_nothing(current: bytes, promotions: list[Promotion]) -> None:
    data, present = add_lines(current, promotions, SECTIONS)
    assert is_kept_in(current, data)
    assert set(present) <= {item.proposal_id for item in promotions}
    again = add_lines(data, promotions, SECTIONS)
    assert again.data == data


@settings(max_examples=times(1.5))
@given(FILES, PROMOTIONS)
def test_taking_the_inserted_lines_out_gives_back_the_file(current: bytes, promotions: list[Promotion]) -> None:
    """Byte for byte, for each line by itself: what was inserted is one contiguous run that ends or begins a line."""
    for one in promotions:
        data = add_lines(current, [one], SECTIONS).data
        grown = len(data) - len(current)
        assert any(data[:at] + data[at + grown :] == current for at in range(len(current) + 1)), (
            "not a single insertion"
        )
        current = data


@settings(max_examples=times(1))
@given(FILES)
def test_any_file_can_be_read_as_lines(current: bytes) -> None:
    lines = lines_of(current)
    assert [line.line_number for line in lines] == sorted({line.line_number for line in lines})
    for line in lines:
        assert "\n" not in line.text and line.text.encode("utf-8")
        assert normalised(line.text) == normalised(f"- {line.text}."[2:])


def test_words_are_struck_once_whatever_says_the_same() -> None:
    text = "- (2025-01-02) Fire at\n  noon. <!-- mine -->\n- fire at noon\n\n```\nFire at noon.\n```\n"
    text += "Rest. Fire at noon. Go on.\n"
    over = {"Fire at noon.": ("f-20250305-001", date(2025, 3, 5))}
    struck = strike_words(text.encode(), over)
    note = " (superseded by f-20250305-001, 2025-03-05)"
    assert struck.decode() == text.replace(
        "(2025-01-02) Fire at\n  noon. <!--", f"~~(2025-01-02) Fire at~~\n  ~~noon.~~{note} <!--"
    )
    assert strike_words(struck, over) == struck
    within = strike_words(b"Rest. Fire at noon. Go on.\r\n", over)
    assert within.decode() == "Rest. ~~Fire at noon. (f-20250305-001, 2025-03-05)~~ Go on.\r\n"
    assert strike_words(within, over) == within
    assert strike_words(b"Fire at dawn.\n", over) == b"Fire at dawn.\n"
