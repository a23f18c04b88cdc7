"""The benchmarks can be imported and are listed with results; the one that compares workspaces sees what differs."""

import csv
import importlib
import pkgutil
from datetime import date
from pathlib import Path

import polars as pl
import pytest

import benchmarks
from benchmarks.same_tables import Compared, compare
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import DAY, at, observation, put, workspace

MODULES = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__")
HELPERS = {"common", "copied_sessions", "fitting", "peers", "planted_friction", "proof_parts", "recorded"}
README = Path(benchmarks.__path__[0], "README.md").read_text("utf-8")


@each("name", MODULES)
def test_a_benchmark_finds_what_it_imports(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert module.__doc__
    assert callable(getattr(module, "main", None)) or name in HELPERS


@each("name", sorted(set(MODULES) - HELPERS))
def test_a_benchmark_is_in_the_readme_with_its_command(name: str) -> None:
    assert f"| `python -m benchmarks.{name}" in README


def test_every_recorded_result_has_a_day_and_a_benchmark_that_exists() -> None:
    with Path(benchmarks.__path__[0], "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["date", "commit", "machine", "benchmark", "figure", "value"]
    assert sorted({row["benchmark"] for row in rows} - set(MODULES)) == []
    assert [row for row in rows if not (date.fromisoformat(row["date"]) and row["figure"] and row["value"])] == []


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two workspaces that differ in the times of their decisions alone."""
    folders = tmp_path / "before", tmp_path / "after"
    for minute, folder in enumerate(folders):
        settings, lake = workspace(folder)
        put(lake, "observations", observation("Never use npm."), observation("Deploy on Tuesday.", clock="10:00"))
        decision = {
            "day": DAY,
            "proposal_id": "p-20250305-001",
            "kind": "decided",
            "decision": "approved",
            "text": "Never use npm.",
        }
        put(lake, "events", decision | {"kind": "decided", "happened_at": at(f"09:0{minute}")})
        written = f"_Last updated: 2025-03-05T09:0{minute}:00Z | 1 proposals pending_"
        settings.review_file.write_text(f"# Pending\n\n- [ ] Deploy on Tuesday.\n{written}\n", "utf-8")
        settings.daily_log(DAY).parent.mkdir()
        settings.daily_log(DAY).write_text(f"* 09:0{minute} approved `p-20250305-001`\n", "utf-8")
    return folders


def differences(found: list[Compared]) -> dict[str, list[str]]:
    return {each.name: each.differences for each in found if each.differences}


def change(workspace: Path, table: str, *columns: pl.Expr) -> None:
    path = workspace / "lake" / table / f"{DAY}.parquet"
    pl.read_parquet(path).with_columns(*columns).write_parquet(path)


def test_times_of_a_run_are_no_difference_and_everything_is_compared(two: tuple[Path, Path]) -> None:
    found = compare(*two)
    assert differences(found) == {}
    assert {each.name: (each.before, each.after) for each in found} == {
        "events": (1, 1),
        "observations": (2, 2),
        "REVIEW.md": (4, 4),
        f"memory/{DAY}.md": (1, 1),
    }
    assert [each.ignored for each in found if each.name == "events"] == [("day", "happened_at")]


def test_a_changed_value_is_named_by_row_and_column(two: tuple[Path, Path]) -> None:
    change(two[1], "observations", pl.col("text").str.replace("Tuesday", "Friday"))
    found = differences(compare(*two))
    assert list(found) == ["observations"]
    (sentence,) = found["observations"]
    assert sentence.startswith(f"day={DAY} observation_id=")
    assert " text: 'Deploy on Tuesday.' -> 'Deploy on Friday.'" in sentence
    assert differences(compare(*two, ignored=["observations.text"])) == {}
    assert differences(compare(*two, ignored=["observations"])) == {}


def test_what_only_one_side_has_is_a_difference(two: tuple[Path, Path]) -> None:
    path = two[1] / "lake/observations" / f"{DAY}.parquet"
    pl.read_parquet(path).head(1).with_columns(pl.lit("x").alias("extra")).write_parquet(path)
    column, row = differences(compare(*two))["observations"]
    assert column == "column extra is there only after"
    assert row.startswith(f"day={DAY} observation_id=") and row.endswith(" is there only before")
    (two[1] / "lake/events" / f"{DAY}.parquet").unlink()
    (row,) = differences(compare(*two))["events"]
    assert row == "proposal_id=p-20250305-001 kind=decided surface=None is there only before"


def test_a_changed_line_and_a_lacking_file_are_differences(two: tuple[Path, Path]) -> None:
    review, log = two[1] / "REVIEW.md", two[1] / f"memory/{DAY}.md"
    review.write_text(review.read_text("utf-8").replace("Tuesday", "Friday"), "utf-8")
    log.unlink()
    found = differences(compare(*two))
    assert list(found) == ["REVIEW.md", f"memory/{DAY}.md"]
    assert found["REVIEW.md"][0].startswith("line 3: ")
    assert found[f"memory/{DAY}.md"] == ["it is there only before"]


def test_nothing_is_not_the_same_as_nothing(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no tables"):
        compare(tmp_path, tmp_path)
