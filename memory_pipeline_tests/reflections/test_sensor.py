"""A long day is reflected on before it has ended, once."""

from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.defs.sensors import early_request
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.prompts import VARIABLE
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.loaded import defs, reflect_early
from memory_pipeline_tests.rows import DAY, day_after, observation, put, workspace


@each(("tokens", "is_asked"), [(39_999, False), (40_000, True), (90_000, True)])
def test_from_so_many_tokens_on(tmp_path: Path, tokens: int, is_asked: bool) -> None:
    _, lake = workspace(tmp_path)
    put(lake, "observations", observation("one", tokens=1_000), observation("two", tokens=tokens - 1_000))
    asked = early_request(lake, DAY, 40_000)
    assert isinstance(asked, dg.RunRequest) is is_asked
    if isinstance(asked, dg.RunRequest):
        assert (asked.run_key, asked.partition_key) == ("reflect_early:2025-03-05", "2025-03-05")
    else:
        assert asked.skip_message == "The observations of 2025-03-05 have 39,999 tokens, fewer than 40,000."


def test_the_days_before_do_not_count(tmp_path: Path) -> None:
    _, lake = workspace(tmp_path)
    put(lake, "observations", observation("one", tokens=90_000, day=day_after(-1)))
    assert isinstance(early_request(lake, DAY, 40_000), dg.SkipReason)


def test_the_sensor_asks_once_a_day(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its runs have one key a day, and Dagster starts no second run for a key."""
    monkeypatch.setenv("MEMORY_REFLECT_EARLY_TOKENS", "100")
    lake, now = Lake(load_settings().lake_dir), datetime.now(UTC)
    put(lake, "observations", observation("one", day=now.date(), tokens=60))
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:

        def tick() -> list[dg.RunRequest]:
            context = dg.build_sensor_context(
                instance=instance,
                repository_def=defs.get_repository_def(),
                resources={"workspace": WorkspaceResource()},
            )
            return reflect_early.evaluate_tick(context).run_requests or []

        assert tick() == []
        put(lake, "observations", observation("two", day=now.date(), tokens=40))
        first = tick()
        put(lake, "observations", observation("three", day=now.date(), tokens=4_000))
        assert [r.run_key for r in [*first, *tick()]] == [f"reflect_early:{now.date()}"] * 2
        monkeypatch.setenv(VARIABLE, "1")
        assert tick() == []
