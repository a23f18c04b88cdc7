"""The lake: a table's day is replaced as a whole, atomically, and reads back typed however old its file is."""

from __future__ import annotations

import resource
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from memory_pipeline.lake.store import MIN_FILES_AT_ONCE, DamagedTableError, Lake
from memory_pipeline.lake.tables import TABLES, duckdb_type
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.lake.folders import versions_folder

MONDAY, TUESDAY, WEDNESDAY = date(2025, 3, 3), date(2025, 3, 4), date(2025, 3, 5)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


def calls(*rows: tuple[date, str]) -> pl.DataFrame:
    """Rows of the ledger, which has only plain columns."""
    frame = pl.DataFrame(rows, schema={"day": pl.Date(), "call_id": pl.String()}, orient="row")
    return frame.with_columns(model=pl.lit("m"), input_tokens=pl.lit(3, pl.Int64()))


def ids(lake: Lake, days: list[date] | None = None) -> list[str]:
    return lake.read("ledger", days)["call_id"].to_list()


def some_value(kind: Any) -> Any:
    """A value of this column type, with something inside of nested ones."""
    if isinstance(kind, pl.List):
        return [some_value(kind.inner)]
    if isinstance(kind, pl.Struct):
        return {f.name: some_value(f.dtype() if isinstance(f.dtype, type) else f.dtype) for f in kind.fields}
    moment = datetime(2025, 3, 3, 12, tzinfo=UTC)
    return {
        "String": "ä'\"🔴",
        "Int64": 7,
        "Float64": 0.5,
        "Boolean": True,
        "Date": MONDAY,
        "Datetime": moment,
    }[type(kind).__name__]


def some_row(table: str) -> pl.DataFrame:
    columns = TABLES[table].columns
    return pl.DataFrame([{name: some_value(kind) for name, kind in columns.items()}], schema=columns)


def store(lake: Lake, table: str, frame: pl.DataFrame) -> None:
    if TABLES[table].daily:
        lake.replace(table, frame, [MONDAY])
    else:
        lake.replace_all(table, frame)


# --- reading and replacing ---


@each("table", TABLES)
def test_a_row_of_every_table_reads_back_as_it_was(lake: Lake, table: str) -> None:
    store(lake, table, some_row(table))
    assert_frame_equal(lake.read(table), some_row(table))


@each("table", TABLES)
def test_a_table_that_was_never_written_is_empty_and_typed(lake: Lake, table: str) -> None:
    assert lake.read(table).schema == pl.Schema(TABLES[table].columns)
    assert lake.read(table).height == 0
    assert not lake.root.exists()


def test_reading_takes_the_named_days_oldest_first(lake: Lake) -> None:
    lake.replace("ledger", calls((WEDNESDAY, "c"), (MONDAY, "a"), (TUESDAY, "b")), [MONDAY, TUESDAY, WEDNESDAY])
    assert ids(lake) == ["a", "b", "c"]
    assert ids(lake, [WEDNESDAY, MONDAY, MONDAY]) == ["a", "c"]
    assert ids(lake, []) == []
    assert ids(lake, [date(2024, 1, 1)]) == []


def test_many_days_are_read_as_each_alone(lake: Lake) -> None:
    """At once, where that is faster: also when a file has fewer columns or other types, and when one is missing."""
    days = [MONDAY + timedelta(days=n) for n in range(MIN_FILES_AT_ONCE + 3)]
    lake.replace("ledger", calls(*((day, f"{day}") for day in days)), days)

    def alone(wanted: list[date], columns: list[str] | None = None) -> pl.DataFrame:
        return pl.concat([lake.read("ledger", [day], columns) for day in wanted])

    assert ids(lake) == [f"{day}" for day in days]
    old = lake.read("ledger", [TUESDAY]).drop("error", "state")
    for changed in (old, old.with_columns(pl.col("input_tokens").cast(pl.Int32))):
        changed.write_parquet(lake.path("ledger", TUESDAY))
        assert_frame_equal(lake.read("ledger"), alone(days))
        assert_frame_equal(lake.read("ledger", columns=["state", "day"]), alone(days, ["state", "day"]))
    lake.path("ledger", WEDNESDAY).unlink()
    assert_frame_equal(lake.read("ledger", reversed(days)), alone([day for day in days if day != WEDNESDAY]))


def test_of_many_days_the_damaged_one_is_named(lake: Lake) -> None:
    days = [MONDAY + timedelta(days=n) for n in range(MIN_FILES_AT_ONCE + 3)]
    lake.replace("ledger", calls(*((day, f"{day}") for day in days)), days)
    lake.path("ledger", TUESDAY).write_bytes(b"PAR1")
    shutil.rmtree(versions_folder(lake, "ledger"))
    with pytest.raises(DamagedTableError, match=f"{TUESDAY}"):
        lake.read("ledger")


def test_replacing_a_day_leaves_the_others(lake: Lake) -> None:
    lake.replace("ledger", calls((MONDAY, "a"), (TUESDAY, "b")), [MONDAY, TUESDAY])
    lake.replace("ledger", calls((MONDAY, "new")), [MONDAY])
    assert ids(lake) == ["new", "b"]


def test_a_day_can_be_replaced_to_empty(lake: Lake) -> None:
    """A day that had rows and has none any more must not keep the old ones."""
    lake.replace("ledger", calls((MONDAY, "a"), (TUESDAY, "b")), [MONDAY, TUESDAY])
    lake.replace("ledger", calls((TUESDAY, "b")), [MONDAY, TUESDAY])
    assert ids(lake) == ["b"]
    assert lake.days("ledger") == [MONDAY, TUESDAY]  # "looked at, nothing there" is not "never looked at"


def test_rows_of_other_days_are_refused_and_nothing_is_written(lake: Lake) -> None:
    with pytest.raises(ValueError, match=r"ledger: rows of .*2025, 3, 4.* were given, but only .*2025, 3, 3"):
        lake.replace("ledger", calls((MONDAY, "a"), (TUESDAY, "b")), [MONDAY])
    assert lake.days("ledger") == []


def test_an_unknown_column_is_refused(lake: Lake) -> None:
    with pytest.raises(ValueError, match=r"ledger has no column \['price'\]; its columns are \['day', 'call_id'"):
        lake.replace("ledger", calls((MONDAY, "a")).with_columns(price=1), [MONDAY])
    assert lake.days("ledger") == []


def test_a_column_added_since_reads_as_null_beside_new_rows(lake: Lake) -> None:
    lake.replace("ledger", calls((TUESDAY, "new")).with_columns(seconds=1.5), [TUESDAY])
    old = lake.path("ledger", MONDAY)
    calls((MONDAY, "old")).write_parquet(old)  # as written before `seconds` and others existed
    assert lake.read("ledger").select("call_id", "seconds").rows() == [("old", None), ("new", 1.5)]


def test_times_of_another_zone_are_stored_as_the_same_moment(lake: Lake) -> None:
    moment = datetime(2025, 3, 3, 12, tzinfo=UTC)
    row = {"day": MONDAY, "proposal_id": "p", "happened_at": moment}
    frame = pl.DataFrame([row]).with_columns(pl.col("happened_at").dt.convert_time_zone("Asia/Kolkata"))
    lake.replace("events", frame, [MONDAY])
    assert lake.read("events")["happened_at"].to_list() == [moment]


def test_a_table_that_is_not_daily_is_one_file(lake: Lake) -> None:
    lake.replace_all("files", pl.DataFrame({"path": ["/b", "/a"]}))
    lake.replace_all("files", pl.DataFrame({"path": ["/c", "/a"]}))
    assert lake.read("files")["path"].to_list() == ["/a", "/c"]
    assert [p.name for p in (lake.root / "files").iterdir()] == ["all.parquet"]


@each("name", ["it's mine", "a[b]c", "a*", "what?", "ünïcode 🔴", "%20"])
def test_a_workspace_may_have_any_name(tmp_path: Path, name: str) -> None:
    """Also one that is a pattern for other directories."""
    for other in ("abc", "ab"):
        Lake(tmp_path / other).replace("ledger", calls((TUESDAY, "of another workspace")), [TUESDAY])
    lake = Lake(tmp_path / name)
    lake.replace("ledger", calls((MONDAY, "a")), [MONDAY], {MONDAY: "f"})
    assert ids(lake) == ["a"]
    assert lake.fingerprint("ledger", MONDAY) == "f"
    assert ask(lake, "SELECT call_id FROM ledger") == [("a",)]


# --- the same rows are the same bytes; a write is entire or nothing ---


def bytes_of(lake: Lake) -> bytes:
    return lake.path("ledger", MONDAY).read_bytes()


def test_the_same_rows_in_any_order_are_the_same_bytes(lake: Lake) -> None:
    lake.replace("ledger", calls((MONDAY, "a"), (MONDAY, "b")), [MONDAY])
    before = bytes_of(lake)
    lake.replace("ledger", calls((MONDAY, "b"), (MONDAY, "a")), [MONDAY])
    assert bytes_of(lake) == before
    lake.replace("ledger", calls((MONDAY, "b")), [MONDAY])
    assert bytes_of(lake) != before


@contextmanager
def full_disk(room: int) -> Iterator[None]:
    """No file of this process may become larger than `room` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 100])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(lake: Lake, room: int) -> None:
    lake.replace("ledger", calls((MONDAY, "old")), [MONDAY], {MONDAY: "old"})
    with full_disk(room), pytest.raises((OSError, pl.exceptions.ComputeError), match=r"(?i)too large"):
        lake.replace("ledger", calls((MONDAY, "new")), [MONDAY], {MONDAY: "new"})
    assert ids(lake) == ["old"]
    assert lake.fingerprint("ledger", MONDAY) == "old"
    assert [p.name for p in (lake.root / "ledger").iterdir()] == ["2025-03-03.parquet"]


def test_a_reader_with_the_old_file_open_sees_all_of_it(lake: Lake) -> None:
    """A replacement is a rename: it never writes into a file that somebody reads."""
    lake.replace("ledger", calls((MONDAY, "old")), [MONDAY])
    with lake.path("ledger", MONDAY).open("rb") as opened:
        lake.replace("ledger", calls((MONDAY, "new")), [MONDAY])
        assert pl.read_parquet(opened)["call_id"].to_list() == ["old"]


def test_what_a_killed_write_left_behind_is_neither_a_day_nor_a_row(lake: Lake) -> None:
    lake.replace("ledger", calls((MONDAY, "a")), [MONDAY])
    (lake.root / "ledger" / ".2025-03-04.parquet.1.tmp").write_bytes(b"PAR1 half")
    assert lake.days("ledger") == [MONDAY]
    assert ids(lake) == ["a"]
    assert ask(lake, "SELECT call_id FROM ledger") == [("a",)]


# --- fingerprints and digests ---


def test_a_days_fingerprint_is_what_it_was_written_with(lake: Lake) -> None:
    assert lake.fingerprint("ledger", MONDAY) is None
    lake.replace("ledger", calls(), [MONDAY, TUESDAY], {MONDAY: "inputs of monday"})
    assert lake.fingerprint("ledger", MONDAY) == "inputs of monday"
    assert lake.fingerprint("ledger", TUESDAY) == ""  # written, by somebody without inputs
    lake.replace("ledger", calls(), [MONDAY], {MONDAY: "other inputs"})
    assert lake.fingerprint("ledger", MONDAY) == "other inputs"


def test_a_digest_follows_the_rows_of_its_days(lake: Lake) -> None:
    lake.replace("ledger", calls((MONDAY, "a"), (TUESDAY, "b")), [MONDAY, TUESDAY])
    monday, both = lake.digest("ledger", [MONDAY]), lake.digest("ledger", [TUESDAY, MONDAY])
    lake.replace("ledger", calls((TUESDAY, "other")), [TUESDAY])
    assert lake.digest("ledger", [MONDAY]) == monday
    assert lake.digest("ledger", [MONDAY, TUESDAY]) != both
    lake.replace("ledger", calls((TUESDAY, "b")), [TUESDAY])
    assert lake.digest("ledger", [MONDAY, TUESDAY, MONDAY]) == both


def test_a_digest_tells_which_day_holds_the_rows(lake: Lake) -> None:
    """The same bytes on another day are another input."""
    lake.replace("ledger", calls(), [MONDAY])
    monday = lake.digest("ledger", [MONDAY, TUESDAY])
    lake.path("ledger", MONDAY).rename(lake.path("ledger", TUESDAY))
    assert lake.digest("ledger", [MONDAY, TUESDAY]) != monday


@pytest.mark.parametrize("table", [name for name, table in TABLES.items() if table.passes])
def test_a_day_of_which_rows_were_let_go_of_counts_as_it_was(lake: Lake, table: str) -> None:
    """Or all that was made of it would be made anew, of less."""
    lake.replace(table, some_row(table), [MONDAY], {MONDAY: "made of this"})
    digest = lake.digest(table, [MONDAY])
    lake.retire(table, some_row(table).clear(), MONDAY)
    assert lake.read(table).is_empty() and lake.is_retired(table, MONDAY)
    assert (lake.digest(table, [MONDAY]), lake.fingerprint(table, MONDAY)) == (digest, "made of this")
    lake.retire(table, some_row(table).clear(), MONDAY)  # once more
    lake.replace(table, some_row(table).clear(), [MONDAY], {MONDAY: "made anew"})
    assert lake.is_retired(table, MONDAY) and lake.digest(table, [MONDAY]) == digest
    lake.path(table, MONDAY).unlink()
    lake.replace(table, some_row(table), [MONDAY])
    assert not lake.is_retired(table, MONDAY)


# --- views ---


def ask(lake: Lake, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        lake.attach_views(connection)
        return connection.sql(query).fetchall()


def columns_of(lake: Lake, table: str) -> list[tuple[Any, ...]]:
    return [(name, kind) for name, kind, *_ in ask(lake, f'DESCRIBE "{table}"')]


def expected_columns(table: str) -> list[tuple[str, str]]:
    types = ((name, duckdb_type(kind)) for name, kind in TABLES[table].columns.items())
    return [(name, kind.replace("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE")) for name, kind in types]


def unquoted(columns: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [(name, kind.replace('"', "")) for name, kind in columns]


@each("table", TABLES)
def test_every_table_is_a_view_also_before_it_has_files(lake: Lake, table: str) -> None:
    assert ask(lake, f'SELECT * FROM "{table}"') == []
    assert unquoted(columns_of(lake, table)) == unquoted(expected_columns(table))


@each("table", TABLES)
def test_every_table_is_a_view_of_its_rows_nested_ones_too(lake: Lake, table: str) -> None:
    store(lake, table, some_row(table))
    assert unquoted(columns_of(lake, table)) == unquoted(expected_columns(table))
    (row,) = ask(lake, f'SELECT * FROM "{table}"')
    assert row == some_row(table).row(0)


def test_views_see_files_of_before_a_column_was_added(lake: Lake) -> None:
    lake.replace("ledger", calls((TUESDAY, "new")).with_columns(seconds=1.5), [TUESDAY])
    calls((MONDAY, "old")).write_parquet(lake.path("ledger", MONDAY))
    assert ask(lake, "SELECT call_id, seconds FROM ledger ORDER BY day") == [("old", None), ("new", 1.5)]


def test_views_show_times_in_utc_whatever_the_machines_zone(lake: Lake) -> None:
    lake.replace("events", some_row("events"), [MONDAY])
    assert ask(lake, "SELECT happened_at::VARCHAR FROM events") == [("2025-03-03 12:00:00+00",)]


def test_views_can_reach_into_evidence(lake: Lake) -> None:
    store(lake, "observations", some_row("observations"))
    query = 'SELECT e.message_id, e.start, e."end" FROM (SELECT unnest(evidence) AS e FROM observations)'
    assert ask(lake, query) == [("ä'\"🔴", 7, 7)]


def test_a_reader_beside_a_writer_sees_the_old_rows_or_the_new(lake: Lake) -> None:
    small, large = (calls(*((MONDAY, f"{n}") for n in range(count))) for count in (3, 3_000))
    lake.replace("ledger", small, [MONDAY])
    seen: set[int] = set()
    is_over = threading.Event()

    def write() -> None:
        while not is_over.is_set():
            for frame in (large, small):
                lake.replace("ledger", frame, [MONDAY])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(seen) < 2:  # both were met
            seen.add(lake.read("ledger", [MONDAY]).height)
        for columns in (None, ["call_id"], ["model", "day"]):
            for _ in range(100):
                seen.add(lake.read("ledger", [MONDAY], columns).height)
    finally:
        is_over.set()
        writer.join()
    assert seen == {3, 3_000}
