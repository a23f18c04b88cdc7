"""Calls with what came of them, whatever harness wrote them down."""

import time

from memory_pipeline.agents.kit.tool_calls import signature
from memory_pipeline.friction.attempts import (
    Attempt,
    attempts,
    canonical_name,
    command_in,
    only_reads,
)
from memory_pipeline.friction.errors import error_in, hidden_error
from memory_pipeline_tests.cases import each
from memory_pipeline_tests.friction.made import turns


def only(*lines: str) -> Attempt:
    (attempt,) = attempts(turns(*lines))
    return attempt


def test_a_result_belongs_to_the_oldest_call_of_its_tool_that_has_none() -> None:
    made = attempts(
        turns(
            "call: Bash(command=make lint)",
            "call: Bash(command=make test)",
            "call: Read(file_path=/src/a.py)",
            "result Bash: lint is fine",
            "fails Bash: 2 failed",
            "result Read: import os",
        )
    )
    assert [(a.head, a.result.text) for a in made] == [
        ("make lint", "lint is fine"),
        ("make test", "2 failed"),
        ("Read", "import os"),
    ]
    assert [(a.position, a.ended) for a in made] == [(0, 3), (1, 4), (2, 5)]


def test_a_call_without_a_result_has_itself_for_one_and_did_not_fail() -> None:
    made = only("call: Bash(command=sleep 100)", "user: Stop.")
    assert made.call == made.result
    assert not made.has_failed


def test_a_result_without_a_call_is_an_attempt_of_its_own() -> None:
    made = only("fails Bash: permission denied")
    assert (made.position, made.ended, made.has_failed) == (0, 0, True)


@each(
    ("call", "command"),
    [
        ("Bash(command=git push, description=Push it)", "git push"),  # Claude Code
        ("exec_command(cmd=git push, workdir=/src/kiln, yield_time_ms=1000)", "git push"),  # Codex
        ('shell(command=["bash","-lc","git push"], timeout_ms=1000)', "git push"),
        ("run_shell_command(command=git push, description=Push, dir_path=/src)", "git push"),  # Gemini
        ("bash(command=git push, timeout=120)", "git push"),  # pi, OpenCode
        ("Bash(command=echo a, b && git push)", "echo a, b && git push"),
        ('exec(await tools.exec_command({"cmd":"git push","yield_time_ms":1000}))', "git push"),
        ('shell(command=["bash","-lc","git pu', "git pu"),  # it was cut
        ('shell(command=["bash","-lc","echo \\"a\\" > b', 'echo \\"a\\" > b'),
        ("Bash(command=cat > a.py <<'EOF'\nimport (", "cat > a.py <<'EOF'\nimport ("),
        ("Read(file_path=/src/a.py)", None),
        ("Grep(pattern=command, path=/src)", None),
        ("", None),
    ],
)
def test_what_a_shell_was_given(call: str, command: str | None) -> None:
    assert command_in(call) == command


@each(
    ("command", "head"),
    [
        ("npm run build", "npm run build"),
        ("npm test -- --watch=false", "npm test"),
        ("cd /src/kiln && CI=1 pytest -x tests/unit", "pytest"),
        ("git push --force origin main", "git push"),
        ("git -C /src/kiln push", "git"),
        ("sudo apt-get install -y jq", "apt-get install"),
        ("timeout 60 make test", "make test"),
        ("/usr/local/bin/terraform plan -out x", "terraform plan"),
        ("python3 -m pytest -q", "python3 -m pytest"),
        ("docker compose up -d", "docker compose up"),
        ("export A=1; ruff check .", "ruff"),
        ("cat > a.py <<'EOF'\nimport git\ngit push\nEOF", "cat >"),
        ("cat <<'EOF' | psql\nselect 1;\nEOF", "cat"),
        ("echo 'half of a", "echo 'half of a"),
        ("cat log.txt 2>/dev/null | head", "cat"),
        ("# first the tests\nfor f in a b; do pytest $f; done", "pytest"),
        ("bash -lc 'cd /src && npm run build'", "npm run build"),
    ],
)
def test_what_was_run_as_people_name_it(command: str, head: str) -> None:
    assert only(f"call: Bash(command={command})", "result: ok").head == head


@each(
    ("output", "line"),
    [
        ("ok 1\nok 2\nError: listen EADDRINUSE: address already in use :::3000\nbye", "Error: listen EADDRINUSE: "
         "address already in use :::3000"),
        (
            'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n'
            "    import yaml\nModuleNotFoundError: No module named 'yaml'",
            "ModuleNotFoundError: No module named 'yaml'",
        ),
        ("Exit code 1\n\x1b[31merror: no such command 'biuld'\x1b[0m", "error: no such command 'biuld'"),
        (
            "Chunk ID: 1f\nWall time: 0.1 seconds\nProcess exited with code 127\nOutput:\nzsh:1: command not found: rg",
            "zsh:1: command not found: rg",
        ),  # Codex: the wrapper is no evidence
        ('{"output":"fatal: not a git repository\\nbye","metadata":{"exit_code":128}}', "fatal: not a git repository"),
        ("<tool_use_error>File has not been read yet, cannot edit</tool_use_error>", "File has not been read yet, "
         "cannot edit"),
        ("npm ERR! code ELIFECYCLE\nnpm ERR! missing script: biuld", "npm ERR! missing script: biuld"),
        ("Datei oder Verzeichnis nicht gefunden", "Datei oder Verzeichnis nicht gefunden"),  # alone, in any language
        ("Exit code 1", None),  # that it failed, not what
        ("", None),
        (" \n\n", None),
        ("\x00\x00\x00", None),
        ("‮‮⁦⁩\n———", None),
    ],
)  # fmt: skip
def test_the_line_that_tells_what_went_wrong(output: str, line: str | None) -> None:
    assert error_in(output) == line


@each(
    ("output", "complaint"),
    [
        ("bash: line 1: rg: command not found", "bash: line 1: rg: command not found"),
        ("(eval):1: no matches found: *.test.ts", "(eval):1: no matches found: *.test.ts"),
        ("a.py\nfind: ‘/srv/x’: No such file or directory", "find: ‘/srv/x’: No such file or directory"),
        ("the docs say: command not found means that it is missing", None),
        ("line\n" * 1_000 + "bash: rg: command not found", None),  # a long output is about something else
        ("all 12 tests passed", None),
    ],
)
def test_a_shell_tells_of_an_error_that_a_pipe_hid(output: str, complaint: str | None) -> None:
    assert hidden_error(output) == complaint
    made = only("call: Bash(command=rg x | head)", f"result: {output}")
    assert made.has_failed is (complaint is not None)
    assert not only("call: Read(file_path=notes.md)", f"result: {output}").has_failed  # a text that quotes it


GO_FAILS = "--- FAIL: TestOven (0.01s)\n    oven_test.go:7: too cold\nFAIL\nFAIL\tkiln/oven\t0.2s"


@each(
    ("call", "output", "has_failed"),
    [
        ("Bash(command=go test ./... 2>&1 | tail -20)", GO_FAILS, True),
        ("Bash(command=pytest -q || true)", "FAILED tests/test_oven.py::test_hot - assert 3 == 4", True),
        ("Bash(command=pytest -q | tail -2)", "=== 2 failed, 7 passed in 0.31s ===", True),
        ("Bash(command=pytest -q | tail -2)", "=== 9 passed in 0.31s ===", False),
        ("Bash(command=npm run build; echo done)", "src/oven.ts(3,5): error TS2304: Cannot find name 'hot'.", True),
        ("Bash(command=make 2>&1 | grep -v note)", "oven.c:3:5: error: 'hot' undeclared", True),
        ("Bash(command=golangci-lint run | head)", "2 issues:\n* errcheck: 2", True),
        ("Bash(command=golangci-lint run | head)", "0 issues.", False),
        ("Bash(command=npx jest | tail -3)", "Tests:       0 failed, 12 passed, 12 total", False),
        ('exec(const r = await tools.exec_command({cmd: "cargo check"}))', "error[E0433]: no crate `uuid`", True),
        ("Bash(command=go test ./...)", GO_FAILS, False),  # its own exit code says that it went well
        ("Bash(command=grep -c 'a|b' log.txt)", GO_FAILS, False),
        ("Bash(command=gh run view 7 --log-failed | tail -20)", GO_FAILS, False),  # shows what failed elsewhere
        ("Bash(command=cat ci.log | tail -20)", GO_FAILS, False),
        ("Bash(command=git log -3 | head)", GO_FAILS, False),
        ("Bash(command=echo 'half | tail)", GO_FAILS, False),
        ("Read(file_path=ci.log)", GO_FAILS, False),
    ],
)
def test_a_test_runner_or_a_compiler_tells_of_a_failure_that_something_hid(
    call: str, output: str, has_failed: bool
) -> None:
    assert only(f"call: {call}", f"result: {output}").has_failed is has_failed


def test_a_call_that_was_stopped_takes_no_result_of_a_later_one() -> None:
    made = attempts(
        turns(
            "call: bash(command=sleep 100)",
            "user: stop that",
            "user: and go on",
            "call: bash(command=make)",
            "result: made",
            "call: bash(command=ls)",
            "result: a.py",
        )
    )
    assert [(a.command, a.result.text) for a in made if a.result is not a.call] == [("make", "made"), ("ls", "a.py")]


@each(
    "text",
    [
        "The user doesn't want to proceed with this tool use.",
        "[Request interrupted by user for tool use]\nError: stopped",
        "Command rejected by user",
        "Error: sibling tool call errored",
        "aborted by user after 12 s",
    ],
)
def test_what_somebody_stopped_did_not_fail(text: str) -> None:
    assert not only("call: Bash(command=make)", f"fails: {text}").has_failed


def test_a_refused_call_is_refused_and_did_not_fail() -> None:
    made = only("call: Bash(command=git push)", "refused: no, not to main")
    assert (made.is_refused, made.has_failed) == (True, False)


@each(
    ("one", "other"),
    [
        ("port 8080 already in use", "port 3000 already in use"),
        ("no such file: /tmp/a/b.txt", "no such file: /home/ann/c.py"),
        ("object at 0x7f1b481dcdd0 failed", "object at 0x7fcb2655acb0 failed"),
        ("commit deadbeef01 not found", "commit 0123456789abcdef not found"),
        ("took 1.5 s, failed", "took 12.75 s, failed"),
        ("Error: EXIT", "error:   exit"),
        ("a.py:1:2: F401 `os` imported but unused", "src/b.py:30:9: F401 `re` imported but unused"),
        ("src/a.ts(3,4): error TS2345: Argument", "src/b.ts(9,1): error TS2345: Other argument"),
        ("zsh: no matches found: src/*.ts", "zsh: no matches found: test[1].py"),
        ("at 2025-03-05T09:00:00Z it timed out", "at 2025-03-04 10:00:01 it timed out"),
    ],
)
def test_errors_that_differ_in_what_changes_from_time_to_time_are_one(one: str, other: str) -> None:
    assert signature(one) == signature(other)


@each(
    ("one", "other"),
    [
        ("permission denied", "connection refused"),
        ("error: exit", "error: killed"),
        ("F401 imported but unused", "E501 line too long"),
        ("Datei nicht gefunden", "Zugriff verweigert"),
    ],
)
def test_other_errors_are_others(one: str, other: str) -> None:
    assert signature(one) != signature(other)


@each(
    ("head", "name"),
    [
        ("Edit", "the edit tool"),
        ("apply_patch", "the edit tool"),
        ("write_file", "the edit tool"),
        ("git push", "git push"),
    ],
)
def test_the_edit_tool_of_every_harness_has_one_name(head: str, name: str) -> None:
    assert canonical_name(head) == name


@each(
    ("head", "looks"),
    [("Read", True), ("rg", True), ("git log", True), ("git push", False), ("make test", False), ("git logs", False)],
)
def test_what_only_reads(head: str, looks: bool) -> None:
    assert only_reads(head) is looks


def test_the_file_and_the_words_of_a_call() -> None:
    read = only("call: Read(file_path=/src/kiln/docs/fire.md, limit=20)", "result: x")
    assert read.path == "docs/fire.md"
    about = only("call: Bash(command=ruff check --fix src/kiln/oven.py)", "result: x").subject
    assert {"check", "src/kiln/oven.py", "oven", "kiln"} <= about
    assert not {"ruff", "--fix", "fix"} & about


STRANGE = (
    "error " * 33_334,
    "/" * 200_000,
    "a/" * 100_000,
    "1.2:3," * 33_334,
    "\x1b[31m" * 40_000,
    "'" * 200_000,
    "error: \x00\x00‮ not found",
    "<<EOF\n" * 30_000,
    "word, " * 33_334,
    "x" * 200_000,
    "error: " + "не найдено " * 18_000,
    "错误：找不到文件。" * 20_000,
)


@each("text", STRANGE, ids=lambda text: repr(text[:9]))
def test_a_huge_or_strange_text_takes_no_time(text: str) -> None:
    began = time.process_time()
    made = attempts(turns(f"call: Bash(command={text[:6_000]})", f"fails: {text}"))
    for attempt in made:
        line = error_in(attempt.result.text)
        assert len(attempt.head) <= 60
        assert len(signature(line or "")) <= 200
        assert isinstance(attempt.subject, frozenset)
    assert time.process_time() - began < 20  # seconds, of a machine that has little to give


@each("tool", ["", " "])
def test_a_tool_without_a_name_is_called_a_tool(tool: str) -> None:
    (call,) = turns("fails: Error: it broke")
    assert call._replace(tool=tool).head == "a tool"


@each("written", ["echo \\x41", "it\\'s", "a\nb"])
def test_a_script_may_write_its_command_as_json_cannot(written: str) -> None:
    assert command_in(f'exec(const r = await tools.exec_command({{"cmd":"{written}"}}))') == written
