"""What reflecting is said to cost, beside what a scripted server is then asked for."""

from __future__ import annotations

import json
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.estimate import Estimate
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.reflections.estimate import estimate_pool, estimate_reflections
from memory_pipeline.reflections.model.answer import schema
from memory_pipeline.reflections.pool import reflect_pool
from memory_pipeline.reflections.stage import ReflectionsStage
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.llm.openai_server import Asked, OpenAIServer, Say, openai_server
from memory_pipeline_tests.rows import DAY, MissingEncoder, at, day_after, put, reflection, say, workspace

DAYS = [day_after(n) for n in range(4)]
FACTOR = 1.5
"""Within which the estimate of observations that are still to be made must lie; README.md names it."""


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")


def answer(asked: Asked) -> Say:
    """Every second observation, word for word."""
    shown = re.findall(r"^(o\d+) \S+ \w+, [^:]+: (.*)$", asked.prompt, re.M)
    head = {
        "priority": "high",
        "section": "Patterns",
        "kind": "convention",
        "tags": [],
        "replaces": [],
        "contradicts": [],
    }
    lines = [head | {"observations": [int(name[1:])], "text": text} for name, text in shown[::2]]
    text = json.dumps({"lines": lines, "known": [], "summary": ""}, ensure_ascii=False)
    parts = (asked.system, asked.prompt, schema() if asked.schema else "")
    return Say(text, tokens=(sum(map(estimate, parts)), estimate(text)))


class Work:
    def __init__(self, folder: Path, server: OpenAIServer, **more: Any) -> None:
        model = {"reflector_model": "openai:scripted", "reflector_base_url": server.url, "reflector_price": "1/10"}
        self.settings: Settings
        self.lake: Lake
        self.settings, self.lake = workspace(folder, **model | {"daily_budget_usd": 100} | more)
        self.workspace = Workspace(self.settings, self.lake)
        self.server = server

    @property
    def stages(self) -> tuple[ObservationsStage, ReflectionsStage]:
        reflections = ReflectionsStage.from_workspace(self.workspace)
        reflections.encoder = MissingEncoder()  # type: ignore[assignment]
        return ObservationsStage.from_workspace(self.workspace), reflections

    def estimate(self, days: list[date]) -> Estimate:
        asked = len(self.server.requests)
        found = sum(estimate_reflections(*self.stages, days).values(), Estimate())
        assert len(self.server.requests) == asked
        return found

    def run(self, days: list[date]) -> None:
        for stage in self.stages:
            for day in days:
                bring_up_to_date(stage, self.lake, day)

    def asked(self) -> Estimate:
        """What the server was asked, by its own count."""
        ledger = self.lake.read("ledger")
        ledger = ledger.filter(ledger["stage"] == "reflections", ~ledger["cached"])
        sums = [ledger[name].sum() for name in ("input_tokens", "output_tokens", "cost_usd")]
        return Estimate(0, ledger.height, 0, *sums)


def talk(lake: Lake, day: date, rules: int = 4) -> None:
    """A session in which one message of so many lays down a rule."""
    things = ("depot", "courier", "invoice", "label", "parcel", "tracker", "archive", "gateway")
    turns = []
    for n, thing in enumerate(things * 4):
        # what is laid down is kept beyond the budget
        does, end = ("Always keep", "never elsewhere") if n % rules == 0 else ("Yesterday somebody put", "as was asked")
        turns.append(f"user: {does} the {thing} of number {day.day}{n} in the bucket {thing}-{n}, {end}.")
        turns.append(f"assistant: I moved the {thing} into its bucket. The cause of error {n} was a stale lock file.")
    say(lake, f"s{day}", *turns, day=day)


def near(found: float, true: float, factor: float) -> bool:
    return true / factor <= found <= true * factor


def test_days_that_are_not_observed_yet_are_near_what_is_then_asked(tmp_path: Path) -> None:
    with openai_server(answer) as server:
        work = Work(tmp_path, server)
        for day in DAYS:
            talk(work.lake, day)
        said = work.estimate(DAYS)
        work.run(DAYS)
        true = work.asked()
        assert said.calls == true.calls == len(DAYS)
        assert near(said.input_tokens, true.input_tokens, FACTOR)
        assert near(said.cost_usd or 0, true.cost_usd or 0, 2)
        assert (said.most_usd or 0) > (true.cost_usd or 0)
        assert work.estimate(DAYS) == Estimate()


def test_days_that_are_observed_are_told_as_they_will_be_asked(tmp_path: Path) -> None:
    with openai_server(answer) as server:
        work = Work(tmp_path, server, chunk_tokens=500)
        for day in DAYS:
            talk(work.lake, day, rules=1)
            bring_up_to_date(work.stages[0], work.lake, day)
        said = estimate_reflections(*work.stages, DAYS)
        work.run(DAYS)
        true = work.asked()
        total = sum(said.values(), Estimate())
        assert total.calls > len(DAYS)
        assert (total.calls, total.input_tokens) == (true.calls, true.input_tokens)
        assert near(total.output_tokens, true.output_tokens, 2)
        # an answer that is kept costs nothing, whatever became of the rows
        work.lake.path("reflections", DAYS[0]).unlink()
        again = estimate_reflections(*work.stages, DAYS)[DAYS[0]]
        assert again.calls == again.answered == said[DAYS[0]].calls and again.cost_usd == 0


def test_a_day_without_anything_costs_nothing_and_a_changed_one_changes_those_after_it(tmp_path: Path) -> None:
    with openai_server(answer) as server:
        work = Work(tmp_path, server)
        for day in DAYS[:2]:
            talk(work.lake, day)
        assert estimate_reflections(*work.stages, DAYS)[DAYS[3]] == Estimate()
        work.run(DAYS)
        say(work.lake, "more", "user: Never deploy parcels on a Friday, please.", day=DAYS[0], clock="20:00")
        calls = {day: e.calls for day, e in estimate_reflections(*work.stages, DAYS).items()}
        assert calls == {DAYS[0]: 1, DAYS[1]: 1, DAYS[2]: 0, DAYS[3]: 0}


def test_without_a_model_there_is_nothing_to_estimate(tmp_path: Path) -> None:
    with openai_server(answer) as server:
        work = Work(tmp_path, server, reflector_model=None)
        talk(work.lake, DAY)
        assert estimate_reflections(*work.stages, [DAY]) == {}
        assert estimate_pool(work.stages[1], day_after(9)) == Estimate()


def test_the_pool_is_told_as_it_will_be_asked(tmp_path: Path) -> None:
    with openai_server(answer) as server:
        work = Work(tmp_path, server)
        texts = [f"The worker w{i}x of carrier c{i}y writes into bucket b{i}z at night." for i in range(40)]
        put(work.lake, "reflections", *(reflection(t, day=DAY, sources=[f"o-{t}"]) for t in texts))
        stage = work.stages[1]
        said = estimate_pool(stage, day_after(9))
        reflect_pool(Workspace(work.settings, work.lake), stage.reflector, MissingEncoder(), at(day=day_after(9)))
        assert (said.calls, said.input_tokens) == (1, work.asked().input_tokens)
        assert estimate_pool(stage, day_after(9)).calls == 0
