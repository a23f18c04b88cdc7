"""The check on windows passes on what the stage writes and is red on every way in which a message can be lost."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.defs.sessions import judge_windows
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import load_settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.conftest import conversation, utc, write_session
from memory_pipeline_tests.harnesses.test_codex import FORKED, copied, line, turns
from memory_pipeline_tests.loaded import every_message_in_one_window, read_sessions
from memory_pipeline_tests.sessions.machine import Machine

DAY = date(2025, 3, 5)
NINE = utc("2025-03-05T09:00")
Frames = dict[str, pl.DataFrame]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Two sessions of ten messages, as the stage stores them."""
    for topic in ("parcels", "invoices"):
        write_session(tmp_path / f"sessions/{topic}.jsonl", *conversation(NINE, topic=topic))
    monkeypatch.setenv("MEMORY_SESSION_DIRS", str(tmp_path / "sessions"))
    settings = load_settings()
    stage = SessionsStage.from_workspace(Workspace.open(settings))
    stage.look()
    assert bring_up_to_date(stage, stage.lake, DAY)
    return Lake(load_settings().lake_dir)


def judged(lake: Lake, corrupt: Callable[[Frames], Frames]) -> Verdict:
    frames = {name: lake.read(name, [DAY]) for name in ("messages", "windows")}
    for name, frame in corrupt(frames).items():
        lake.replace(name, frame, [DAY], {DAY: lake.fingerprint(name, DAY) or ""})  # or the run would repair it
    return judge_windows(lake, DAY)


def test_good_tables_pass_and_are_counted(lake: Lake) -> None:
    verdict = judge_windows(lake, DAY)
    assert (verdict.passed, verdict.numbers, verdict.offenders) == (True, {"messages": 20, "windows": 2}, [])


def test_a_day_without_sessions_passes(lake: Lake) -> None:
    assert judge_windows(lake, date(2025, 3, 6)).passed


def of_first(column: str, value: object) -> pl.Expr:
    """The column, with another value in its first row."""
    return pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(value)).otherwise(pl.col(column)).alias(column)


CORRUPTIONS: dict[str, tuple[Callable[[Frames], Frames], str]] = {
    "a message twice": (
        lambda f: {"messages": pl.concat([f["messages"], f["messages"].head(1)])},
        "is stored more than once",
    ),
    "a message in a second window too": (
        lambda f: {
            "messages": pl.concat(
                [f["messages"], f["messages"].head(1).with_columns(dedupe_key=pl.lit(f["windows"]["dedupe_key"][1]))]
            )
        },
        "is stored more than once",
    ),
    "a message lost": (lambda f: {"messages": f["messages"].slice(1)}, "has another number of messages than it states"),
    "all messages lost": (
        lambda f: {"messages": f["messages"].head(0)},
        "has another number of messages than it states",
    ),
    "a window lost": (lambda f: {"windows": f["windows"].slice(1)}, "is in no window"),
    "all windows lost": (lambda f: {"windows": f["windows"].head(0)}, "is in no window"),
    "a window twice": (
        lambda f: {"windows": pl.concat([f["windows"], f["windows"].head(1)])},
        "is stored more than once",
    ),
    "a message of a window that is not there": (
        lambda f: {"messages": f["messages"].with_columns(of_first("dedupe_key", "elsewhere"))},
        "is in no window",
    ),
    "a message of no window": (
        lambda f: {"messages": f["messages"].with_columns(of_first("dedupe_key", None))},
        "is in no window",
    ),
    "one more message, of no window": (
        lambda f: {
            "messages": pl.concat(
                [f["messages"], f["messages"].head(1).with_columns(message_id=pl.lit("x"), dedupe_key=pl.lit(None))],
                how="vertical_relaxed",
            )
        },
        "message x is in no window",
    ),
    "a wrong count": (
        lambda f: {"windows": f["windows"].with_columns(of_first("messages", 9))},
        "has another number of messages than it states",
    ),
}


@pytest.mark.parametrize(("corrupt", "said"), CORRUPTIONS.values(), ids=CORRUPTIONS)
def test_each_corruption_fails_and_is_named(corrupt: Callable[[Frames], Frames], said: str, lake: Lake) -> None:
    verdict = judged(lake, corrupt)
    assert not verdict.passed
    assert any(said in offender for offender in verdict.offenders), verdict.offenders


def test_offenders_are_in_the_same_order_every_time(lake: Lake) -> None:
    verdict = judged(lake, lambda f: {"windows": f["windows"].head(0)})
    assert verdict.offenders == sorted(verdict.offenders)
    assert len(verdict.offenders) == 20


def test_the_check_stops_what_comes_after(lake: Lake) -> None:
    """Observing windows that lack messages would give a wrong memory, not a smaller one."""
    (spec,) = every_message_in_one_window.check_specs
    assert (spec.blocking, spec.asset_key, spec.name) == (True, dg.AssetKey("windows"), "every_message_in_one_window")


@pytest.mark.parametrize("passes", [True, False])
def test_the_check_judges_the_day_of_its_run(passes: bool, lake: Lake) -> None:
    if not passes:
        judged(lake, lambda f: {"windows": f["windows"].head(0)})
    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize(
            [read_sessions, every_message_in_one_window],
            instance=instance,
            partition_key=f"{DAY}",
            resources={"workspace": WorkspaceResource()},
            raise_on_error=False,
        )
    (evaluation,) = result.get_asset_check_evaluations()
    assert (evaluation.passed, evaluation.severity) == (passes, dg.AssetCheckSeverity.ERROR)
    assert evaluation.metadata["messages"].value == 20
    assert result.success == passes


def test_a_day_on_which_a_fork_only_repeats_passes(machine: Machine) -> None:
    """The copy has the fork's times, and what it repeats is stored on the day on which it was said."""
    parent = [record | {"timestamp": "2026-04-30T12:00:00Z"} for record in turns("a", "b")]
    machine.write_lines("parent.jsonl", line(0, "session_meta", id="parent", cwd="/"), *parent)
    machine.write_lines("fork.jsonl", line(0, "session_meta", id="fork", cwd="/"), FORKED, *copied(*turns("a", "b")))
    machine.run()  # which asserts that the check passes
    assert (len(machine.texts(date(2026, 4, 30))), machine.texts(date(2026, 5, 1))) == (4, [])
    assert machine.lake.days("messages") == [date(2026, 4, 30), date(2026, 5, 1)]
    judged = judge_windows(machine.lake, date(2026, 5, 1))
    assert judged == Verdict(True, {"messages": 0, "windows": 0}, [], "0 messages in 0 windows")
