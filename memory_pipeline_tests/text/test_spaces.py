"""Texts on one line: white space is run together but within code, and a second time nothing changes."""

from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.text.sentences import run_together
from memory_pipeline_tests.cases import each


@each(
    ("text", "line"),
    [
        ("  a \n\t b  ", "a b"),
        ("", ""),
        (" \n ", ""),
        ("run `a\tb`\n now", "run `a\tb` now"),
        ("`if x:\n\ty`", "`if x: \ty`"),
        ("`a  b`  and  `c`", "`a  b` and `c`"),
        ("  `a`", "`a`"),
        ("one ` alone  here", "one ` alone here"),
    ],
)
def test_one_line(text: str, line: str) -> None:
    assert run_together(text) == line


@given(st.lists(st.sampled_from(["`", " ", "\t", "\n", "\u2028", "a", "\r\n"]) | st.text(max_size=3)).map("".join))
def test_it_leaves_its_own_result_as_it_is(text: str) -> None:
    line = run_together(text)
    assert run_together(line) == line and "\n" not in line
    assert "".join(line.split()) == "".join(text.split())
