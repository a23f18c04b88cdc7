"""Through Dagster, every check leaves a result for every day of a run.

Dagster 1.13 stores one result without a day when a run has a range, and its days read as skipped.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memory_pipeline.defs.graph import build_definitions
from memory_pipeline.defs.placement import Placement
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.types import Context, EvidenceSpan, Fact, Segment, WindowMessage
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.rows import DAY, FakeEncoder, MissingEncoder, day_after, say, use_encoder, workspace

TURNS = (
    "user: Never deploy on a Friday, because nobody is there to watch it.",
    "assistant: The root cause was a stale lock file in /var/run/worker.pid that nobody removed.",
    "tool!: Error: exit 1",
    "user: From now on we always use uv instead of pip for Python.",
    *["assistant: I am looking at the configuration of the worker to see where the retries come from."] * 8,
)
DAYS = [f"{day_after(i)}" for i in range(3)]
RANGE = {"dagster/asset_partition_range_start": DAYS[0], "dagster/asset_partition_range_end": DAYS[-1]}
CHECKS = {
    ("windows", "every_message_in_one_window"),
    ("observations", "hallucinated_timestamps"),
    ("observations", "times_are_recorded"),
    ("observations", "evidence_is_verbatim"),
    ("observations", "no_secrets"),
    ("observations", "no_silent_zero"),
    ("observations", "compression_ratio"),
    ("observations", "ungrounded_specifics"),
    ("observations", "regurgitation"),
    ("observations", "high_is_rare"),
    ("embeddings", "index_matches_tables"),
    ("summary_embeddings", "index_matches_tables"),
    ("message_embeddings", "index_matches_tables"),
    ("reflections", "compression_ratio"),
}


DISTILLATIONS = {"day_distillations", "week_distillations", "month_distillations"}
"""They have partitions of their own, so runs of their own."""


def run(instance: dg.DagsterInstance, **how: Any) -> dg.ExecuteInProcessResult:
    """All assets of a day with their checks; what comes of it is of the days, which are distilled after them."""
    defs = build_definitions(Placement(load_settings()))
    every = {key.path[-1] for asset in defs.assets or [] for key in asset.keys}
    made = _run(defs, instance, every - DISTILLATIONS, **how)
    distilled = _run(defs, instance, {"day_distillations"}, **how)
    return made if distilled.success else distilled


def _run(defs: dg.Definitions, instance: dg.DagsterInstance, names: set[str], **how: Any) -> dg.ExecuteInProcessResult:
    assets = [a for a in defs.assets or [] if not names.isdisjoint(key.path[-1] for key in a.keys)]
    checks = [c for c in defs.asset_checks or [] if not names.isdisjoint(k.asset_key.path[-1] for k in c.check_keys)]
    return dg.materialize(
        [*assets, *checks],
        instance=instance,
        resources=defs.resources,
        raise_on_error=False,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        **how,
    )


def stored(instance: dg.DagsterInstance, asset: str, check: str) -> dict[str | None, bool]:
    """Day to verdict; the day of a result without one is None."""
    key = dg.AssetCheckKey(dg.AssetKey(asset), check)
    records = instance.event_log_storage.get_asset_check_execution_history(key, limit=50)
    found = {}
    for record in reversed(records):
        event = record.event and record.event.dagster_event
        if event and event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            found[event.asset_check_evaluation_data.partition] = event.asset_check_evaluation_data.passed
    return found


@pytest.fixture
def three_days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A workspace with a session on each of three days, an encoder that loads no model, and no session files."""
    encoder = FakeEncoder("uv", "friday", "lock", dimension=384)
    use_encoder(monkeypatch, encoder)
    _, lake = workspace(tmp_path / "workspace")
    for back in range(3):
        say(lake, f"s{back}", *TURNS, day=day_after(back))
    return lake


def test_a_run_of_one_day_stores_one_result_of_each_check_for_that_day(three_days: Lake) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        assert run(instance, partition_key=f"{DAY}").success
        assert {pair: stored(instance, *pair) for pair in CHECKS} == {pair: {f"{DAY}": True} for pair in CHECKS}


@pytest.mark.slow
@pytest.mark.nightly
def test_runs_over_three_days_store_results_per_day_under_their_own_ids(three_days: Lake) -> None:
    """Also again with other rows, whose results must not collide with the first, and with a damaged table."""
    with dg.DagsterInstance.ephemeral() as instance:
        assert run(instance, tags=RANGE).success
        for pair in CHECKS:
            by_day = stored(instance, *pair)
            assert {day: by_day.get(day) for day in DAYS} == dict.fromkeys(DAYS, True), pair
        for table in ("sessions", "observations", "embeddings", "reflections", "proposals", "friction_clusters"):
            assert instance.get_materialized_partitions(dg.AssetKey(table)) == set(DAYS)

        say(three_days, "later", *TURNS, day=day_after(1), clock="15:00")
        damaged = three_days.path("reflections", day_after(1))
        damaged.write_bytes(b"")
        again = run(instance, tags=RANGE)
        assert again.success
        assert three_days.read("reflections", [day_after(1)]).height  # it is made again
        records = instance.event_log_storage.get_asset_check_partition_info(
            [dg.AssetCheckKey(dg.AssetKey("observations"), "no_silent_zero")], partition_keys=DAYS
        )
        assert {r.partition_key: r.latest_planned_run_id for r in records} == dict.fromkeys(DAYS, again.run_id)


OUTPUT = " ".join(f"line{n}" for n in range(50))
SECRET = "AKIA" + "Q3XV7TN2LMR5ZK8D"
WRONG = {
    "ungrounded_specifics": ("Deployed 9.9.9 in /opt/nowhere.", "medium", 1),
    "regurgitation": (OUTPUT, "medium", 1),
    "high_is_rare": ("Never deploy on a Friday", "high", 10),
    "no_secrets": (f"The token is {SECRET}.", "medium", 1),
}
"""By check, what a model answers on the day on which it is to fail: text, priority and how often, with more words."""


class WrongModel:
    """Says one thing that was said, and on a day for each of `WRONG` what only this check finds."""

    name = version = "wrong:model"
    at_once = 1
    is_incremental = False

    def stop(self) -> None: ...

    def observe(self, messages: Sequence[WindowMessage], context: Context) -> list[Segment]:
        wrong = dict(enumerate(WRONG.values(), 1)).get((context.day - DAY).days)
        texts = [("Never deploy on a Friday.", "medium")]
        if wrong:
            text, priority, count = wrong
            texts += [(text + "!" * n, priority) for n in range(count)]
        said, span = messages[0].said_at, EvidenceSpan(messages[0].message_id, 0, 5)
        facts = tuple(Fact(text, priority, "rule", said, "user", (span,)) for text, priority in texts)
        ends = (messages[0].message_id, messages[-1].message_id)
        return [Segment("It was about deploying.", *ends, facts, answer="a1")]


def test_each_check_is_red_on_its_day_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_encoder(monkeypatch, FakeEncoder("uv", "friday", "lock", dimension=384))
    monkeypatch.setattr("memory_pipeline.observations.stage.observer_of", lambda workspace: WrongModel())
    _, lake = workspace(tmp_path / "workspace")
    days = [f"{day_after(n)}" for n in range(len(WRONG) + 1)]
    token = "user: The token was [redacted:github-token:3fa91c]."
    for n in range(len(days)):
        say(lake, f"s{n}", *TURNS, *TURNS[-8:], token, f"tool: {OUTPUT}", day=day_after(n))
    with dg.DagsterInstance.ephemeral() as instance:
        tags = {"dagster/asset_partition_range_start": days[0], "dagster/asset_partition_range_end": days[-1]}
        assert not run(instance, tags=tags).success  # what blocks stops what comes after
        found = {check: stored(instance, "observations", check) for asset, check in CHECKS if asset == "observations"}
        red = {check: [day for day in days if not by_day[day]] for check, by_day in found.items()}
        red_day = dict(zip(WRONG, days[1:], strict=True))
        assert red == {check: [red_day[check]] if check in red_day else [] for check in found}
        assert not instance.get_materialized_partitions(dg.AssetKey("embeddings"))


def test_a_missing_model_is_a_warning_and_stops_nothing(three_days: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    use_encoder(monkeypatch, MissingEncoder())
    with dg.DagsterInstance.ephemeral() as instance:
        assert run(instance, partition_key=f"{DAY}").success
        assert stored(instance, "embeddings", "index_matches_tables") == {f"{DAY}": False}
        for table in ("embeddings", "reflections", "proposals", "friction_clusters", "memory_file"):
            assert instance.get_latest_materialization_event(dg.AssetKey(table)), table
    assert three_days.read("embeddings").is_empty()
    assert three_days.read("proposals").height
