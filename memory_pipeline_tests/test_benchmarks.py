"""The benchmarks can be imported and are listed with results; the ones that judge others can fail."""

import csv
import importlib
import pkgutil
from datetime import date
from pathlib import Path

import polars as pl

import benchmarks
from benchmarks.common import ROOT
from benchmarks.mutations import load_mutations
from benchmarks.same_tables import compare
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import DAY, observation, put, workspace

MODULES = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__) if module.name != "__main__")
HELPERS = {"common", "copied_sessions", "fitting", "peers", "planted_friction", "proof_parts", "recorded"}


@each("name", MODULES)
def test_a_benchmark_can_be_imported_and_is_in_the_readme(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert module.__doc__
    if name not in HELPERS:
        assert callable(module.main)
        readme = Path(benchmarks.__path__[0], "README.md").read_text("utf-8")
        assert f"| `python -m benchmarks.{name}" in readme


def test_every_recorded_result_has_a_day_and_a_benchmark_that_exists() -> None:
    with Path(benchmarks.__path__[0], "results.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["date", "commit", "machine", "benchmark", "figure", "value"]
    assert sorted({row["benchmark"] for row in rows} - set(MODULES)) == []
    assert [row for row in rows if not (date.fromisoformat(row["date"]) and row["figure"] and row["value"])] == []


@each("mutation", load_mutations())
def test_a_mutation_finds_its_place_and_its_tests(mutation: object) -> None:
    assert (ROOT / mutation.file).read_text("utf-8").count(mutation.old) == 1  # type: ignore[attr-defined]
    assert all((Path(__file__).parent / tests).exists() for tests in mutation.tests)  # type: ignore[attr-defined]


def test_a_changed_value_and_a_lacking_file_are_differences_of_two_workspaces(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    for folder in (before, after):
        settings, lake = workspace(folder)
        put(lake, "observations", observation("Never use npm."), observation("Deploy on Tuesday.", clock="10:00"))
        settings.review_file.write_text("# Pending\n", "utf-8")
    assert [found for found in compare(before, after) if found.differences] == []
    path = after / "lake/observations" / f"{DAY}.parquet"
    pl.read_parquet(path).with_columns(pl.col("text").str.replace("Tuesday", "Friday")).write_parquet(path)
    (after / "REVIEW.md").unlink()
    differences = {found.name: found.differences for found in compare(before, after) if found.differences}
    assert list(differences) == ["observations", "REVIEW.md"]
    assert " text: 'Deploy on Tuesday.' -> 'Deploy on Friday.'" in differences["observations"][0]
