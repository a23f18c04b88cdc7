"""What Dagster has on record is asked once, and again when one of its databases has changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from memory_pipeline.cli.dagster_state import dagster_state
from memory_pipeline.defs import runs
from memory_pipeline.operations.doctor import Automation
from memory_pipeline.settings import Settings, load_settings

DAY = date(2025, 3, 5)
BEAT = datetime(2025, 3, 5, 9, tzinfo=UTC)


class Record:
    """A record of Dagster's that counts how often it is asked."""

    def __init__(self, settings: Settings, *, is_on: bool) -> None:
        self.asked, self.is_on = 0, is_on
        self.database = settings.dagster_home / "history/runs/index.db"
        self.database.parent.mkdir(parents=True)
        self.database.write_bytes(b"events")
        (settings.dagster_home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")

    @contextmanager
    def instance(self, _: Settings) -> Iterator[None]:
        self.asked += 1
        yield

    def automation(self, _settings: Settings, _instance: object) -> Automation:
        return Automation(self.is_on, {"sensor": True}, {"messages": BEAT}, last_beat=BEAT)

    @staticmethod
    def checks(_settings: Settings, _instance: object, days: set[date]) -> dict[str, dict[str, object]]:
        return {"messages/typed": {"passed": 0, "failed_days": [f"{day}" for day in days]}}


@pytest.fixture(params=[False, True])
def record(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    monkeypatch.setenv("MEMORY_WORKSPACE", str(tmp_path))
    found = Record(load_settings(), is_on=request.param)
    monkeypatch.setattr(runs, "instance_of", found.instance)
    monkeypatch.setattr(runs, "automation_of", found.automation)
    monkeypatch.setattr(runs, "check_results", found.checks)
    return found


def test_the_answer_is_stored_until_a_database_changes_but_not_while_the_daemon_runs(record: Record) -> None:
    settings = load_settings()
    first = dagster_state(settings, [DAY])
    elsewhere = settings.model_copy(update={"session_dirs": (settings.workspace,)})  # `memory run --sessions DIR`
    assert dagster_state(elsewhere, [DAY]) == first
    assert record.asked == (2 if record.is_on else 1)
    assert first["failing_checks"] == {"messages/typed": [f"{DAY}"]}
    assert first["last_success"] == {"messages": "2025-03-05T09:00Z"}
    assert first["automation"] == {"daemon": record.is_on, "switches": {"sensor": True}}
    asked = record.asked
    assert dagster_state(settings, [])["failing_checks"] == {}  # of other days
    record.database.write_bytes(b"more events")
    dagster_state(settings, [])
    assert record.asked == asked + 2
