"""What the UI shows of reflections: their numbers, what a model took, and why its lines are missing."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest

from memory_pipeline.defs.placement import Placement, WorkspaceResource
from memory_pipeline.defs.reflections import pool_asset
from memory_pipeline.lake.store import Lake
from memory_pipeline.settings import load_settings
from memory_pipeline_tests.llm.openai_server import openai_server
from memory_pipeline_tests.loaded import reflect
from memory_pipeline_tests.rows import DAY, MissingEncoder, day_after, observation, put, reflection

UV, FRIDAY = "Use uv for all Python of parcels.", "Never deploy parcels on a Friday."
ANSWER = f"* 🔴 Hard Rules | rule [o1] {UV}\n* 🔴 Patterns | rule [o2] Nobody said `this`.\n* 🟡 Patterns [o2] {FRIDAY}"


@pytest.fixture(autouse=True)
def no_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("reflections.stage", "defs.reflections"):
        monkeypatch.setattr(f"memory_pipeline.{module}.encoder_of", lambda name: MissingEncoder())


@pytest.fixture
def lake() -> Lake:
    lake = Lake(load_settings().lake_dir)
    put(lake, "observations", observation(UV, clock="08:00"), observation(FRIDAY, session="s2"))
    return lake


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def at(url: str) -> None:
        settings = {"REFLECTOR_MODEL": "openai:scripted", "REFLECTOR_BASE_URL": url, "OPENAI_API_KEY": "sk-test"}
        for name, value in (settings | {"MEMORY_MODEL_RETRIES": "0"}).items():
            monkeypatch.setenv(name, value)

    yield at


def run(asset: dg.AssetsDefinition, *, partitioned: bool = True) -> dg.ExecuteInProcessResult:
    day = {"partition_key": f"{DAY}"} if partitioned else {}
    selection = [asset]
    return dg.materialize(selection, resources={"workspace": WorkspaceResource()}, raise_on_error=False, **day)  # type: ignore[arg-type]


def metadata(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, Any]:
    (event,) = result.asset_materializations_for_node(asset)
    return {name: value.value for name, value in event.metadata.items()}


@pytest.mark.usefixtures("lake")
def test_the_numbers_of_a_day_without_a_model() -> None:
    shown = metadata(run(reflect), "reflect")
    assert (shown["dagster/row_count"], shown["reflectors"], shown["superseded"]) == (2, "extractive-3", 0)
    assert 0 < shown["compression_ratio"] <= 1
    assert "model_calls" not in shown and "left_for_later" not in shown


@pytest.mark.usefixtures("lake")
def test_the_numbers_of_a_day_that_a_model_condensed(model: Any) -> None:
    with openai_server(ANSWER) as server:
        model(server.url)
        shown = metadata(run(reflect), "reflect")
    assert (shown["dagster/row_count"], shown["answers"], shown["dropped_lines"], shown["model_calls"]) == (2, 1, 1, 1)


@pytest.mark.usefixtures("lake")
def test_an_answer_that_cannot_be_used_is_told(model: Any) -> None:
    with openai_server("nothing") as server:
        model(server.url)
        result = run(reflect)
    assert result.success
    assert "cannot be used" in metadata(result, "reflect")["left_for_later"]


def pooled(lake: Lake) -> None:
    texts = [f"The worker w{i}x of carrier c{i}y writes into bucket b{i}z at night." for i in range(20)]
    put(lake, "reflections", *(reflection(t, day=day_after(-5), sources=[f"o-{t}"]) for t in texts))


def test_the_pool_tells_what_it_added(lake: Lake) -> None:
    pooled(lake)
    result = run(pool_asset(Placement(load_settings())), partitioned=False)
    shown = metadata(result, "pool_reflections")
    assert (shown["added"], shown["lines"], shown["waiting"], shown["dagster/row_count"]) == (1, 20, 0, 1)
    assert "w7x" in shown["preview"] and 0 < shown["compression_ratio"] <= 1
    assert lake.read("pool_reflections").height == 1


@pytest.mark.parametrize(
    ("selection", "tags", "added"),
    [
        (["pool_reflections"], {}, 1),
        (["pool_reflections", "reflections"], {"dagster/partition": f"{DAY}"}, 0),  # "Materialize all"
        (["pool_reflections"], {"dagster/backfill": "b"}, 0),
    ],
)
def test_the_pool_is_left_alone_where_it_was_not_asked_for(
    lake: Lake, selection: list[str], tags: dict[str, str], added: int
) -> None:
    pooled(lake)
    jobs = dg.Definitions(
        assets=[reflect, pool_asset(Placement(load_settings()))], resources={"workspace": WorkspaceResource()}
    )
    result = jobs.resolve_implicit_global_asset_job_def().execute_in_process(
        asset_selection=[dg.AssetKey(name) for name in selection], tags=tags
    )
    shown = metadata(result, "pool_reflections")
    assert (shown["added"], shown["dagster/row_count"]) == (added, added)
    assert ("pool_reflect_job" in shown.get("left_alone", "")) is (added == 0)
    assert lake.read("pool_reflections").height == added


def test_the_pool_is_red_where_a_model_gives_nothing(lake: Lake, model: Any) -> None:
    pooled(lake)
    with openai_server("nothing") as server:
        model(server.url)
        result = run(pool_asset(Placement(load_settings())), partitioned=False)
        assert len(server.requests) == 3  # as often as a batch is asked for, and the step not again
    assert not result.success
    assert lake.read("pool_reflections").is_empty()
