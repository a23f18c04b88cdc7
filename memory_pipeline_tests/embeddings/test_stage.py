"""Vectors of a day: new texts are encoded, unchanged ones are not, and the index holds what the table says."""

import shutil
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from memory_pipeline.defs.embeddings import judge_parity
from memory_pipeline.embeddings.index import Filters
from memory_pipeline.embeddings.opening import index_folder, open_index
from memory_pipeline.embeddings.stage import EmbeddingsStage, point_id, vectors_of
from memory_pipeline.reflections.extractive import ExtractiveReflector
from memory_pipeline.reflections.stage import ReflectionsStage
from memory_pipeline.stages import Built, bring_up_to_date, is_current
from memory_pipeline.verdict import Verdict
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.rows import (
    DAY,
    FakeEncoder,
    MissingEncoder,
    Opened,
    Row,
    bytes_of,
    day_after,
    observation,
    observation_id,
    put,
    workspace,
)

UV, FRIDAY, TABS = "Use uv for Python.", "Never deploy on a friday.", "Indent with tabs."


@dataclass
class Work(Opened):
    encoder: Any = field(default_factory=lambda: FakeEncoder("uv", "friday", "tabs"))
    built: Built | None = None

    def observe(self, *texts: str, day: date = DAY) -> None:
        """Make these the observations of the day."""
        self.lake.replace("observations", self.lake.read("observations", [])[:0], [day])
        put(self.lake, "observations", *(observation(text, day=day) for text in texts))

    def stage(self) -> EmbeddingsStage:
        return EmbeddingsStage(self.workspace, self.encoder)

    def run(self, day: date = DAY) -> list[str]:
        """Bring the day up to date; returns the texts that were encoded."""
        before = len(self.encoder.encoded)
        self.built = bring_up_to_date(self.stage(), self.lake, day)
        encoded: list[str] = self.encoder.encoded[before:]
        return encoded

    def points(self, day: date | None = None) -> set[str]:
        with open_index(self.settings, self.encoder.dimension) as index:
            return index.ids(day)

    def rows(self, day: date = DAY) -> list[Row]:
        return self.lake.read("embeddings", [day]).to_dicts()

    def parity(self, day: date = DAY) -> Verdict:
        observations = self.lake.read("observations", [day]).height
        return judge_parity(observations, {r["point_id"] for r in self.rows(day)}, self.points(day))


@pytest.fixture
def work(tmp_path: Path) -> Work:
    settings, lake = workspace(tmp_path)
    work = Work(settings, lake)
    work.observe(UV, FRIDAY)
    return work


def point(text: str, day: date = DAY) -> str:
    return point_id(observation_id(text, day))


def test_every_new_observation_gets_a_row_and_a_point(work: Work) -> None:
    assert sorted(work.run()) == sorted([UV, FRIDAY])
    assert work.points() == {point(UV), point(FRIDAY)}
    row = next(r for r in work.rows() if r["source_id"] == observation_id(UV))
    assert (row["point_id"], row["kind"], row["dimension"]) == (point(UV), "observation", 4)
    assert row["point_id"] == str(uuid5(NAMESPACE_URL, observation_id(UV)))  # so that storing again replaces
    assert work.parity().passed


def test_a_point_carries_what_search_shows_and_filters(work: Work) -> None:
    work.run()
    with open_index(work.settings, work.encoder.dimension) as index:
        (hit, *_) = index.search(work.encoder.vector("friday"), 1, filters=Filters(DAY, DAY, {"priority": ["high"]}))
    assert hit.point_id == point(FRIDAY)
    assert hit.score == pytest.approx(1.0, abs=1e-5)
    assert hit.payload["text"] == FRIDAY
    assert hit.payload["date"] == "2025-03-05"
    assert hit.payload["source_id"] == observation_id(FRIDAY)


def test_a_point_names_its_project_and_learning_of_it_encodes_nothing(work: Work) -> None:
    work.run()
    ids = work.points()
    work.observe()
    put(work.lake, "observations", observation(UV, cwd="/src/kiln", project="kiln", owner="ada"), observation(FRIDAY))
    assert work.run() == []
    assert work.points() == ids
    with open_index(work.settings, work.encoder.dimension) as index:
        (hit, *_) = index.search(work.encoder.vector("uv"), 1)
    assert (hit.payload["cwd"], hit.payload["project"], hit.payload["owner"]) == ("/src/kiln", "kiln", "ada")
    assert hit.score == pytest.approx(1.0, abs=1e-5)


def test_unchanged_texts_are_not_encoded_again(work: Work) -> None:
    work.run()
    work.observe(UV, FRIDAY, TABS)
    assert work.run() == [TABS]
    assert work.points() == {point(UV), point(FRIDAY), point(TABS)}


def test_points_of_vanished_observations_are_deleted(work: Work) -> None:
    work.run()
    work.observe(UV)
    assert work.run() == []
    assert work.points() == {point(UV)}
    work.observe()
    work.run()
    assert work.points() == set()
    assert work.parity().passed


def test_a_day_leaves_the_points_of_other_days_alone(work: Work) -> None:
    work.run()
    work.observe(TABS, day=day_after(1))
    work.run(day_after(1))
    work.observe(day=day_after(1))
    work.run(day_after(1))
    assert work.points() == {point(UV), point(FRIDAY)}


def test_running_again_changes_no_byte_of_the_tables(work: Work) -> None:
    work.run()
    before = bytes_of(work.settings.lake_dir)
    assert is_current(work.stage(), work.lake, DAY)
    assert work.run() == []
    assert bytes_of(work.settings.lake_dir) == before


def test_a_deleted_index_makes_every_day_out_of_date_and_is_filled_again(work: Work) -> None:
    work.observe(TABS, day=day_after(1))
    work.run()
    work.run(day_after(1))
    before = work.points()
    shutil.rmtree(index_folder(work.settings, work.encoder.dimension))
    assert not is_current(work.stage(), work.lake, DAY)
    assert not is_current(work.stage(), work.lake, day_after(1))
    work.run()
    work.run(day_after(1))
    assert work.points() == before
    assert is_current(work.stage(), work.lake, DAY)
    assert is_current(work.stage(), work.lake, day_after(1))


def test_an_index_that_cannot_be_read_is_set_aside_and_filled_again(work: Work) -> None:
    work.run()
    for path in index_folder(work.settings, work.encoder.dimension).rglob("*"):
        if path.is_file():
            path.write_bytes(b"broken")
    work.points()  # whoever opens it next finds it broken
    assert list(work.settings.index_dir.glob("*.broken-1"))
    assert not is_current(work.stage(), work.lake, DAY)
    work.run()
    assert work.points() == {point(UV), point(FRIDAY)}


def test_without_a_model_there_are_no_rows_and_the_reason_is_kept(work: Work) -> None:
    work.encoder = MissingEncoder()
    work.run()
    assert work.lake.days("embeddings") == [DAY]
    assert work.rows() == []
    assert work.built and "EMBEDDING_MODEL" in work.built.warnings[0]


def test_without_a_model_later_stages_go_by_words(work: Work) -> None:
    work.encoder = MissingEncoder()
    work.run()
    stage = ReflectionsStage(Workspace(work.settings, work.lake), ExtractiveReflector(), work.encoder)
    bring_up_to_date(stage, work.lake, DAY)
    assert set(work.lake.read("reflections")["text"]) == {UV, FRIDAY}


def test_later_stages_go_by_words_also_when_days_before_have_vectors(work: Work) -> None:
    """The model went missing between two days: the rows of the first day still name vectors."""
    work.run()
    work.observe("Use uv for Python, always.", day=day_after(1))
    work.encoder = MissingEncoder()
    work.run(day_after(1))
    stage = ReflectionsStage(Workspace(work.settings, work.lake), ExtractiveReflector(), work.encoder)
    bring_up_to_date(stage, work.lake, day_after(1))
    assert set(work.lake.read("reflections")["support"]) == {1, 2}


def test_what_lacks_a_vector_is_filled_once_the_model_is_there(work: Work) -> None:
    missing, work.encoder = work.encoder, MissingEncoder()
    work.run()
    before = bytes_of(work.settings.lake_dir)
    work.run()
    assert bytes_of(work.settings.lake_dir) == before  # nothing new to say meanwhile
    work.encoder = missing
    work.run()
    assert work.points() == {point(UV), point(FRIDAY)}
    assert work.parity().passed
    assert is_current(work.stage(), work.lake, DAY)


def test_vectors_by_observation(work: Work) -> None:
    work.run()
    ids = [observation_id(UV), "o-unknown"]
    found = vectors_of(work.settings, work.encoder, ids)
    assert list(found) == [observation_id(UV)]
    assert found[observation_id(UV)] == pytest.approx([1, 0, 0, 0], abs=1e-5)
    assert vectors_of(work.settings, MissingEncoder(), []) == {}


@each(
    ("observations", "rows", "points", "offenders"),
    [
        (2, {"a", "b"}, {"a", "b"}, []),
        (0, set(), set(), []),  # an empty day
        (2, {"a", "b"}, {"a"}, ["point b is in the table and not in the index"]),
        (2, {"a", "b"}, {"a", "b", "c"}, ["point c is in the index and not in the table"]),
        (2, {"a"}, {"a"}, ["2 texts have 1 vectors"]),  # one was forgotten
        (2, {"a", "b"}, {"a", "c"}, ["point b is in the table", "point c is in the index"]),  # equal counts
        (2, set(), set(), ["2 texts have 0 vectors"]),  # no model
    ],
)
def test_the_judge_of_parity(observations: int, rows: set[str], points: set[str], offenders: list[str]) -> None:
    verdict = judge_parity(observations, rows, points)
    assert verdict.passed is (not offenders)
    assert len(verdict.offenders) == len(offenders)
    assert all(found.startswith(wanted) for found, wanted in zip(verdict.offenders, offenders, strict=True))


def test_parity_tells_a_point_that_was_lost_and_one_that_was_left_over(work: Work) -> None:
    work.run()
    with open_index(work.settings, work.encoder.dimension) as index:
        index.delete([point(UV)])
    assert work.parity().offenders == [f"point {point(UV)} is in the table and not in the index"]
    work.lake.replace("embeddings", work.lake.read("embeddings")[:0], [DAY])
    assert f"point {point(FRIDAY)} is in the index and not in the table" in work.parity().offenders
