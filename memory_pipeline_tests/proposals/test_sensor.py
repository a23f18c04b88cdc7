"""The sensor on REVIEW.md: it asks for a run when a person saved the file, and only then."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.defs.jobs import REVIEW_JOB
from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.loaded import review_sensor
from memory_pipeline_tests.rows import at, proposal, put, workspace


class Review:
    """REVIEW.md with a proposal, and the sensor that watches it."""

    def __init__(self, folder: Path) -> None:
        self.settings, self.lake = workspace(folder / "workspace")
        self.workspace = Workspace(self.settings, self.lake)
        put(self.lake, "proposals", proposal(1, "Use uv for Python."))
        reconcile(self.workspace, at("18:00"))
        self.instance = dg.DagsterInstance.ephemeral()
        self.age()

    def age(self) -> None:
        """The file was saved a minute ago."""
        moment = time.time() - 60
        os.utime(self.settings.review_file, (moment, moment))

    def save(self, text: str) -> None:
        self.settings.review_file.write_text(text, "utf-8")
        self.age()

    def text(self) -> str:
        return self.settings.review_file.read_text("utf-8")

    def tick(self, status: dg.DagsterRunStatus | None = None) -> list[str | None]:
        """The run keys that the sensor asks for; with a status, their runs then end so."""
        context = dg.build_sensor_context(self.instance, resources={"workspace": WorkspaceResource()})
        result = review_sensor(context)
        if isinstance(result, dg.SkipReason):
            return []
        assert isinstance(result, dg.SensorResult)
        for request in result.run_requests or []:
            if status:
                self.instance.add_run(dg.DagsterRun(job_name=REVIEW_JOB, tags=dict(request.tags), status=status))
        return [request.run_key for request in result.run_requests or []]


@pytest.fixture
def review(tmp_path: Path) -> Iterator[Review]:
    made = Review(tmp_path)
    yield made
    made.instance.dispose()


def test_the_file_as_we_wrote_it_asks_for_nothing(review: Review) -> None:
    assert review.tick() == []


def test_a_save_asks_for_one_run(review: Review) -> None:
    review.save(review.text().replace("[ ]", "[x]"))
    (key,) = review.tick()
    assert review.tick() == [key]  # the same key, so Dagster does not start it twice


def test_each_version_is_a_run_of_its_own(review: Review) -> None:
    review.save(review.text().replace("- [ ]", "- [x]"))
    first = review.tick()
    review.save(review.text().replace("uv", "uv, always,"))
    second = review.tick()
    assert len(first) == len(second) == 1
    assert first != second


def test_what_the_run_itself_writes_asks_for_nothing(review: Review) -> None:
    review.save(review.text().replace("- [ ]", "- [x]"))
    review.tick()
    reconcile(Workspace(review.settings, review.lake), at("18:01"))
    review.age()
    assert review.tick() == []


def test_a_file_that_is_still_being_saved_waits_for_the_next_tick(review: Review) -> None:
    review.settings.review_file.write_text(review.text().replace("[ ]", "[x]"), "utf-8")
    assert review.tick() == []
    review.age()
    assert len(review.tick()) == 1
