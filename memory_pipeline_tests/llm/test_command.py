"""Commands as models, with small programs in the place of `pi -p` and `claude -p`."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from memory_pipeline.llm.backends.command import CommandBackend
from memory_pipeline.llm.client import backend_of
from memory_pipeline.llm.config import ModelConfig
from memory_pipeline.llm.errors import ModelMisconfiguredError, RequestRefusedError, TransientError
from memory_pipeline.llm.prompts import MARKER, mark_prompt
from memory_pipeline.llm.request import Reply, Request
from memory_pipeline_tests.cases import each

KEY = "sk-test-0123456789abcdef"
SHOW = "import os, sys; print([sys.stdin.read(), *sys.argv[1:]], os.listdir(), os.environ['MEMORY_PIPELINE_INSIDE'])"
SLOW_SECONDS = 3600


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return tmp_path / "a program.py"


def ask(program: Path, code: str, arguments: str = "", *, timeout: float = 20, prompt: str = "Hello?") -> Reply:
    program.write_text(code)
    return backend_for(program, arguments, timeout).send(Request("ask", "Be brief.", prompt))


def backend_for(program: Path, arguments: str = "", timeout: float = 20) -> CommandBackend:
    return CommandBackend(ModelConfig(f"{sys.executable} {shlex.quote(str(program))} {arguments}", timeout=timeout))


@pytest.mark.parametrize(
    ("arguments", "stdin", "argv"),
    [
        ("-p", f"{MARKER}\nBe brief.\n\nHello?", ["-p"]),
        ("-p {prompt}", "", ["-p", f"{MARKER}\nBe brief.\n\nHello?"]),
        ("--system {system}", f"{MARKER}\nHello?", ["--system", "Be brief."]),
        ("'--system={system}' '{prompt} '", "", ["--system=Be brief.", f"{MARKER}\nHello? "]),
        ("'$HOME' '*' ';' a\\ b", f"{MARKER}\nBe brief.\n\nHello?", ["$HOME", "*", ";", "a b"]),
    ],
)
def test_what_is_asked_goes_to_stdin_or_into_an_argument(
    program: Path, arguments: str, stdin: str, argv: list[str]
) -> None:
    assert ask(program, SHOW, arguments).text == f"{[stdin, *argv]} [] 1"


def test_braces_in_what_is_asked_are_left_alone(program: Path) -> None:
    prompt = "What is {system}? And {0} and {prompt}?"
    answer = ask(program, SHOW, "{system} {prompt}", prompt=prompt).text
    assert answer == f"{['', 'Be brief.', mark_prompt(prompt)]} [] 1"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("", ""),
        (r"print('\n  \n')", ""),
        (
            r"print('\x1b[1;31mred\x1b[0m \x1b]0;title\x07and \x1b]8;;u\x1b\\a link\x1b]8;;\x07 \x1b(B\x1b[?25h!')",
            "red and a link !",
        ),
        (r"import sys; sys.stdout.buffer.write(b'caf\xe9 \xff')", "caf\ufffd \ufffd"),
        (r"import sys; sys.stdout.buffer.write('記憶'.encode())", "記憶"),
        (r"import sys; sys.stdout.buffer.write(b'one\r\ntwo\r\n')", "one\ntwo"),
        (r"import sys; print('noise', file=sys.stderr); print('answer')", "answer"),
    ],
)
def test_what_is_printed_is_the_answer(program: Path, code: str, text: str) -> None:
    assert ask(program, code).text == text


def test_a_huge_output_is_no_trouble(program: Path) -> None:
    code = "import sys; sys.stdout.write('x' * 50_000_000); sys.stderr.write('y' * 50_000_000)"
    assert len(ask(program, code).text) == 4_000_000


def test_a_prompt_of_megabytes_goes_to_stdin_unread_or_not(program: Path) -> None:
    assert ask(program, "import sys; print(len(sys.stdin.read()))", prompt="x" * 3_000_000).text > "3000000"
    assert ask(program, "print('did not look')", prompt="x" * 3_000_000).text == "did not look"


@pytest.mark.parametrize("size", [128 * 1024, 3_000_000])
def test_a_prompt_that_is_too_long_for_an_argument_is_refused(program: Path, size: int) -> None:
    with pytest.raises(RequestRefusedError, match=r"leave \{prompt\} out of OBSERVER_MODEL, so that it goes to stdin"):
        ask(program, SHOW, "{prompt}", prompt="x" * size)


def test_a_nul_fits_into_no_argument(program: Path) -> None:
    with pytest.raises(RequestRefusedError, match="stdin"):
        ask(program, SHOW, "{prompt}", prompt="a\0b")
    assert "a\\x00b" in ask(program, SHOW, prompt="a\0b").text


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (
            "import sys; print('one\\ntwo: over quota\\n', file=sys.stderr); sys.exit(3)",
            "ended with code 3: two: over quota",
        ),
        ("import sys; print('not logged in'); sys.exit(1)", "ended with code 1: not logged in"),
        ("import sys; sys.exit(7)", "ended with code 7"),
        ("import os; os.kill(os.getpid(), 9)", "killed by signal 9"),
    ],
)
def test_a_program_that_fails_is_worth_another_try(program: Path, code: str, said: str) -> None:
    with pytest.raises(TransientError) as caught:
        ask(program, code)
    assert str(caught.value) == f"`{sys.executable}`: {said}"


def test_a_key_that_a_program_prints_is_in_no_message(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    with pytest.raises(TransientError) as caught:
        ask(program, "import os, sys; sys.exit('invalid ' + os.environ['ANTHROPIC_API_KEY'])")
    assert str(caught.value).endswith("ended with code 1: invalid ***")


@each(
    ("command", "said"),
    [
        ("no-such-program -p", "names a program, 'no-such-program', that does not exist or cannot be run"),
        ("/no/such/program -p", "that does not exist or cannot be run"),
        ("'unbalanced -p", "cannot be read: No closing quotation"),
    ],
)
def test_a_program_that_is_not_there(command: str, said: str) -> None:
    with pytest.raises(ModelMisconfiguredError, match=said) as caught:
        backend_of(ModelConfig(command)).send(Request(command, "", "Hello?"))
    assert str(caught.value).startswith("OBSERVER_MODEL=")


@each(("mode", "said"), [(0o644, "cannot be run"), (0o755, "cannot be started: Exec format error")])
def test_a_file_that_is_no_program(tmp_path: Path, mode: int, said: str) -> None:
    path = tmp_path / "ask"
    path.write_text("just text")
    path.chmod(mode)
    with pytest.raises(ModelMisconfiguredError, match=said):
        CommandBackend(ModelConfig(f"{path} -p")).send(Request("", "", "Hello?"))


def test_a_program_that_is_named_from_where_we_are_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is run elsewhere, in an empty directory."""
    path = tmp_path / "ask"
    path.write_text("#!/bin/sh\necho found")
    path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert CommandBackend(ModelConfig("./ask -p")).send(Request("", "", "Hello?")).text == "found"


STUBBORN = f"""
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep({SLOW_SECONDS})"])  # ignores what we ignore
open(sys.argv[1], "w").write(f"{{os.getpid()}} {{child.pid}}")
time.sleep({SLOW_SECONDS})
"""


def test_when_the_time_is_up_all_that_it_started_is_killed(program: Path, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    for seconds in (2, 20, 200):  # a busy machine may need long until the program has begun
        with pytest.raises(TransientError, match=rf"no answer within {seconds} s, so it was stopped") as caught:
            ask(program, STUBBORN, str(pids), timeout=seconds)
        assert caught.value.may_be_billed
        if pids.exists() and pids.read_text():
            break
    assert_gone(pids)


def test_a_grandchild_that_keeps_the_output_open_does_not_keep_us_waiting(program: Path, tmp_path: Path) -> None:
    code = f"""
import subprocess
print("answer", flush=True)
left = subprocess.Popen(["sleep", "{SLOW_SECONDS}"], start_new_session=True)
open({str(tmp_path / "pid")!r}, "w").write(str(left.pid))
"""
    assert ask(program, code).text == "answer"
    left = int((tmp_path / "pid").read_text())
    assert is_running(left)
    os.kill(left, signal.SIGKILL)


def test_an_interrupt_kills_the_program(program: Path, tmp_path: Path) -> None:
    program.write_text(STUBBORN)
    pids = tmp_path / "pids"
    main = threading.main_thread().ident
    assert main

    def interrupt() -> None:
        deadline = time.monotonic() + 300
        while not (pids.exists() and pids.read_text()) and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.5)  # until the main thread has left the start of the program, and waits for it
        signal.pthread_kill(main, signal.SIGINT)

    # a process that was started in the background ignores SIGINT, and so would the tests
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            backend_for(program, str(pids), timeout=600).send(Request("", "", "Hello?"))
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert_gone(pids)


def assert_gone(pids: Path) -> None:
    for pid in map(int, pids.read_text().split()):
        deadline = time.monotonic() + 60
        while is_running(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not is_running(pid)


def is_running(pid: int) -> bool:
    """An orphan that nobody has reaped yet runs no more."""
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return bool(state.strip()) and not state.startswith("Z")
