"""What friction is said to cost, beside what a loopback server is then asked for."""

from __future__ import annotations

import json
import re
from pathlib import Path

from memory_pipeline.friction.estimate import estimate_friction
from memory_pipeline.observations.estimate import Estimate
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.text.tokens import estimate
from memory_pipeline_tests.friction.test_grouping import key, work_with
from memory_pipeline_tests.friction.test_stage import Work
from memory_pipeline_tests.llm.openai_server import Asked, Say, openai_server
from memory_pipeline_tests.rows import DAY, day_after, say

__all__ = ["key"]
THINGS = ("door", "lid", "wall", "shelf", "log")
SAID = [f"the {thing} of the kiln is not what I asked for, look at the drawing" for thing in THINGS]
FACTOR = 1.5


def play(request: Asked) -> Say:
    numbers = re.findall(r"^#(\d+) ", request.prompt, re.M)
    text = json.dumps({"groups": [{"what": "again", "line": 0, "remarks": numbers}]})
    return Say(text, tokens=(estimate(request.system) + estimate(request.prompt), estimate(text)))


def estimated(work: Work, *days: object) -> Estimate:
    observations = ObservationsStage.from_workspace(work.workspace)
    return sum(estimate_friction(observations, work.stage(), days).values(), Estimate())  # type: ignore[arg-type]


def test_it_is_near_what_is_asked_and_nothing_once_that_is_done(tmp_path: Path) -> None:
    with openai_server(play) as server:
        work = work_with(tmp_path, server.url)
        for i, text in enumerate(SAID):
            say(work.lake, f"s{i}", f"user: {text}. {text.upper()}. And {text} too.", day=day_after(i + 1 - len(SAID)))
        told = estimated(work, DAY)
        assert server.requests == []
        assert len(work.run()) == 1
        ledger = work.lake.read("ledger")
        assert told.calls == ledger.height == 1
        assert ledger["input_tokens"].sum() / FACTOR < told.input_tokens < ledger["input_tokens"].sum() * FACTOR
        assert ledger["cost_usd"].sum() / 2 < (told.cost_usd or 0) < ledger["cost_usd"].sum() * 2 < (told.most_usd or 0)


def test_a_day_on_which_nothing_was_said_and_a_model_that_is_not_set_cost_nothing(tmp_path: Path) -> None:
    work = work_with(tmp_path / "a", "http://127.0.0.1:9")
    work.correct("No, use uv, not pip.", until=day_after(-1))
    assert estimated(work, day_after(-1)).calls == 1
    assert estimated(work, DAY) == Estimate()
    without = work_with(tmp_path / "b", "http://127.0.0.1:9", reflector_model=None)
    without.correct("No, use uv, not pip.")
    assert estimated(without, DAY) == Estimate()
