"""A second model answers where the first is wrong, refuses or is out of reach; whoever answers is named."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.llm.errors import ModelMisconfiguredError, ModelUnavailableError
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.reflections.stage import ReflectionsStage
from memory_pipeline.stages import Built, bring_up_to_date, is_current
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.llm.openai_server import Fail, Say, openai_server
from memory_pipeline_tests.rows import DAY, MissingEncoder, changed, observation, put, say, workspace

UV = "Use uv for all Python of parcels."
OBSERVED = f"<observations>\n<segment><facts>\n* 🔴 rule [#1] {UV}\n</facts></segment>\n</observations>"
REFLECTED = f"* 🔴 Hard Rules | rule [o1] {UV}"
FAILURES = {
    "wrong key": (Fail(401), "refuses the key"),
    "no such model": (Fail(404), "was not found"),
    "out of reach": (Fail(503), "did not answer in 1 try"),
    "refused": (Fail(400, "too long"), "does not take the request: HTTP 400"),
    "filtered": (Say(None, finish="content_filter"), "filtered"),
}


class Work:
    def __init__(self, folder: Path, first: str, **more: Any) -> None:
        asked: dict[str, Any] = {"model_retries": 0, "model_concurrency": 1}
        for role in ("observer", "reflector"):
            asked |= {f"{role}_model": "openai:first", f"{role}_base_url": first}
            asked |= {f"{role}_fallback_model": "openai:second"}
        self.settings, self.lake = workspace(folder, **asked | more)

    def observe(self, **changes: Any) -> Built:
        stage = ObservationsStage.from_workspace(Workspace(changed(self.settings, **changes), self.lake))
        return self._build(stage)

    def reflect(self) -> Built:
        stage = ReflectionsStage.from_workspace(Workspace(self.settings, self.lake))
        stage.encoder = MissingEncoder()  # type: ignore[assignment]
        return self._build(stage)

    def _build(self, stage: Any) -> Built:
        built = bring_up_to_date(stage, self.lake, DAY)
        assert built and is_current(stage, self.lake, DAY)
        return built

    def named(self, table: str, column: str) -> set[str]:
        return {re.sub("#.*", "", name) for name in self.lake.read(table)[column]}

    def calls(self) -> list[tuple[str, str]]:
        return list(self.lake.read("ledger").sort("asked_at").select("model", "state").iter_rows())


Make = Callable[..., Work]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    def made(first: str, second: str, **more: Any) -> Work:
        monkeypatch.setenv("OPENAI_BASE_URL", second)
        work = Work(tmp_path, first, **more)
        say(work.lake, "s1", f"user: {UV}", *(f"user: Part {n} is next, please." for n in range(5)))
        return work

    return made


@pytest.mark.parametrize("name", sorted(FAILURES))
def test_the_second_model_observes_and_is_named(make: Make, name: str) -> None:
    turn, why = FAILURES[name]
    with openai_server(turn) as first, openai_server(OBSERVED) as second:
        work = make(first.url, second.url)
        built = work.observe()
        assert len(second.requests) == 1 and second.requests[0].body["model"] == "second"
    assert work.lake.read("observations")["text"].to_list() == [UV]
    assert work.named("observations", "observer") == work.named("segments", "observer") == {"openai:second"}
    (key,) = set(work.lake.read("segments")["answer"])
    assert list((work.settings.workspace / "answers").rglob(f"{key}.json"))  # the answer that it was
    tries = 2 if name == "refused" else 1  # with a schema and without
    assert work.calls() == [("openai:first", "failed")] * tries + [("openai:second", "done")] or name == "filtered"
    assert built.notes["fallback_model"].startswith("the fallback model gave 1 of 1 segments: ")
    assert why in built.notes["fallback_model"] and any(why in warning for warning in built.warnings)


def test_the_second_model_reflects_and_is_named(make: Make) -> None:
    with openai_server(Fail(401)) as first, openai_server(REFLECTED) as second:
        work = make(first.url, second.url)
        put(work.lake, "observations", observation(UV))
        built = work.reflect()
    assert work.named("reflections", "reflector") == {"openai:second"}
    assert "the fallback model gave 1 of 1 batches: " in built.notes["fallback_model"]
    assert work.calls() == [("openai:first", "failed"), ("openai:second", "done")]


def test_where_the_first_answers_the_second_is_not_asked(make: Make) -> None:
    with openai_server(OBSERVED) as first, openai_server() as second:
        work = make(first.url, second.url)
        built = work.observe()
        assert second.requests == [] and built.notes == {}
    assert work.named("observations", "observer") == {"openai:first"}


def test_only_what_the_first_refused_is_asked_of_the_second(make: Make) -> None:
    turns = [Fail(400), Fail(400), OBSERVED.replace("#1", "#2")]  # with a schema and without
    with openai_server(turns) as first, openai_server(OBSERVED) as second:
        work = make(first.url, second.url)
        say(work.lake, "s2", "user: Deploys wait.", *(f"user: Step {n} is next, please." for n in range(5)))
        work.observe()
        assert (len(first.requests), len(second.requests)) == (3, 1)
    assert work.named("segments", "observer") == {"openai:first", "openai:second"}


def test_another_fallback_makes_no_day_stale(make: Make) -> None:
    with openai_server(OBSERVED) as first, openai_server() as second:
        work = make(first.url, second.url)
        work.observe()
        other = changed(work.settings, observer_fallback_model="openai:third")
        assert is_current(ObservationsStage.from_workspace(Workspace(other, work.lake)), work.lake, DAY)


@pytest.mark.parametrize(
    ("first_says", "second_says", "meaning"),
    [
        (Fail(503), Fail(401), ModelUnavailableError),
        (Fail(401), Fail(503), ModelUnavailableError),
        (Fail(401), Fail(401), ModelMisconfiguredError),
        (Fail(400), Fail(503), ModelUnavailableError),
    ],
)
def test_where_neither_answers_both_are_told(
    make: Make, first_says: Fail, second_says: Fail, meaning: type[Exception]
) -> None:
    with openai_server(first_says) as first, openai_server(second_says) as second:
        work = make(first.url, second.url)
        with pytest.raises(meaning, match=r"first.*The fallback does not answer either: .*(second|FALLBACK_MODEL)"):
            work.observe()
        settings = changed(work.settings, observer_fallback=True)  # and then without a model
        built = bring_up_to_date(ObservationsStage.from_workspace(Workspace(settings, work.lake)), work.lake, DAY)
    assert built and "The fallback does not answer either" in built.notes["left_for_later"]
    assert all(name.startswith("extractive") for name in work.named("segments", "observer"))


def test_a_budget_is_no_reason_to_ask_another(make: Make) -> None:
    with openai_server(OBSERVED) as first, openai_server(OBSERVED) as second:
        work = make(first.url, second.url, daily_budget_tokens=100)
        stage = ObservationsStage.from_workspace(Workspace(work.settings, work.lake))
        built = bring_up_to_date(stage, work.lake, DAY)
        assert built and "MEMORY_DAILY_BUDGET_TOKENS" in built.notes["left_for_later"]
        assert first.requests == second.requests == []
