"""`memory sql`: DuckDB over all tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import duckdb
import typer
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from memory_pipeline.cli.console import MISUSED, err, fail, out, print_json, printable, say
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.lake.queries import ask
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES

MAX_ROWS = 200


def sql(
    query: Annotated[
        str,
        typer.Argument(metavar="QUERY", help='Such as "select priority, count(*) from observations group by 1".'),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="All rows as a JSON list of objects.")] = False,
) -> None:
    """Query the tables with SQL.

    Every table is a view. Rows that are too wide for the terminal are printed as records, one column per line.
    """
    try:
        names, rows = ask(Lake.from_settings(active_settings()), query)
    except duckdb.Error as error:
        # keeps the position of the caret
        raise fail(f"{f'{error}'.rstrip()}\n(Tables: {', '.join(TABLES)}.)", MISUSED) from None
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    _print(names, [[printable(f"{value}") for value in row] for row in rows[:MAX_ROWS]])
    if len(rows) > MAX_ROWS:
        err.print(f"{len(rows) - MAX_ROWS} more rows; add a LIMIT, or use --json for all of them.", style="dim")


def _print(names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table if it fits, else records, like `\\x auto` of psql."""
    table = Table()
    for name in names:
        table.add_column(Text(name))
    for row in rows:
        table.add_row(*map(Text, row))
    unbounded = out.options.update(max_width=10**6)
    if Measurement.get(out, unbounded, table).maximum <= out.width or not rows:
        out.print(table)
        return
    for number, row in enumerate(rows, 1):
        say(f"{'' if number == 1 else chr(10)}row {number}", "dim")
        _print_record(names, row)


def _print_record(names: Sequence[str], row: Sequence[str]) -> None:
    indent = max(map(len, names)) + 2
    for name, value in zip(names, row, strict=True):
        say(f"{f'{name}:':<{indent}}" + value.replace("\n", "\n" + " " * indent))
