"""A machine for tests that follow session files through whole runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline.planning import Stages
from memory_pipeline_tests.sessions.machine import Machine


@pytest.fixture(scope="session")
def instance() -> Iterator[dg.DagsterInstance]:
    """No run is ever stored in it."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance) -> Machine:
    return Machine(tmp_path, monkeypatch, instance)


@pytest.fixture
def only_the_first_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Days are read and cut into windows, and nothing is made of these: for tests that look at no later table."""
    monkeypatch.setattr(Stages, "all", lambda stages: (stages.sessions,))


@pytest.fixture
def only_two_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows are observed, and nothing is made of what was observed."""
    monkeypatch.setattr(Stages, "all", lambda stages: (stages.sessions, stages.observations))
