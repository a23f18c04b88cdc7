"""SQL over the tables reads them and does nothing else, whatever the query says."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import duckdb
import pytest

from memory_pipeline.lake.queries import OnlyReadingError, ask
from memory_pipeline.lake.store import Lake
from memory_pipeline_tests.rows import observation, put, workspace


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    _, lake = workspace(tmp_path / "it's [a] lake")
    put(lake, "observations", observation("Never use npm."))
    return lake


@pytest.mark.parametrize(
    "query",
    [
        "select text from observations",
        "from observations select text",
        "with o as (select * from observations) select text from o",
        "  -- with a comment\n select text from observations;",
    ],
)
def test_the_tables_can_be_read(lake: Lake, query: str) -> None:
    assert ask(lake, query).rows == [("Never use npm.",)]


@pytest.mark.parametrize(
    "query", ["explain select 1", "/* why */ EXPLAIN -- so\nANALYZE select 1", "explain (format json) select 1"]
)
def test_and_explained(lake: Lake, query: str) -> None:
    assert ask(lake, query).names == ["explain_key", "explain_value"]


@pytest.mark.parametrize(
    "query",
    [
        "copy (select 1) to 'out.csv'",
        "explain analyze copy (select 1) to 'out.csv' (use_tmp_file false)",
        "explain (analyze) copy (select 1) to 'out.csv' (use_tmp_file false)",
        "explain/**/analyze/**/copy (select 1) to 'out.csv' (use_tmp_file false)",
        "attach 'other.duckdb'",
        "install httpfs",
        "load httpfs",
        "create table t as select 1",
        "export database 'out'",
        "set enable_external_access = true",
        "call pragma_version()",
        "select 1; copy (select 1) to 'out.csv'",
    ],
)
def test_what_writes_or_fetches_is_refused(
    lake: Lake, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((OnlyReadingError, duckdb.Error)):
        ask(lake, query)
    assert sorted(tmp_path.rglob("*")) == before


def test_nor_through_a_setting_of_explain_over_a_file_of_the_lake(lake: Lake) -> None:
    (file,) = lake.files("observations")
    before = Path(file).read_bytes()
    with pytest.raises(OnlyReadingError):
        ask(lake, f"explain analyze copy (select 1) to '{file.replace(chr(39), chr(39) * 2)}' (use_tmp_file false)")
    assert Path(file).read_bytes() == before


@pytest.mark.parametrize(
    "query",
    [
        "select * from read_text('{secret}')",
        "select * from read_csv('{secret}')",
        "select * from '{secret}'",
        "select * from glob('{folder}/*')",
        "select * from read_text('{folder}/lake/salt')",
    ],
)
def test_no_other_file_is_read(lake: Lake, query: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\nhunter2,2\n")
    (lake.root / "salt").write_text("salt of the workspace")
    with pytest.raises(duckdb.Error):
        ask(lake, query.format(secret=secret, folder=f"{lake.root.parent}".replace("'", "''")))


def test_a_name_in_a_query_is_no_variable_of_the_program(lake: Lake) -> None:
    with pytest.raises(duckdb.CatalogException):
        ask(lake, "select * from lake")


def test_a_query_is_asked_again_when_a_writer_replaced_what_it_read(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = lake.files("observations")
    whole = Path(file).read_bytes()
    attach = Lake.attach_views

    def replaced_meanwhile(self: Lake, connection: duckdb.DuckDBPyConnection, *tables: Collection[str]) -> list[str]:
        monkeypatch.setattr(Lake, "attach_views", attach)
        Path(file).write_bytes(whole[:100])
        try:
            return attach(self, connection, *tables)
        finally:
            Path(file).write_bytes(whole)

    monkeypatch.setattr(Lake, "attach_views", replaced_meanwhile)
    assert ask(lake, "select count(*) from observations").rows == [(1,)]


def test_a_file_that_stays_damaged_is_an_error(lake: Lake) -> None:
    (file,) = lake.files("observations")
    Path(file).write_bytes(Path(file).read_bytes()[:100])
    with pytest.raises(duckdb.Error, match="observations"):
        ask(lake, "select count(*) from observations")
