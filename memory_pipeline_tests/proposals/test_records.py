"""Rows are only ever added, and of each thing the first row is the one that counts."""

from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.lake import DamagedTable
from memory_pipeline.proposals.reading import read_all
from memory_pipeline.proposals.records import record_decisions, record_showings
from memory_pipeline_tests.rows import DAY, at, day_after, decision, proposal, put, workspace

UV, FRIDAY = "p-20250305-001", "p-20250305-002"


def test_two_who_decide_at_once_leave_one_decision(tmp_path: Path) -> None:
    """Each looked before the other wrote; the second comes after midnight."""
    settings, lake = workspace(tmp_path)
    row = {"proposal_id": UV, "decision": "approved", "surface": "command", "text": "Use uv."}
    record_decisions(settings, lake, [row], at("23:59"))
    record_decisions(settings, lake, [row | {"decision": "expired"}], at("00:01", day_after(1)))
    record_decisions(settings, lake, [row | {"decision": "rejected"}, row | {"proposal_id": FRIDAY}], at("23:59"))
    kept = lake.read("decisions").select("day", "proposal_id", "decision").sort("proposal_id").rows()
    assert kept == [(DAY, UV, "approved"), (DAY, FRIDAY, "approved")]


def test_a_surface_shows_a_proposal_once_and_another_one_too(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    record_showings(settings, lake, {UV: None}, at("10:00"), surface="REVIEW.md")
    record_showings(settings, lake, {UV: None, FRIDAY: None}, at("11:00"), surface="command")
    record_showings(settings, lake, {UV: None}, at("12:00") + timedelta(days=2), surface="REVIEW.md")
    rows = lake.read("showings").sort("proposal_id", "shown_at").select("proposal_id", "surface", "shown_at").rows()
    assert rows == [(UV, "REVIEW.md", at("10:00")), (UV, "command", at("11:00")), (FRIDAY, "command", at("11:00"))]


def test_all_days_are_read_as_the_lake_reads_them(tmp_path: Path) -> None:
    _, lake = workspace(tmp_path)
    for days in range(3):
        put(lake, "proposals", proposal(1, "Use uv.", day=day_after(days)))
    put(lake, "decisions", decision(UV))
    old = lake.read("proposals", [DAY]).drop("sessions", "supersedes")
    old.write_parquet(lake.path("proposals", DAY))  # as it was before the table had these columns
    for table in ("proposals", "decisions", "showings"):
        assert read_all(lake, table).equals(lake.read(table))
    assert read_all(lake, "proposals", ["text", "day"]).equals(lake.read("proposals", columns=["text", "day"]))
    days = [day_after(1), day_after(9)]
    assert read_all(lake, "proposals", days=days).equals(lake.read("proposals", days))
    old.with_columns(support=pl.lit(1, pl.Int32)).write_parquet(lake.path("proposals", DAY))
    assert read_all(lake, "proposals").equals(lake.read("proposals"))


def test_a_damaged_day_is_named(tmp_path: Path) -> None:
    _, lake = workspace(tmp_path)
    put(lake, "proposals", proposal(1, "Use uv."), proposal(1, "Use uv.", day=day_after(1)))
    lake.path("proposals", DAY).write_bytes(b"PAR1")
    with pytest.raises(DamagedTable, match="2025-03-05"):
        read_all(lake, "proposals")
