"""The typed rows, and the columns of the tables that are made from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from memory_pipeline.lake import rows
from memory_pipeline.lake.tables import TABLES, Table, duckdb_type
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import observation, put, workspace
from memory_pipeline_tests.typed import fits, misfits

STORED = Path(__file__).with_name("stored_columns.txt")


def stored() -> dict[str, tuple[list[str], list[str]]]:
    """Of every table that earlier versions wrote: what its rows are sorted by, and its columns with their types."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    columns: list[str] = []
    for line in STORED.read_text("utf-8").splitlines():
        if line.startswith("  "):
            columns.append(line.strip())
        else:
            name, _, order = line.partition(": ")
            columns = []
            found[name] = (order.split(", "), columns)
    return found


def test_columns_are_only_added() -> None:
    """The names, the types and their order are those of tables that people have."""
    for name, (order, columns) in stored().items():
        now = [f"{column} {duckdb_type(kind)}" for column, kind in TABLES[name].columns.items()]
        assert (list(TABLES[name].order), now[: len(columns)]) == (order, columns), name


def test_columns_are_made_from_the_class_of_a_row() -> None:
    fixes = TABLES["friction_fixes"]
    assert list(fixes.columns)[:2] == ["day", "proposal_id"]  # the day comes first, though its class adds it last
    assert fixes.columns["minutes"] == pl.Float64()  # of a value that may be missing
    assert fixes.notes["day"] == "local calendar day"
    assert fixes.notes["minutes"].startswith("minutes between the problem")
    assert TABLES["files"].columns["part"] == pl.Struct(
        {"name": pl.String(), "began_at": pl.Datetime("us", "UTC"), "base": pl.String()}
        | {"base_end": pl.Int64(), "end": pl.Int64()}
    )
    assert TABLES["notes"].columns_with_words == ["text"]
    assert "tags" in TABLES["reflections"].columns_with_words
    assert "sources" not in TABLES["reflections"].columns_with_words
    assert TABLES["sessions"].description == "a session on a day"


def test_a_column_of_a_type_that_no_file_holds_is_refused() -> None:
    wrong: Any = type("Row", (), {"__annotations__": {"place": complex}})
    with pytest.raises(KeyError):
        _ = Table(wrong, ()).columns


def test_the_state_of_a_proposal_has_the_columns_of_the_log(tmp_path: Path) -> None:
    _, lake = workspace(tmp_path)
    assert Table(rows.ProposalState, ()).columns == dict(ProposalLog(lake).frame.schema)


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


@each(
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
