"""One window that the model's command fails on is set aside, told and tried again; nothing else waits for it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.defs.runs import Unfinished, run_job
from memory_pipeline.llm.client import DEAD_AFTER
from memory_pipeline.llm.errors import ModelUnavailableError, SetAsideError
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.settings import load_settings
from memory_pipeline.stages import bring_up_to_date, is_incomplete
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.rows import DAY, day_after, say, workspace

PILL = "Never touch the file of doom, whatever happens to it."
RULE = "Never deploy on a Friday, because nobody is there to watch it."
FILLER = ["assistant: I am looking at the configuration of the worker to see where the retries come from."] * 8
COMMAND = """
import pathlib, sys
prompt = sys.stdin.read()
if pathlib.Path(sys.argv[1]).exists() and "file of doom" in prompt:
    sys.exit("context overflow")
print("<observations>\\n* 🟡 rule [#1] Never deploy on a Friday.\\n</observations>")
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file; while it is there, the command fails on what holds the pill."""
    made = tmp_path / "broken"
    made.touch()
    monkeypatch.setenv("MEMORY_MODEL_CONCURRENCY", "1")
    model = shlex.join([sys.executable, "-c", COMMAND, f"{made}"])
    monkeypatch.setenv("OBSERVER_MODEL", model)
    monkeypatch.setenv("MEMORY_MODEL_RETRIES", "0")
    workspace(tmp_path / "workspace")
    return made


def stage() -> ObservationsStage:
    """As a run makes it: a model that was taken for dead is asked again by the next."""
    return ObservationsStage.from_workspace(Workspace.open(load_settings()))


def test_a_window_that_fails_keeps_no_other_waiting(broken: Path) -> None:
    made = stage()
    say(made.lake, "s1", f"user: {PILL}", *FILLER)
    say(made.lake, "s2", f"user: {RULE}", *FILLER, clock="11:00")
    say(made.lake, "s3", f"user: {RULE}", *FILLER, day=day_after(1))
    built = bring_up_to_date(made, made.lake, DAY)  # which raises nothing: the run goes on to the next day
    assert built and not built.is_complete
    assert "1 of 2 windows were not observed: The model did not answer in 1 try" in built.notes["left_for_later"]
    assert "context overflow" in built.warnings[0]
    assert made.lake.read("segments", [DAY])["session_id"].unique().to_list() == ["s2"]
    later = bring_up_to_date(made, made.lake, day_after(1))
    assert later and later.is_complete
    assert is_incomplete(made, made.lake, DAY) and not is_incomplete(made, made.lake, day_after(1))
    broken.unlink()
    again = bring_up_to_date(stage(), made.lake, DAY)  # by the next run
    assert again and again.is_complete
    assert set(made.lake.read("segments", [DAY])["session_id"]) == {"s1", "s2"}


def test_a_day_of_nothing_else_fails_and_is_no_reason_to_end_the_run(broken: Path) -> None:
    made = stage()
    say(made.lake, "s1", f"user: {PILL}", *FILLER)
    say(made.lake, "s3", f"user: {RULE}", *FILLER, day=day_after(1))
    with dg.DagsterInstance.ephemeral() as instance:
        left = Unfinished()
        failure = run_job(made.settings, instance, "day_job", (DAY, day_after(1)), left)
    assert "context overflow" in f"{failure}" and left.failed == {DAY}  # the command line runs the others once more
    assert made.lake.read("segments", [day_after(1)]).height


def test_a_command_that_fails_on_everything_is_not_asked_for_ever(broken: Path) -> None:
    made = stage()
    sessions = DEAD_AFTER + 2
    for number in range(sessions):
        say(made.lake, f"s{number}", f"user: {PILL} And {number} others.", *FILLER, clock=f"{8 + number:02}:00")
    with pytest.raises(ModelUnavailableError, match="context overflow") as caught:
        bring_up_to_date(made, made.lake, DAY)
    assert not isinstance(caught.value, SetAsideError)
    asked = made.lake.read("ledger").filter(made.lake.read("ledger")["stage"] == "observations").height
    assert asked == DEAD_AFTER
