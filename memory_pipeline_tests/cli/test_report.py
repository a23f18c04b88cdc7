"""`memory admin report`, on the bundled examples: what Dagster stored of their checks, and one that fails."""

import json
import re
from pathlib import Path

import pytest

from memory_pipeline.defs.graph import build_definitions
from memory_pipeline.defs.placement import Placement
from memory_pipeline.defs.runs import instance_of
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.cli.command import memory, memory_json
from memory_pipeline_tests.cli.test_examples import demo, workspace  # noqa: F401 - a fixture
from memory_pipeline_tests.prepared import copied


@pytest.fixture
def home(demo: tuple[Path, str, str], tmp_path: Path) -> Path:  # noqa: F811
    return copied(demo[0], tmp_path / "home")


def test_it_tells_what_the_checks_of_the_run_found(home: Path) -> None:
    made = memory_json(home, "admin", "report", "--json")
    assert made["failed"] == 0
    assert made["summary"] == f"All {made['results']} results of {len(made['checks'])} checks passed."
    by_name = {check["check"]: check for check in made["checks"]}
    compression = by_name["observations/compression_ratio"]
    assert sorted(compression["by_day"]) == ["2026-03-02", "2026-03-03", "2026-03-04", "2026-03-05"]
    assert all(check["about"] and check["what_to_do"] for check in made["checks"])
    figures = {figure["figure"]: figure for figure in made["figures"]}
    assert all(0 < share < 1 for share in figures["compression"]["by_day"].values())
    page = workspace(home) / "reports" / "quality.html"
    assert made["summary"] in page.read_text("utf-8")
    assert json.loads(page.with_suffix(".json").read_text("utf-8"))["summary"] == made["summary"]


@pytest.mark.slow
def test_what_fails_is_named_with_its_words_and_what_to_do(home: Path) -> None:
    """An embedding model that is set and is not on this machine leaves the days without vectors."""
    missing = {"EMBEDDING_MODEL": "nomic-ai/nomic-embed-text-v1.5"}
    memory(home, "run", "--from", "2026-03-02", "--to", "2026-03-02", env=missing)
    told = memory(home, "admin", "report", env=missing)
    assert told.returncode == 0, told.stderr
    assert "results failed" in told.stdout
    assert "embeddings/index_matches_tables" in told.stdout
    assert "memory admin index rebuild" in told.stdout
    made = memory_json(home, "admin", "report", "--json")
    (failed,) = [c for c in made["checks"] if c["check"] == "embeddings/index_matches_tables"]
    assert failed["failed"][0]["reason"]
    assert made["worst_days"]

    known = memory_json(home, "status", "--json", env=missing)
    assert known["failing_checks"]["embeddings/index_matches_tables"] == ["2026-03-02"]
    assert known["report"] == f"{workspace(home) / 'reports' / 'quality.html'}"
    printed = memory(home, "status", env=missing).stdout
    assert "embeddings/index_matches_tables on 2026-03-02" in printed
    assert known["report"] in printed


def test_the_asset_writes_the_same_page(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_WORKSPACE", f"{workspace(home)}")
    settings = load_settings()
    with instance_of(settings) as instance:
        done = (
            build_definitions(Placement(settings)).resolve_job_def("quality_job").execute_in_process(instance=instance)
        )
        (made,) = done.asset_materializations_for_node("quality_report")
    shown = made.metadata
    assert shown["results_failed"].value == 0 and f"{shown['summary'].value}".startswith("All ")
    assert shown["why"].value == "Nothing failed."
    page = settings.report_dir / "quality.html"
    assert shown["page"].value == page.as_uri()
    assert f"{shown['summary'].value}" in page.read_text("utf-8")


def test_status_knows_when_each_stage_ran_and_what_is_switched_on(home: Path) -> None:
    known = memory_json(home, "status", "--json")
    assert known["failing_checks"] == {}
    assert known["last_success"]["observations"] and known["last_success"]["friction_clusters"]
    assert known["automation"]["daemon"] is False
    assert known["automation"]["switches"]["reflect_at_six"] is True
    assert "`memory admin service install` starts them" in memory(home, "status").stdout


def test_a_workspace_without_runs_has_a_page_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    result = memory(tmp_path, "admin", "report", env={"MEMORY_SESSION_DIRS": f"{tmp_path / 'sessions'}"})
    assert result.returncode == 0, result.stderr
    assert "No check has run yet" in result.stdout


def test_status_tells_of_a_damaged_record_and_of_all_the_rest(home: Path) -> None:
    for database in (workspace(home) / "dagster").rglob("*.db"):
        database.write_bytes(b"\xff" * 5000)
    printed = memory(home, "status")
    assert printed.returncode == 0, printed.stderr
    assert "They hold the record of runs, not your memory" in printed.stdout
    assert re.search(r"[1-9]\d* pending", printed.stdout)
