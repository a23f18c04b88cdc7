"""What *Materialize all* of `day_job` starts over a range: one run, and no flood of lines in REVIEW.md."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.defs.graph import build_definitions
from memory_pipeline.defs.jobs import DAY_JOB
from memory_pipeline.defs.partitions import range_tags
from memory_pipeline.defs.placement import Placement
from memory_pipeline.lake.store import Lake
from memory_pipeline.proposals.events import ProposalLog
from memory_pipeline.proposals.review_file import offered_in
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.conftest import assistant, user, write_session

RULES = (
    "Never use npm here, always use pnpm.",
    "Always run make check before a commit.",
    "Never deploy on a Friday.",
    "Use tabs in every Makefile.",
    "Never log the address of a customer.",
    "Always write dates as ISO 8601.",
    "Do not touch the generated lockfile.",
    "Answer me in English, please, always.",
)
SHOWN = 3


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> date:
    """A session with a rule of its own on each of eight days; the first of them."""
    monkeypatch.setenv("MEMORY_SESSION_DIRS", str(tmp_path / "sessions"))
    monkeypatch.setenv("MEMORY_START_DATE", "2025-03-01")
    monkeypatch.setenv("MEMORY_PENDING_LIMIT", f"{SHOWN}")
    monkeypatch.setenv("EMBEDDING_MODEL", "not-on-this-machine")
    for number, rule in enumerate(RULES):
        start, entries = datetime(2025, 3, 1 + number, 9, tzinfo=UTC), []
        for turn, text in enumerate(
            [rule, "Look at it.", "Why does the build fail?", "Try again.", "Good, commit it."]
        ):
            asked = start + timedelta(minutes=2 * turn)
            entries += [user(asked, text), assistant(asked + timedelta(minutes=1), "The cause was a stale cache.")]
        write_session(tmp_path / "sessions" / f"{number}.jsonl", *entries)
    return date(2025, 3, 1)


@pytest.mark.slow
def test_a_range_is_one_run_and_review_has_no_more_lines_than_ever(sessions: date) -> None:
    settings, last = load_settings(), sessions + timedelta(days=len(RULES) - 1)
    with dg.DagsterInstance.ephemeral() as instance:
        job = build_definitions(Placement(settings)).resolve_job_def(DAY_JOB)
        result = job.execute_in_process(instance=instance, tags=range_tags(sessions, last))
        made = instance.get_materialized_partitions(dg.AssetKey("proposals"))
        assert result.success and instance.get_runs_count() == 1
    assert len(made) == len(RULES)
    pending = ProposalLog(Lake(settings.lake_dir)).pending()
    assert len(pending) > SHOWN
    assert len(offered_in(settings.review_file.read_text("utf-8"))) == SHOWN
