"""JSON as text: what was put in comes out again, whatever else stands there."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_pipeline.agents.json_text import Node, NotJsonError, dumped, insert_first, parse, remove_item
from memory_pipeline_tests.cases import each

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
COMMENTED = """\ufeff// mine, {not} "json"
{
\t"a": [1, 2, /* , ] */ 3],  // "b": 4
\t"c": {"d": "\\"}",},
}
"""


@given(VALUES, st.sampled_from([None, 1, "\t", 4]))
def test_what_python_writes_is_read(value: object, indent: object) -> None:
    assert parse(json.dumps(value, indent=indent)).data == value  # type: ignore[arg-type]


def test_comments_and_final_commas_are_read() -> None:
    assert parse(COMMENTED).data == {"a": [1, 2, 3], "c": {"d": '"}'}}


@given(st.dictionaries(st.text(max_size=3), VALUES, min_size=1, max_size=3), st.sampled_from([None, 1, "\t"]))
def test_what_is_put_in_front_comes_out_by_the_byte(value: dict[str, object], indent: object) -> None:
    text = json.dumps(value, indent=indent)  # type: ignore[arg-type]
    new = insert_first(text, parse(text), '"hooks, new": ' + dumped({"x": [1]}, text))
    assert parse(new).data == {"hooks, new": {"x": [1]}} | value
    assert remove_item(new, parse(new), 0) == text


@given(st.lists(VALUES, min_size=1, max_size=4), st.data())
def test_any_item_can_be_taken_out(value: list[object], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(value) - 1))
    text = json.dumps(value, indent=1)
    assert parse(remove_item(text, parse(text), index)).data == value[:index] + value[index + 1 :]


def test_a_comment_is_not_taken_for_a_comma() -> None:
    text = "[1, // one, or\n 2 /* , */]"
    left = remove_item(text, parse(text), 1)
    assert parse(left).data == [1] and "// one, or" in left and "/* , */" in left


def test_it_is_indented_as_the_file_is() -> None:
    text = '{\r\n\t"a": 1\r\n}'
    assert insert_first(text, parse(text), '"b": ' + dumped([1], text)) == (
        '{\r\n\t"b": [\r\n\t\t1\r\n\t],\r\n\t"a": 1\r\n}'
    )


@each(
    ("text", "sentence"),
    [
        ("", "line 1, column 1: a value was expected"),
        ('{"a": 1', "line 1, column 8: a comma or } was expected"),
        ('{\n "a" 1}', "line 2, column 6: a colon was expected"),
        ("{\n a: 1}", "line 2, column 2: a value was expected"),
        ("{1: 1}", "line 1, column 2: a key in quotation marks was expected"),
        ("[1 2]", "line 1, column 4: a comma or ] was expected"),
        ("{} {}", "line 1, column 4: the end was expected"),
    ],
)
def test_what_is_no_json_is_named_with_its_place(text: str, sentence: str) -> None:
    with pytest.raises(NotJsonError, match=f"^{sentence}$"):
        parse(text)


def test_a_node_without_keys_has_none() -> None:
    assert Node(0)["a"] is None
