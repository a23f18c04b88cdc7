"""A user's machine in a few words: its session files, its workspace, and what the pipeline makes of them.

::

    machine.write("a.jsonl", *conversation(NINE))
    assert machine.due() == [DAY]
    machine.run()
    assert machine.tables() == machine.made_anew()
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memory_pipeline.cli.status import status
from memory_pipeline.defs.placement import WorkspaceResource
from memory_pipeline.defs.sessions import judge_windows
from memory_pipeline.lake.store import Lake
from memory_pipeline.planning import Stages
from memory_pipeline.sessions.stage import NAMES
from memory_pipeline.settings import Settings, load_settings, workspace_salt
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline_tests.conftest import Entry, write_session
from memory_pipeline_tests.loaded import session_sensor
from memory_pipeline_tests.rows import FakeEncoder, use_encoder

Rows = list[dict[str, Any]]


class Machine:
    """`sessions` is the directory that is read. The variables of the test's environment are the settings."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, instance: dg.DagsterInstance) -> None:
        self.root, self.instance = root, instance
        self.sessions = root / "sessions"
        self.sessions.mkdir(exist_ok=True)
        monkeypatch.setenv("MEMORY_SESSION_DIRS", str(self.sessions))
        monkeypatch.setenv("MEMORY_WORKSPACE", str(root / "workspace"))
        monkeypatch.setenv("MEMORY_FRICTION_MIN_POINTS", "1")  # sessions of tests are short
        use_encoder(monkeypatch, FakeEncoder("parcels", "invoices", dimension=384))

    @property
    def settings(self) -> Settings:
        return load_settings()

    @property
    def lake(self) -> Lake:
        return Lake(self.settings.lake_dir)

    def write(self, name: str, *entries: Entry, session_id: str | None = None) -> Path:
        """A pi session."""
        return write_session(self.sessions / name, *entries, session_id=session_id)

    def write_lines(self, name: str, *records: Any) -> Path:
        """A file of JSON lines, with its folders."""
        path = self.sessions / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(record)}\n" for record in records), "utf-8")
        return path

    def tick(self) -> dg.SensorResult | dg.SkipReason:
        """What the sensor says."""
        with dg.build_sensor_context(self.instance, resources={"workspace": WorkspaceResource()}) as context:
            answer = session_sensor(context)
        assert isinstance(answer, dg.SensorResult | dg.SkipReason)
        return answer

    def due(self) -> list[date]:
        """The days that the sensor asks for."""
        answer = self.tick()
        requests = answer.run_requests or [] if isinstance(answer, dg.SensorResult) else []
        return [date.fromisoformat(f"{request.partition_key}") for request in requests]

    def run(self, *days: date) -> None:
        """A run of these days in every stage, else of those that are due until none is, with the check on windows."""
        asked = list(days) or self.due()
        for _ in range(3):
            self._build(asked)
            asked = [] if days else self.due()
            if not asked:
                return
        raise AssertionError(f"{asked} are due again and again")

    def _build(self, days: list[date], settings: Settings | None = None) -> None:
        stages = Stages.from_settings(settings or self.settings)
        stages.sessions.look()
        for day in days:
            for stage in stages.all():
                bring_up_to_date(stage, stages.sessions.lake, day)
            verdict = judge_windows(stages.sessions.lake, day)
            assert verdict.passed, verdict.offenders

    def rows(self, table: str, day: date | None = None) -> Rows:
        return self.lake.read(table, day and [day]).to_dicts()

    def texts(self, day: date | None = None) -> list[str]:
        return [row["text"] for row in self.rows("messages", day)]

    def tables(self) -> dict[str, Rows]:
        return {name: in_order(self.rows(name)) for name in NAMES}

    def made_anew(self) -> dict[str, Rows]:
        """The tables of a workspace that was made just now from the files that are there."""
        settings = self.settings.model_copy(update={"workspace": self.root / f"anew-{len(list(self.root.iterdir()))}"})
        settings.lake_dir.mkdir(parents=True)
        (settings.lake_dir / "salt").write_bytes(workspace_salt(self.settings))
        stages = Stages.from_settings(settings)
        stages.sessions.look()
        for day in stages.sessions.catalogue.days():
            bring_up_to_date(stages.sessions, stages.sessions.lake, day)
        lake = Lake(settings.lake_dir)
        return {name: in_order(lake.read(name).to_dicts()) for name in NAMES}

    def status(self, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
        """What `memory status --json` says."""
        capsys.readouterr()
        status(as_json=True)
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=repr)
