"""The typed rows: they have the columns of their tables, in the types that the columns are read as."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

import polars as pl
import pytest

from memory_pipeline.lake import rows
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline_tests.rows import observation, put, workspace
from memory_pipeline_tests.typed import OF_TABLE, fits, misfits

PLAIN: dict[type[pl.DataType], type] = {
    pl.String: str,
    pl.Int64: int,
    pl.Float64: float,
    pl.Boolean: bool,
    pl.Date: date,
    pl.Datetime: datetime,
}


def dtype_as(dtype: Any) -> Any:
    """The shape that a column of the type is read as: a type, a list of one, or fields by name."""
    if isinstance(dtype, pl.List):
        return [dtype_as(dtype.inner)]
    if isinstance(dtype, pl.Struct):
        return {f.name: dtype_as(f.dtype) for f in dtype.fields}
    return PLAIN[dtype.base_type()]


def hint_as(hint: Any) -> Any:
    """The same of an annotation, whether or not it may be None."""
    if get_origin(hint) is UnionType:
        (hint,) = (arg for arg in get_args(hint) if arg is not NoneType)
    if get_origin(hint) is list:
        return [hint_as(*get_args(hint))]
    return shape(hint) if is_typeddict(hint) else hint


def shape(kind: Any) -> dict[str, Any]:
    return {name: hint_as(hint) for name, hint in get_type_hints(kind).items()}


def columns(schema: Any) -> dict[str, Any]:
    return {name: dtype_as(dtype) for name, dtype in schema.items()}


@pytest.mark.parametrize("table", OF_TABLE)
def test_a_row_has_the_columns_of_its_table(table: str) -> None:
    assert shape(OF_TABLE[table]) == columns(TABLES[table].columns)


def test_every_table_but_the_ledger_has_a_typed_row() -> None:
    assert set(TABLES) - set(OF_TABLE) == {"ledger"}  # its rows stay within llm/ledger.py


def test_the_state_of_a_proposal_has_the_columns_of_the_log(tmp_path: Path) -> None:
    _, lake = workspace(tmp_path)
    assert shape(rows.ProposalState) == columns(ProposalLog(lake).frame.schema)


def test_a_wrong_type_or_a_missing_column_is_seen() -> None:
    right = columns(TABLES["notes"].columns)
    assert shape(rows.NoteRow) != right | {"line": str}
    assert shape(rows.NoteRow) != right | {"more": str}


def test_rows_of_a_frame() -> None:
    frame = pl.DataFrame({"start": [1, 2], "end": [3, 4]})
    assert rows.typed_rows(frame, rows.SpanRow) == [{"start": 1, "end": 3}, {"start": 2, "end": 4}]


def test_a_value_that_is_not_of_its_type_is_found(tmp_path: Path) -> None:
    _, lake = workspace(tmp_path)
    row = observation("Never use npm.") | {"observer": "x", "dedupe_key": "w", "segment_id": "s", "tokens": 4}
    put(lake, "observations", row)
    assert misfits(lake) == set()
    put(lake, "observations", row | {"observation_id": "o-other", "kind": None})
    assert misfits(lake) == {"observations.kind: None"}


@pytest.mark.parametrize(
    ("value", "hint", "is_right"),
    [
        (1, int, True),
        (True, int, False),
        (None, int | None, True),
        (None, int, False),
        (["a"], list[str], True),
        (["a", None], list[str], False),
        (None, list[str] | None, True),
        ([{"start": 1, "end": 2}], list[rows.SpanRow], True),
        ([{"start": 1}], list[rows.SpanRow], False),
        ([{"start": 1, "end": None}], list[rows.SpanRow], False),
    ],
)
def test_whether_a_value_is_of_a_type(value: object, hint: object, is_right: bool) -> None:
    assert fits(value, hint) is is_right
