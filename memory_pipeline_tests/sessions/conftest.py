"""A machine for tests that follow session files through whole runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from memory_pipeline_tests.sessions.machine import Machine


@pytest.fixture(scope="session")
def instance() -> Iterator[dg.DagsterInstance]:
    """No run is ever stored in it."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance) -> Machine:
    return Machine(tmp_path, monkeypatch, instance)
