"""`memory sql`: a table where it fits, else a record for each row, as `\\x auto` of psql."""

from __future__ import annotations

from pathlib import Path

from memory_pipeline_tests.cli.command import memory

WIDE = "select 'a' as short, repeat('word ', 60) as long, 3 as number, null as nothing union all select 'b', 'x', 4, 1"


def test_what_fits_is_a_table(tmp_path: Path) -> None:
    shown = memory(tmp_path, "sql", "select '[bold]a' as name, 3 as number").stdout
    assert "┃ name    ┃ number ┃" in shown and "│ [bold]a │ 3      │" in shown


def test_what_does_not_is_a_record_for_each_row_on_lines_that_can_be_searched(tmp_path: Path) -> None:
    shown = memory(tmp_path, "sql", WIDE).stdout.splitlines()
    assert shown == [
        "row 1",
        "short:   a",
        f"long:    {'word ' * 60}",
        "number:  3",
        "nothing: None",
        "",
        "row 2",
        *("short:   b", "long:    x", "number:  4", "nothing: 1"),
    ]


def test_lines_of_a_value_stay_lines_and_nothing_moves_the_cursor(tmp_path: Path) -> None:
    query = "select repeat('x', 300) as long, 'one' || chr(10) || 'two' || chr(27) || '[2J' as lines"
    assert memory(tmp_path, "sql", query).stdout.splitlines()[2:] == ["lines: one", "       two[2J"]


def test_no_rows_are_a_table_without_rows(tmp_path: Path) -> None:
    assert "observation_id" in memory(tmp_path, "sql", "select * from observations").stdout
