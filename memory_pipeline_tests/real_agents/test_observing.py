"""Real harnesses as the observer's command: they answer a request, and the session that they may write is not read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.reading import parse
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.cases import nightly
from memory_pipeline_tests.observations.model.test_observer import FACTS, TURNS, answer
from memory_pipeline_tests.real_agents.drivers import PROGRAMS, Codex, Harness, Pi
from memory_pipeline_tests.real_agents.model_server import SCRIPTED, ModelServer, Say
from memory_pipeline_tests.rows import say, workspace

pytestmark = pytest.mark.slow
PI = f"{PROGRAMS}/pi --offline --provider scripted --model {SCRIPTED} --print --no-tools"
COMMANDS = {
    "pi": f"{PI} --no-session",
    "pi with a session": PI,
    "pi, told on its command line": f"{PI} --no-session --system-prompt {{system}} {{prompt}}",
    "codex": f"{PROGRAMS}/codex exec --skip-git-repo-check --sandbox read-only -",
}


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(Say(answer())) as model:
        yield model


@pytest.mark.parametrize("name", ["pi", *nightly(*sorted(COMMANDS.keys() - {"pi"}))])
def test_a_day_is_observed_through_it(
    name: str, tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = name.split()[0].strip(",")
    if not (PROGRAMS / program).exists():
        reason = f"{program} is not installed; `make harnesses` does it"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    (tmp_path / "home").mkdir()
    harness: Harness = (Codex if program == "codex" else Pi)(tmp_path / "home", tmp_path, model)
    harness.configure()
    for variable, value in harness.environment().items():
        monkeypatch.setenv(variable, value)
    settings, lake = workspace(tmp_path / "workspace", observer_model=COMMANDS[name], model_retries=0)
    messages = say(lake, "s1", *TURNS)
    bring_up_to_date(ObservationsStage.from_workspace(Workspace(settings, lake)), lake, messages[0]["day"])
    assert len(lake.read("observations")) == len(FACTS.splitlines())
    assert lake.read("segments")["parsed"].to_list() == [True]
    asked = str(model.requests)
    assert "[#1 09:00 user]" in asked and "You keep the memory of a person" in asked
    places = [place for place in (tmp_path / "home").glob(".*/**/sessions") if place.is_dir()]
    own = [parse(source) for source in find_sources(places)]
    assert len(own) == (name in ("pi with a session", "codex"))
    assert all(session.excluded for session in own), [(s.excluded, [m.text[:80] for m in s.messages]) for s in own]
