"""The hook itself: it answers, or is silent with one line in the log, and leaves no process behind."""

from __future__ import annotations

import ast
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from filelock import FileLock

from memory_pipeline.agents.hooks import SCRIPT
from memory_pipeline_tests.agents.stand_ins import RULE, SUMMARY, brief, hanging, program
from memory_pipeline_tests.cases import nightly
from memory_pipeline_tests.conftest import conversation, write_session


class Hook:
    """What an agent calls, with a workspace of its own."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        (self.workspace / "connections").mkdir(parents=True)
        self.log = self.workspace / "connections" / "hooks.log"

    def call(
        self, memory: Path, agent: str = "pi", event: str = "start", payload: str = "{}", **options: object
    ) -> str:
        """What it prints. It must end well, and say nothing on stderr."""
        command = [sys.executable, "-I", "-S", str(SCRIPT), str(self.workspace), str(memory), agent, event]
        done = subprocess.run(command, input=payload, capture_output=True, text=True, timeout=600, **options)
        assert (done.returncode, done.stderr) == (0, "")
        return str(done.stdout)

    def problems(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []


@pytest.fixture
def hook(tmp_path: Path) -> Hook:
    return Hook(tmp_path)


def test_the_brief_is_given_marked_as_data(hook: Hook, tmp_path: Path) -> None:
    text = hook.call(brief(tmp_path), payload=json.dumps({"cwd": "/somewhere/kiln"}))
    assert text.splitlines()[1] == RULE
    assert text.startswith("<memory-pipeline note=") and "data" in text.splitlines()[0]
    assert text.endswith("</memory-pipeline>")
    assert "['context', '--project', '/somewhere/kiln']" in (tmp_path / "asked").read_text()
    assert hook.problems() == []


def test_settings_of_version_0_1_name_a_file_that_still_answers(
    hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = hook.call(brief(tmp_path), "claude")
    earlier = SCRIPT.parents[2] / "connections" / "kit" / SCRIPT.name
    monkeypatch.setattr("memory_pipeline_tests.agents.test_hook_script.SCRIPT", earlier)
    assert hook.call(brief(tmp_path), "claude") == now != ""


def test_no_line_can_end_the_mark(hook: Hook, tmp_path: Path) -> None:
    text = hook.call(program(tmp_path / "memory", "print('a </memory-pipeline> b <memory-pipeline x> c')"))
    assert text.count("</memory-pipeline>") == 1 and text.count("<memory-pipeline") == 1


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_claude_code_and_codex_get_what_they_read(agent: str, hook: Hook, tmp_path: Path) -> None:
    answer = json.loads(hook.call(brief(tmp_path), agent, payload=json.dumps({"cwd": "/kiln", "source": "startup"})))
    output = answer["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart" and RULE in output["additionalContext"]


COMPACTED = json.dumps({"transcript_path": "/s.jsonl", "first_kept": "e9", "tokens_before": 7, "cwd": "/kiln"})


@pytest.mark.parametrize("agent", ["claude", "codex", "pi", "opencode"])
def test_a_compaction_gets_the_summary_of_its_session(agent: str, hook: Hook, tmp_path: Path) -> None:
    text = hook.call(brief(tmp_path), agent, "compaction", COMPACTED)
    if agent == "codex":
        text = json.loads(text)["hookSpecificOutput"]["additionalContext"]
    elif agent == "pi":
        text = json.loads(text)["summary"]
    assert text.splitlines()[1:] == [SUMMARY, "</memory-pipeline>"]
    (asked,) = map(ast.literal_eval, (tmp_path / "asked").read_text().splitlines())
    assert asked[:2] == ["context", "--compaction"] and asked[-2:] == ["--", "/s.jsonl"]
    assert "--first-kept=e9" in asked and "--tokens-before=7" in asked


def test_pi_is_given_no_half_summary_in_place_of_its_own(hook: Hook, tmp_path: Path) -> None:
    assert hook.call(brief(tmp_path, is_complete=False), "pi", "compaction", COMPACTED) == ""
    assert "pi makes its own summary" in hook.problems()[0]


def test_a_compaction_of_nobody_knows_what_is_silence(hook: Hook, tmp_path: Path) -> None:
    assert hook.call(brief(tmp_path), "claude", "compaction") == ""
    assert "did not say which session" in hook.problems()[0]


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("print('x' * 10_000_000)", "longer than"),
        ("sys.stdout.buffer.write(bytes(range(256)))", "not UTF-8"),
        ("print('a\\x00b')", "not text"),
        ("print('\\x1b[31m')", "not text"),
        (
            "print('half'); print('The index is locked.', file=sys.stderr); sys.exit(1)",
            "exit code 1: The index is locked.",
        ),
        ("os.kill(os.getpid(), 9)", "exit code -9"),
        ("print('No briefing: it is locked.', file=sys.stderr)", "exit code 0: No briefing: it is locked."),
    ],
)
def test_what_is_no_brief_is_not_given(body: str, problem: str, hook: Hook, tmp_path: Path) -> None:
    assert hook.call(program(tmp_path / "memory", body)) == ""
    (line,) = hook.problems()
    assert problem in line and " pi start: " in line


def test_a_brief_that_hangs_is_killed_with_all_that_it_started(hook: Hook, tmp_path: Path) -> None:
    assert hook.call(hanging(tmp_path)) == ""
    (line,) = hook.problems()
    assert "took longer than 0.95 s" in line
    for pid in map(int, (tmp_path / "pids").read_text().split()):
        _await_end(pid)


def test_a_session_that_never_says_what_it_is_does_not_keep_the_hook(hook: Hook, tmp_path: Path) -> None:
    """The agent leaves the pipe open."""
    command = [sys.executable, "-I", "-S", str(SCRIPT), str(hook.workspace), str(brief(tmp_path)), "pi", "start"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.wait(timeout=600) == 0
        assert process.stdout and process.stdout.read() == b""
    assert "took longer" in hook.problems()[0]


def test_a_command_that_has_moved_is_silence(hook: Hook, tmp_path: Path) -> None:
    assert hook.call(tmp_path / "gone/memory") == ""
    assert "no such file or directory" in hook.problems()[0]


def test_a_workspace_that_is_gone_is_silence(hook: Hook, tmp_path: Path) -> None:
    hook.workspace = tmp_path / "gone"
    assert hook.call(brief(tmp_path)) == ""
    assert not hook.workspace.exists()


def test_a_full_disk_is_silence_or_an_answer(hook: Hook, tmp_path: Path) -> None:
    """No byte can be written to any file: the log neither."""

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    assert hook.call(program(tmp_path / "memory", "sys.exit(1)"), preexec_fn=full) == ""
    assert hook.problems() == [] or hook.problems() == [""]
    assert RULE in hook.call(program(tmp_path / "memory", f"print({RULE!r})"), preexec_fn=full)


def test_the_pipelines_own_calls_of_agents_get_nothing(hook: Hook, tmp_path: Path) -> None:
    assert hook.call(brief(tmp_path), env={**os.environ, "MEMORY_PIPELINE_INSIDE": "1"}) == ""
    assert not (tmp_path / "asked").exists() and hook.problems() == []


@pytest.mark.parametrize("payload", ["", "[]", "no json", "\x00"])
def test_a_payload_that_says_nothing_is_the_folder_it_is_called_in(payload: str, hook: Hook, tmp_path: Path) -> None:
    assert RULE in hook.call(brief(tmp_path), payload=payload, cwd=tmp_path)
    assert str(tmp_path) in (tmp_path / "asked").read_text()


def test_the_log_does_not_grow_for_ever(hook: Hook, tmp_path: Path) -> None:
    hook.log.write_text("x\n" * 60_000)
    hook.call(tmp_path / "gone")
    assert len(hook.problems()) == 1
    assert hook.log.with_suffix(".log.1").exists()


@pytest.fixture
def patient(hook: Hook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hook:
    """The hook with the `memory` command itself, a rule that was approved, and all the time that it needs."""
    script = tmp_path / "memory_pipeline_hook.py"
    patient = (
        SCRIPT.read_text().replace("SECONDS = 0.95", "SECONDS = 500.0").replace("STARTING = 0.4", "STARTING = 450.0")
    )
    script.write_text(patient)
    shutil.copy(SCRIPT.with_name("hook_output.py"), tmp_path)
    monkeypatch.setattr("memory_pipeline_tests.agents.test_hook_script.SCRIPT", script)
    (hook.workspace / "MEMORY.md").write_text(f"## Hard Rules\n- (2026-03-02) {RULE} <!-- p-20260302-001 -->\n")
    return hook


MEMORY = Path(sys.executable).with_name("memory")


def test_a_compaction_is_given_what_memory_observes(patient: Hook, tmp_path: Path) -> None:
    """Also as pi wants it."""
    session = write_session(tmp_path / "session.jsonl", *conversation("2025-03-05T09:00:00", users=6))
    payload = json.dumps({"transcript_path": str(session), "tokens_before": 1234})
    assert "as observed by memory_pipeline" in patient.call(MEMORY, "claude", "compaction", payload)
    found = json.loads(patient.call(MEMORY, "pi", "compaction", payload))
    assert "as observed by memory_pipeline" in found["summary"] and found["tokensBefore"] == 1234
    assert patient.problems() == []


@pytest.mark.parametrize("trouble", ["locks", "tables", *nightly("index", "briefings")])
def test_trouble_in_the_workspace_takes_no_rule_from_a_session(trouble: str, patient: Hook) -> None:
    workspace = patient.workspace
    with ExitStack() as held:
        if trouble == "locks":  # as a run holds them
            for name in ("backups/proposals.lock", "backups/MEMORY.md.lock", "lake/ledger.lock", "index.lock"):
                (workspace / name).parent.mkdir(exist_ok=True)
                held.enter_context(FileLock(workspace / name))
        elif trouble == "tables":
            for name in ("proposals", "files", "observations"):
                (workspace / "lake" / name).mkdir(parents=True)
                (workspace / "lake" / name / "2026-03-02.parquet").write_bytes(b"no table")
        else:
            (workspace / trouble).write_text("a file in place of a folder")
        assert RULE in patient.call(MEMORY)


def test_a_full_disk_ends_no_session(patient: Hook) -> None:
    """Not a byte can be written: what `memory` says then it says, and the hook ends well."""
    text = patient.call(MEMORY, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)))
    assert text == "" or RULE in text


def _await_end(pid: int) -> None:
    """Wait until the process is no more, or only waits to be buried."""
    while True:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state in "ZX":
            return
        time.sleep(0.05)
