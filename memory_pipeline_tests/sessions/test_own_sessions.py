"""The pipeline never observes itself. A model command writes a session of its own and its harness starts `memory run`
by a hook: the session is left out by the marker in its prompt, the run does not start because of its environment.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from memory_pipeline.llm.prompts import MARKER, VARIABLE, is_inside, mark_prompt, own_environment
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline_tests.conftest import conversation, user, utc
from memory_pipeline_tests.rows import bytes_of
from memory_pipeline_tests.sessions.machine import Machine

DAY = date(2025, 3, 5)
NINE = utc("2025-03-05T09:00")
NOT_STARTED = "Not started: a model command of the pipeline started this process.\n"

# What `pi -p PROMPT` does: it writes a session, and then an extension of it starts the pipeline.
MODEL_COMMAND = """
import json, pathlib, subprocess, sys
sessions, number, prompt = sys.argv[1:]
time = f"2025-03-05T1{number}:00:00.000Z"
records = [{"type": "session", "version": 3, "id": f"own-{number}", "timestamp": time, "cwd": "/"}]
for role, text in (("user", prompt), ("assistant", "Never deploy on a Friday.")):
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    records.append({"type": "message", "id": f"{number}-{role}", "timestamp": time, "message": message})
path = pathlib.Path(sessions, f"own-{number}.jsonl")
path.write_text("".join(json.dumps(record) + "\\n" for record in records))
command = [sys.executable, "-m", "memory_pipeline.cli.main", "run", "--all", "--sessions", sessions]
hook = subprocess.run(command, capture_output=True, text=True)
print(json.dumps([hook.returncode, hook.stdout, hook.stderr]))
"""


@pytest.fixture
def machine(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A session of the user, in a workspace in which even one prompt is enough to be observed."""
    monkeypatch.setenv("MEMORY_MIN_USER_MESSAGES", "1")
    machine.write("person.jsonl", *conversation(NINE))
    return machine


def call_model(machine: Machine, number: int, prompt: str, env: Mapping[str, str]) -> list[Any]:
    """Call the command as a stage does; how the run ended that its hook started: exit code, stdout, stderr."""
    command = [sys.executable, "-c", MODEL_COMMAND, str(machine.sessions), f"{number}", prompt]
    answer = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=500)
    told: list[Any] = json.loads(answer.stdout)
    return told


def observed(machine: Machine) -> list[str]:
    return [row["session_id"] for row in machine.rows("windows") if row["observed"]]


@pytest.mark.slow
def test_no_loop_can_start(machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine.run()
    made = machine.tables()
    for number in range(3):  # three runs, each of which calls a model once
        before = bytes_of(tmp_path / "workspace")
        hook = call_model(machine, number, mark_prompt("Observe this window: never use npm."), own_environment())
        assert hook == [0, "", NOT_STARTED]
        assert bytes_of(tmp_path / "workspace") == before
        machine.run(DAY)
        assert observed(machine) == ["person"]
        assert machine.due() == []
    assert machine.tables() == made
    assert not machine.settings.dagster_home.exists()  # which whatever starts a run makes
    left_out = {
        str(machine.sessions / f"own-{n}.jsonl"): "written by the pipeline's own model command" for n in range(3)
    }
    assert machine.status(capsys)["sessions_left_out"] == left_out


@pytest.mark.nightly
@pytest.mark.slow
def test_without_marker_and_environment_there_would_be_one(machine: Machine) -> None:
    """So the test before this one can fail."""
    machine.run()
    code, out, _ = call_model(machine, 0, "Observe this window: never use npm.", own_environment() | {VARIABLE: ""})
    assert code == 0 and out
    assert machine.settings.dagster_home.exists()
    assert sorted(observed(machine)) == ["own-0", "person"]


@pytest.mark.parametrize("args", [["run"], ["status", "--json"]], ids=" ".join)
def test_no_command_starts_below_a_model_command(args: list[str], machine: Machine, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "memory_pipeline.cli.main", *args]
    answer = subprocess.run(command, env=own_environment(), capture_output=True, text=True, timeout=500, check=False)
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", NOT_STARTED)
    assert not (tmp_path / "workspace").exists()


def test_the_sensor_asks_for_nothing_below_a_model_command(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.due() == [DAY]
    monkeypatch.setenv(VARIABLE, own_environment()[VARIABLE])
    answer = machine.tick()
    assert isinstance(answer, dg.SkipReason)
    assert answer.skip_message == "This process was started by a model command of the pipeline itself."


def test_the_environment_of_a_command_is_that_of_the_process_and_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOMETHING", "else")
    assert not is_inside()
    assert own_environment()["SOMETHING"] == "else"
    assert own_environment()[VARIABLE] == "1"
    monkeypatch.setenv(VARIABLE, "1")
    assert is_inside()


# --- the marker, in the sessions of each harness ---

PROMPT = mark_prompt("Observe this window.\n\n[user] Never use npm.")
TIME = "2025-03-05T12:00:00.000Z"
CLAUDE = {"sessionId": "own", "cwd": "/", "timestamp": TIME, "isSidechain": False}
OWN: dict[str, list[dict[str, Any]]] = {
    "claude_code": [
        CLAUDE | {"type": "user", "uuid": "u1", "parentUuid": None, "message": {"role": "user", "content": PROMPT}},
        CLAUDE
        | {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "message": {"role": "assistant", "content": "ok"}},
    ],
    "codex": [
        {"timestamp": TIME, "type": "session_meta", "payload": {"id": "own", "cwd": "/", "source": "exec"}},
        {
            "timestamp": TIME,
            "type": "response_item",
            "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": PROMPT}]},
        },
        {"timestamp": TIME, "type": "event_msg", "payload": {"type": "user_message", "message": PROMPT}},
    ],
    "gemini": [
        {"sessionId": "own", "projectHash": "0", "startTime": TIME, "lastUpdated": TIME},
        {"id": "m1", "timestamp": TIME, "type": "user", "content": PROMPT},
        {"id": "m2", "timestamp": TIME, "type": "gemini", "content": "ok"},
    ],
}


@pytest.mark.parametrize("harness", OWN)
def test_the_marker_is_known_in_the_sessions_of_every_harness(
    harness: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    path = machine.write_lines("own.jsonl", *OWN[harness])
    machine.run()
    assert observed(machine) == ["person"]
    assert {row["session_id"] for row in machine.rows("messages")} == {"person"}
    told = machine.status(capsys)
    assert told["session_files"] == {harness: 1, "pi": 1}
    assert told["sessions_left_out"] == {str(path): "written by the pipeline's own model command"}


def test_an_own_session_that_is_resumed_by_hand_stays_left_out(machine: Machine) -> None:
    later = conversation(NINE + timedelta(hours=4), topic="by hand")
    machine.write("own.jsonl", user(NINE + timedelta(hours=3), PROMPT), *later)
    machine.run()
    assert observed(machine) == ["person"]


def test_a_person_who_speaks_of_the_marker_is_observed(machine: Machine) -> None:
    """Somebody works on the pipeline itself."""
    machine.write("work.jsonl", user(NINE + timedelta(hours=3), f"Why does the prompt begin with {MARKER}?"))
    machine.run()
    assert sorted(observed(machine)) == ["person", "work"]


CLAUDE = {"type": "user", "uuid": "u1", "sessionId": "s1", "timestamp": "2025-03-05T09:00:00Z", "entrypoint": "sdk-cli"}
EXEC = {"id": "s1", "timestamp": "2025-03-05T09:00:00Z", "cwd": "/", "source": "exec", "originator": "codex_exec"}


def test_a_prompt_that_a_program_typed_shows_its_marker_too(tmp_path: Path) -> None:
    """`claude -p` and `codex exec` say that no person typed the prompt, so its role is injected."""
    prompt = mark_prompt("Observe this.")
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}
    transcripts = [
        [CLAUDE | {"message": {"role": "user", "content": prompt}}],
        [
            {"timestamp": EXEC["timestamp"], "type": "session_meta", "payload": EXEC},
            {"timestamp": EXEC["timestamp"], "type": "response_item", "payload": asked},
        ],
    ]
    for number, records in enumerate(transcripts):
        path = tmp_path / f"{number}.jsonl"
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        session = parse_file(path)
        assert [message.role for message in session.messages] == ["injected"]
        assert session.excluded == "written by the pipeline's own model command"


def test_a_program_keeps_its_session_out_in_the_middle_of_a_prompt(tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    path.write_text(json.dumps(CLAUDE | {"message": {"role": "user", "content": "Sum up (DO NOT INDEX) the night."}}))
    assert parse_file(path).excluded == "line 1 says DO NOT INDEX"
