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
from memory_pipeline_tests.rows import workspace

OF_TABLE: dict[str, Any] = {
    "files": rows.FileRow,
    "sessions": rows.SessionRow,
    "messages": rows.MessageRow,
    "windows": rows.WindowRow,
    "segments": rows.SegmentRow,
    "observations": rows.ObservationRow,
    "notes": rows.NoteRow,
    "embeddings": rows.EmbeddingRow,
    "reflections": rows.ReflectionRow,
    "pool_reflections": rows.PoolReflectionRow,
    "day_distillations": rows.DistillationRow,
    "week_distillations": rows.DistillationRow,
    "month_distillations": rows.DistillationRow,
    "proposals": rows.ProposalRow,
    "supports": rows.SupportRow,
    "decisions": rows.DecisionRow,
    "showings": rows.ShowingRow,
    "promotions": rows.PromotionRow,
    "auto_promotions": rows.AutoPromotionRow,
    "friction_clusters": rows.FrictionRow,
}
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
