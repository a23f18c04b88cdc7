"""`memory sql`: DuckDB over all tables."""

from typing import Annotated, Any

import duckdb
import typer
from rich.table import Table

from memory_pipeline.cli.console import MISUSED, err, fail, out, print_json
from memory_pipeline.cli.workspace import active_settings
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES

MOST_ROWS = 200


def sql(
    query: Annotated[
        str, typer.Argument(help='For example: "select priority, count(*) from observations group by 1".')
    ],
    as_json: Annotated[bool, typer.Option("--json", help="All rows as a JSON list of objects.")] = False,
) -> None:
    """Ask the tables anything; every table is a view with the columns that README.md lists."""
    connection = duckdb.connect()
    lake = Lake(active_settings().lake_dir)
    try:
        lake.attach_views(connection)
        result = connection.sql(query)
        names = result.columns if result is not None else []
        rows: list[tuple[Any, ...]] = result.fetchall() if result is not None else []
    except duckdb.Error as error:
        raise fail(f"{f'{error}'.rstrip()}\n(Tables: {', '.join(TABLES)}.)", MISUSED) from None  # a caret points up
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    table = Table(*names)
    for row in rows[:MOST_ROWS]:
        table.add_row(*(f"{value}".replace("[", "\\[") for value in row))
    out.print(table)
    if len(rows) > MOST_ROWS:
        err.print(f"{len(rows) - MOST_ROWS} more rows; add a LIMIT, or use --json for all of them.", style="dim")
