"""A day's segments and observations as rows, and the day's log."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import polars as pl
import pytest

from memory_pipeline.lake.store import DamagedTableError
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.observations.stage import Job, ObservationsStage, observe
from memory_pipeline.observations.types import Context, Segment, WindowMessage
from memory_pipeline.stages import bring_up_to_date, is_current
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.observations.talking import talk
from memory_pipeline_tests.rows import DAY, Opened, bytes_of, day_after, say, window_key, workspace

TURNS = (
    "user: Never deploy on a Friday, because nobody is there to watch it.",
    "assistant: The root cause was a stale lock file in /var/run/worker.pid that nobody removed.",
    "tool!: Error: exit 1",
    "user: From now on we always use uv instead of pip for Python.",
    *["assistant: I am looking at the configuration of the worker to see where the retries come from."] * 8,
)


@dataclass
class Work(Opened):
    def run(self, day: date = DAY) -> ObservationsStage:
        stage = ObservationsStage(self.workspace, ExtractiveObserver(self.settings.observation_budget))
        bring_up_to_date(stage, self.lake, day)
        return stage

    def log(self) -> str:
        return self.settings.daily_log(DAY).read_text("utf-8")

    def ids(self) -> list[str]:
        return self.lake.read("observations")["observation_id"].to_list()


@pytest.fixture
def work(tmp_path: Path) -> Work:
    settings, lake = workspace(tmp_path)
    say(lake, "s1", *TURNS)
    return Work(settings, lake)


def test_the_rows_of_a_day(work: Work) -> None:
    work.run()
    (segment,) = work.lake.read("segments").to_dicts()
    assert segment["dedupe_key"] == window_key("s1")
    assert segment["position"] == 0
    assert (segment["first_message_id"], segment["last_message_id"]) == ("s1-05-09:00-0", "s1-05-09:00-11")
    rows = {o["text"]: o for o in work.lake.read("observations").iter_rows(named=True)}
    rule = rows[TURNS[0].removeprefix("user: ")]
    assert rule["segment_id"] == segment["segment_id"]
    assert (rule["priority"], rule["kind"], rule["trust"], rule["observer"]) == (
        "high",
        "rule",
        "user",
        "extractive-4-lexical",
    )
    assert (rule["session_id"], rule["day"]) == ("s1", DAY)
    assert rule["evidence"] == [{"message_id": "s1-05-09:00-0", "start": 0, "end": 62}]
    assert len(set(work.ids())) == len(work.ids()) >= 3


def test_only_windows_that_are_to_be_observed_are(work: Work) -> None:
    say(work.lake, "short", *TURNS, clock="15:00", observed=False)
    work.run()
    assert set(work.lake.read("observations")["session_id"]) == {"s1"}
    assert set(work.lake.read("segments")["session_id"]) == {"s1"}
    assert "session short" not in work.log()


def test_a_day_whose_messages_were_lost_says_what_to_do(work: Work) -> None:
    work.lake.path("messages", DAY).unlink()
    with pytest.raises(DamagedTableError, match=f"lacks a window.*memory run --from {DAY} --to {DAY}"):
        work.run()


def test_a_day_without_windows_becomes_an_empty_day_without_a_log(work: Work) -> None:
    work.run(day_after(1))
    assert work.lake.days("observations") == [day_after(1)]
    assert work.lake.read("observations").is_empty()
    assert not work.settings.daily_log(day_after(1)).exists()


def test_the_log_has_the_facts_with_their_local_times(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path, timezone="Asia/Tokyo")
    say(lake, "s1", *TURNS)
    work = Work(settings, lake)
    work.run()
    assert "### 🔭 Observations (session: session s1, 18:00)" in work.log()
    assert "* 🔴 (18:03) From now on we always use uv instead of pip for Python." in work.log()


def test_what_a_person_wrote_into_the_log_stays(work: Work) -> None:
    log = work.settings.daily_log(DAY)
    log.parent.mkdir()
    log.write_text("# My Wednesday\n\nBought milk.\n", "utf-8")
    work.run()
    assert work.log().startswith("# My Wednesday\n\nBought milk.\n")
    log.write_text(work.log() + "\nAnd bread.\n", "utf-8")
    say(work.lake, "s2", *TURNS, clock="14:00")
    work.run()
    assert "Bought milk." in work.log()
    assert "And bread." in work.log()
    assert "session s2" in work.log()


def test_a_block_that_a_person_edited_is_left_and_named(work: Work) -> None:
    work.run()
    log = work.settings.daily_log(DAY)
    log.write_text(work.log().replace("Never deploy", "Hardly ever deploy"), "utf-8")
    say(work.lake, "s2", *TURNS, clock="14:00")
    observer = ExtractiveObserver(work.settings.observation_budget)
    built = bring_up_to_date(ObservationsStage(work.workspace, observer), work.lake, DAY)
    assert "Hardly ever deploy" in work.log()
    assert built and built.warnings[0].endswith(f"edited by hand and left as it is: {window_key('s1')}")


def test_running_again_changes_no_byte(work: Work, tmp_path: Path) -> None:
    stage = work.run()
    before = bytes_of(tmp_path)
    assert is_current(stage, work.lake, DAY)
    work.run()
    assert bytes_of(tmp_path) == before
    work.lake.replace("observations", work.lake.read("observations")[:0], [DAY])  # lost, and made again
    work.run()
    assert bytes_of(tmp_path) == before


def test_ids_stay_when_the_day_grows_or_the_budget_changes(work: Work) -> None:
    work.run()
    first = set(work.ids())
    say(work.lake, "s2", *TURNS, clock="14:00")
    work.run()
    assert first < set(work.ids())
    more = Work(work.settings.model_copy(update={"observation_budget": 0.5}), work.lake)
    more.run()
    assert first <= set(more.ids())


@pytest.mark.parametrize("change", ["message", "budget", "window"])
def test_a_changed_input_makes_the_day_stale(work: Work, change: str) -> None:
    stage = work.run()
    if change == "budget":
        settings = work.settings.model_copy(update={"observation_budget": 0.2})
        stage = ObservationsStage(Workspace(settings, work.lake), ExtractiveObserver(0.2))
    else:
        table = f"{change}s"
        frame = work.lake.read(table)
        changed = {"message": {"text": "Something else."}, "window": {"current_task": "Another task."}}[change]
        rows = [frame.to_dicts()[0] | changed, *frame.to_dicts()[1:]]
        work.lake.replace(table, type(frame)(rows, schema=frame.schema), [DAY])
    assert not is_current(stage, work.lake, DAY)


def test_days_do_not_touch_each_other(work: Work) -> None:
    say(work.lake, "s1", *TURNS, day=day_after(1))
    work.run()
    before = work.lake.path("observations", DAY).read_bytes()
    work.run(day_after(1))
    assert work.lake.path("observations", DAY).read_bytes() == before
    assert set(work.lake.read("observations", [day_after(1)])["dedupe_key"]) == {window_key("s1", day_after(1))}


def test_every_observation_names_folder_project_and_owner(tmp_path: Path) -> None:
    work = Work(*workspace(tmp_path))
    say(work.lake, "s1", *TURNS)
    work.run()
    assert set(work.lake.read("observations").select("cwd", "project", "owner").rows()) == {("/repo", None, "me")}
    before = work.ids()
    sessions = work.lake.read("sessions").with_columns(project=pl.lit("kiln"))
    work.lake.replace("sessions", sessions, [DAY])
    work.run()
    assert set(work.lake.read("observations")["project"]) == {"kiln"}
    assert work.ids() == before
    assert "**Project**: kiln\n**Trigger**" in work.log()


def test_a_session_without_a_project_has_no_line_for_it(work: Work) -> None:
    work.run()
    assert "**Project**" not in work.log()


MARK = "[image: image/png, line 9, number 1]"


def test_a_message_of_an_image_alone_is_no_observation(tmp_path: Path) -> None:
    settings, lake = workspace(tmp_path)
    rule = f"Always use the colours of this picture for parcels.\n{MARK}"
    say(lake, "s", "user: hello there", f"user: {MARK}", f"user: {rule}", "user: thanks", "user: bye for now")
    bring_up_to_date(ObservationsStage.from_workspace(Workspace(settings, lake)), lake, DAY)
    texts = lake.read("observations", [DAY])["text"].to_list()
    assert any("colours of this picture" in text for text in texts)
    assert not any("[image:" in text for text in texts)


class Interrupted:
    """Is interrupted in the first session while it waits for a model in the second."""

    name = version = "interrupted"
    at_once = 2
    is_incremental = False

    def __init__(self) -> None:
        self.waits, self.stopped, self.was_stopped = threading.Event(), threading.Event(), False

    def observe(self, messages: Sequence[WindowMessage], context: Context) -> list[Segment]:
        if context.window == "first":
            assert self.waits.wait(10)
            raise KeyboardInterrupt
        self.waits.set()
        self.was_stopped = self.stopped.wait(10)
        return []

    def stop(self) -> None:
        self.stopped.set()


def test_an_interrupt_does_not_wait_for_what_others_wait_for() -> None:
    observer = Interrupted()
    jobs = [[Job({"day": DAY, "dedupe_key": name}, talk("user: Hello."), "")] for name in ("first", "second")]
    with pytest.raises(KeyboardInterrupt):
        observe(jobs, observer)
    assert observer.was_stopped
