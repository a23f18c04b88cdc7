"""Wrong calls, wrong settings and bad files: one sentence each, the right exit code, and the rest goes on."""

import json
from pathlib import Path

import pytest

from memory_pipeline_tests.cases import each
from memory_pipeline_tests.cli.command import memory, memory_json

FAILED, MISUSED = 1, 2


@each(
    ("args", "code", "sentence"),
    [
        (["run", "--from", "2026-02-30"], MISUSED, "'2026-02-30' is not a day; write it as YYYY-MM-DD."),
        (
            ["run", "--from", "2026-03-02", "--to", "2026-03-01"],
            MISUSED,
            "The first day, 2026-03-02, is after the last",
        ),
        (["run", "--all", "--to", "2026-03-01"], MISUSED, "--all selects every day"),
        (["run", "--sessions", "/does/not/exist"], MISUSED, "/does/not/exist is not a directory that can be read"),
        (["why", "nonsense"], MISUSED, "'nonsense' is not the id of a line"),
        (["why", "p-20260305-001"], FAILED, "There is no p-20260305-001"),
        (["review", "--approve", "p-20260305-001"], FAILED, "There is no proposal p-20260305-001"),
        (["review", "--approve", "p-1", "--reject", "p-1"], MISUSED, "p-1 cannot be both approved and rejected."),
        (["sql", "select nonsense"], MISUSED, "nonsense"),
    ],
)
def test_a_wrong_call_is_one_sentence(tmp_path: Path, args: list[str], code: int, sentence: str) -> None:
    result = memory(tmp_path, *args)
    assert result.returncode == code
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr + result.stdout


@each(
    ("name", "value", "expected"),
    [
        ("MEMORY_TIMEZONE", "Mars/Olympus", "MEMORY_TIMEZONE='Mars/Olympus': expected an IANA time zone"),
        ("MEMORY_START_DATE", "soon", "MEMORY_START_DATE='soon'"),
        ("MEMORY_IDLE_MINUTES", "-1", "MEMORY_IDLE_MINUTES='-1'"),
        ("MEMORY_WORKSPACE", "/dev/null", "expected a directory"),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(tmp_path: Path, name: str, value: str, expected: str) -> None:
    result = memory(tmp_path, "status", env={name: value})
    assert result.returncode == MISUSED
    assert expected in result.stderr
    assert "Traceback" not in result.stderr


def test_a_misspelt_setting_is_refused(tmp_path: Path) -> None:
    result = memory(tmp_path, "status", env={"MEMORY_TIMEZNOE": "UTC"})
    assert result.returncode == MISUSED
    assert "MEMORY_TIMEZNOE is not a setting; the nearest is MEMORY_TIMEZONE." in result.stderr


def test_an_empty_directory_is_told_and_no_examples_are_run_instead(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    result = memory(tmp_path / "home", "run", "--sessions", str(empty))
    assert result.returncode == FAILED
    assert f"No session was found in {empty}." in result.stderr
    assert not (tmp_path / "home" / ".memory-pipeline").exists()


@pytest.mark.slow
def test_bad_files_are_named_and_the_good_one_is_read(tmp_path: Path) -> None:
    """One directory with every sort of bad input beside one good session."""
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    records = [
        {"type": "session", "version": 3, "id": "good", "timestamp": "2026-03-02T10:00:00.000Z", "cwd": "/srv/app"},
        *(_said(i, f"the worker number {i} must never share its queue with another worker") for i in range(6)),
        {"type": "hologram", "id": "h1", "parentId": "m5", "timestamp": "2026-03-02T10:30:00.000Z"},
    ]
    lines = [json.dumps(record) for record in records]
    glued = lines[1] + lines[2]  # two records on one line
    good = "\n".join([lines[0], glued, *lines[3:], '{"type":"message","id":"half'])  # and half a last line
    (sessions / "good.jsonl").write_text(good, "utf-8")
    (sessions / "empty.jsonl").touch()
    (sessions / "other.jsonl").write_text('{"event": "click", "x": 1}\n', "utf-8")
    (sessions / "prose.json").write_text("not JSON at all", "utf-8")
    (sessions / "binary.jsonl").write_bytes(bytes(range(256)) * 8)

    result = memory(tmp_path, "run", "--sessions", str(sessions))
    assert result.returncode == 0, result.stderr
    status = memory_json(
        tmp_path, "status", env={"MEMORY_SESSION_DIRS": str(sessions), "MEMORY_DEFAULT_SESSION_DIRS": "false"}
    )
    assert status["session_files"] == {"pi": 1}
    named = {Path(path).name: reason for path, reason in status["files_not_read"].items()}
    for path, reason in status["files_not_read"].items():
        assert f"  {path}: {reason}\n" in result.stdout  # a run lists the same as `memory status`
    for line in status["records_not_read"]:
        assert f"  {line}\n" in result.stdout
    assert set(named) == {"empty.jsonl", "other.jsonl", "prose.json", "binary.jsonl"}
    assert all(reason.endswith(".") for reason in named.values())
    assert status["unknown_record_types"] == {"pi: hologram": 1}
    assert [line for line in status["records_not_read"] if "good.jsonl:8" in line]
    read = memory_json(tmp_path, "sql", "select count(*) n from messages where role = 'user'")
    assert read == [{"n": 6}]


def test_the_caret_of_a_wrong_query_points_at_what_is_wrong(tmp_path: Path) -> None:
    lines = memory(tmp_path, "sql", "selec 1").stderr.splitlines()
    place = next(i for i, line in enumerate(lines) if line.strip() == "^")
    assert lines[place - 1][lines[place].index("^") :].startswith("selec")
    assert lines[-1].startswith("(Tables: ")


def test_one_directory_by_two_spellings_is_read_once(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    sessions.mkdir()
    lines = [{"type": "session", "version": 3, "id": "s", "timestamp": "2026-03-02T10:00:00.000Z", "cwd": "/r"}]
    lines += [_said(i, f"Never push to main, reason {i}.") for i in range(2)]
    (sessions / "s.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    first = memory(tmp_path, "run", "--estimate", "--sessions", f"{sessions}/../sessions/")
    again = memory(tmp_path, "run", "--estimate", "--sessions", str(sessions))
    assert "1 session files, 1 new or changed." in first.stderr
    assert "1 session files, 0 new or changed." in again.stderr


def test_an_empty_workspace_answers_every_question(tmp_path: Path) -> None:
    """Before the first run there is nothing to show, and that is no error."""
    assert memory_json(tmp_path, "status")["days_with_sessions"] == 0
    assert memory_json(tmp_path, "review")["pending"] == []
    assert memory_json(tmp_path, "sql", "select count(*) n from observations") == [{"n": 0}]


def _said(number: int, text: str) -> dict[str, object]:
    moment = f"2026-03-02T10:{number:02d}:00.000Z"
    return {
        "type": "message",
        "id": f"m{number}",
        "parentId": f"m{number - 1}" if number else None,
        "timestamp": moment,
        "message": {
            "role": "user",
            "content": [{"type": "text", "text": text}],
            "timestamp": 1772445600000 + number * 60000,
        },
    }
