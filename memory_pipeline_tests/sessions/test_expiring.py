"""Transcripts that an agent deletes before they were read; what was read of them stays."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from memory_pipeline import harnesses
from memory_pipeline.operations.doctor import WARNING, examine
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.sessions.expiring import Expiring, expiring
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import load_settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.sessions.machine import Machine

NOW = datetime.now(UTC)


@pytest.fixture
def projects(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MEMORY_DEFAULT_SESSION_DIRS", "true")
    folder = Path.home() / ".claude/projects"
    folder.mkdir(parents=True)
    return folder


def transcript(folder: Path, name: str, days_old: float) -> Path:
    """A session of Claude Code that was last written to so long ago."""
    at = NOW - timedelta(days=days_old)
    record = {
        "type": "user",
        "uuid": name,
        "parentUuid": None,
        "sessionId": name,
        "timestamp": f"{at:%Y-%m-%dT%H:%M:%S.000Z}",
        "cwd": "/srv/api",
        "message": {"role": "user", "content": "Never use flask here."},
    }
    path = folder / f"-srv-api/{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record) + "\n")
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def opened() -> Catalogue:
    workspace = Workspace.open(load_settings())
    return Catalogue(workspace.lake, workspace.settings)


def soon(catalogue: Catalogue | None = None) -> Expiring | None:
    return expiring(catalogue or opened(), find_sources(roots(load_settings())), NOW)


def test_what_would_be_deleted_within_a_week_is_told_until_it_is_stored(projects: Path) -> None:
    for name, days in (("new", 1.0), ("in-eight-days", 22.0), ("in-six-days", 24.0), ("in-a-day", 29.0)):
        transcript(projects, name, days)
    (projects / "-srv-api/sessions-index.json").write_text("{}")
    os.utime(projects / "-srv-api/sessions-index.json", (0, 0))
    found = soon()
    assert found and [Path(path).stem for path in found.paths] == ["in-a-day", "in-six-days"]
    assert abs(found.first_at - NOW - timedelta(days=1)) < timedelta(seconds=2)
    sentence = found.sentence(NOW)
    assert sentence.startswith(f"claude_code will delete 2 transcripts from {found.first_at:%Y-%m-%d} on")
    transcript(projects, "overdue", 40)
    assert (overdue := soon()) and "3 transcripts when it next starts" in overdue.sentence(NOW)

    (catalogue := opened()).refresh(find_sources([projects]))
    assert (known := soon()) and len(known.paths) == 3  # the catalogue knows them, and no table has their words
    stage = SessionsStage(Workspace(catalogue.settings, catalogue.lake), catalogue, NOW)
    for day in catalogue.days():
        bring_up_to_date(stage, stage.lake, day)
    assert soon() is None
    path = transcript(projects, "in-a-day", 29)
    with path.open("a") as file:
        file.write(path.read_text().replace("in-a-day", "more"))
    os.utime(path, (0, (NOW - timedelta(days=29)).timestamp()))
    assert (grown := soon()) and [Path(path).stem for path in grown.paths] == ["in-a-day"]


def test_what_was_stored_stays_when_the_transcript_is_deleted(machine: Machine) -> None:
    path = transcript(machine.sessions, "a", 29)
    machine.run()
    before = machine.texts()
    path.unlink()
    machine.run()
    assert machine.texts() == before == ["Never use flask here."]


CLAUDE: list[tuple[str | None, float | None]] = [
    (None, 30),
    ("{}", 30),
    ('{"cleanupPeriodDays": 365}', 365),
    ('{"cleanupPeriodDays": 0}', 0),
    ('{"cleanupPeriodDays": -1}', None),
    ('{"cleanupPeriodDays": "30"}', None),
    ('{"cleanupPeriodDays": true}', None),
    ("[]", None),
    ("{", None),
    ("{" * 100_000, None),
]
GEMINI: list[tuple[dict[str, Any], float | None]] = [
    ({}, 30),
    ({"general": 1}, 30),
    ({"general": {"sessionRetention": {"enabled": False}}}, None),
    ({"general": {"sessionRetention": {"enabled": True, "maxAge": "48h"}}}, 2),
    ({"general": {"sessionRetention": {"maxAge": "2w"}}}, 14),
    ({"general": {"sessionRetention": {"maxAge": "2m"}}}, 60),
    ({"general": {"sessionRetention": {"maxAge": "0d"}}}, None),
    ({"general": {"sessionRetention": {"maxAge": 30}}}, None),
]


def test_the_agents_settings_say_when(projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = []
    transcript(projects, "a", 20)
    for text, days in CLAUDE:
        (file := projects.parent / "settings.json").unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)
        found = expiring(opened(), find_sources([projects]), NOW + timedelta(days=1000))
        at = None if found is None else round((found.first_at - NOW) / timedelta(days=1)) + 20
        if at != days:
            wrong.append((text, at))
    gemini = harnesses.named("gemini")
    assert gemini
    wrong += [(f"{settings}", days) for settings, days in GEMINI if gemini.retention_days(settings) != days]
    assert not wrong
    assert [h.name for h in harnesses.HARNESSES if h.retention_days({}) is not None] == ["claude_code", "gemini"]


def test_status_and_doctor_say_it(
    projects: Path, machine: Machine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = transcript(projects, "a", 29)
    told = machine.status(capsys)["deleted_soon"]
    assert told["paths"] == [str(path)]
    assert told["sentence"].startswith("claude_code will delete 1 transcript from ")
    finding = next(
        found for found in examine(load_settings(), lambda: None, lambda: None) if found.about == "transcripts"
    )
    assert (finding.level, finding.fix) == (WARNING, "memory run --all")
    assert finding.said == told["sentence"]
