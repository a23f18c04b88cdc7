"""What a transcript holds reaches a terminal as text, never as an order to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.table import Table

from memory_pipeline.cli import console
from memory_pipeline_tests.cli.command import memory

ORDERS = "a\x1b]52;c;cm0gLXJm\x07b\x9b2Jc\x1b[31md\u202ee\rf\x08g [red]h[/] :smile: [/nothing]"
SHOWN = "a]52;c;cm0gLXJmb2Jc[31mdefg [red]h[/] :smile: [/nothing]"


def test_say_and_fail_show_it_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    console.say(ORDERS)
    console.fail(ORDERS)
    shown = capsys.readouterr()
    assert shown.out == shown.err == f"{SHOWN}\n"


def test_so_does_a_table_with_its_title_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(ORDERS, title=ORDERS)
    table.add_row(ORDERS)
    console.out.print(table)
    shown = capsys.readouterr().out
    assert shown.count(SHOWN) == 3 and "\x1b" not in shown and "\x9b" not in shown


@pytest.mark.parametrize("query", [f"select '{ORDERS}' as a", f'select 1 as "{ORDERS}"', "select '[/red]' as \"[/x]\""])
def test_sql_shows_markup_and_escapes_as_text(tmp_path: Path, query: str) -> None:
    done = memory(tmp_path, "sql", query)
    assert done.returncode == 0 and "\x1b" not in done.stdout and "[/" in done.stdout
