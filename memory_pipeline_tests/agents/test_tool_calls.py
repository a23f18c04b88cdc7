"""What is read of tool calls: commands in shell code as people and agents write it, edited files, errors, checks."""

from __future__ import annotations

import time
from typing import Any

import pytest

from memory_pipeline.agents.kit.tool_calls import (
    command_of_call,
    commands_in,
    files_of_call,
    runs,
    signatures_in,
    violates,
)
from memory_pipeline_tests.cases import each

PUSH = {"kind": "command", "commands": [["git", "push", "--force"]]}
GENERATED = {"kind": "edit", "paths": ["schema.sql", "generated/", "*.lock"]}
STAGING = {"kind": "flag", "commands": [["kubectl"]], "flag": "--context staging"}
RACE = {"kind": "flag", "commands": [["go", "test"]], "flag": "-race"}


@each(
    "text, words",
    [
        ("git push", ["git push"]),
        ("cd a && FOO=1 sudo make -j2 | tail -3", ["cd a", "make -j2", "tail -3"]),
        ("timeout -k 5 30 npm run build > out.txt 2>&1", ["npm run build"]),
        ("bash -lc \"cd x && sh -c 'git push --force'\"", ["cd x", "git push --force"]),
        ("/usr/bin/env python3 -c 'import os; os.remove(1)'", ["python3 -c import os; os.remove(1)"]),
        ('echo "never closed && rm -rf /', ["echo never closed && rm -rf /"]),
        ("cat <<EOF > a.txt\nrm -rf /\nEOF\nls", ["cat", "ls"]),
        ("cat <<'E' > .env && git push\nrm -rf /\nE\nls", ["cat", "git push", "ls"]),
        ("cat <<<word\nrm x", ["cat", "rm x"]),
        ("for f in a b; do rm $f; done; ! make", ["for f in a b", "rm $f", "done", "make"]),
        ("git ls-files | xargs -n 1 sudo -u root rm", ["git ls-files", "rm"]),
        ("# a comment; rm x\nls # rm y", ["ls"]),
        ("echo $(rm x) `rm y`", ["echo $", "rm x", "rm y"]),
        ("./gradlew test", ["gradlew test"]),
        (
            'git commit -m "$(cat <<E\n(rm x)\nE\n) rm y `rm z`"',
            ["git commit -m $(cat <<E\n(rm x)\nE\n) rm y `rm z`", "cat", "rm z"],
        ),
        ("echo \"\\$(rm x)\" '$(rm y)'", ["echo $(rm x) $(rm y)"]),
        ("bash -e <<E\nrm x\nE", ["bash -e", "rm x", "E"]),
        ("bash <<< 'rm x'", ["bash", "rm x"]),
        ("command -v rm && FOO=1 \\\n  rm x", ["command -v rm", "rm x"]),
        ("", []),
        ("\x00\x01 && '", ["\x00\x01"]),
    ],
)
def test_the_commands_of_a_shell_call(text: str, words: list[str]) -> None:
    assert [" ".join(command.words).rstrip() for command in commands_in(text) if any(command.words)] == words


@pytest.mark.slow
def test_shells_within_shells_end() -> None:
    text = "ls"
    for _ in range(30):
        text = f"bash -c {text!r}"
    assert len(list(commands_in(text))) == 1


def test_a_command_of_a_megabyte_takes_no_time() -> None:
    began = time.process_time()
    for text in ("x" * 1_000_000, "'" * 1_000_000, "a;" * 500_000, '"\\' * 500_000, "<<E\n" * 250_000):
        list(commands_in(text))
    assert time.process_time() - began < 5


@each(
    "check, tool, arguments, is_broken",
    [
        (PUSH, "Bash", {"command": "git push origin main --force"}, True),
        (PUSH, "exec_command", {"cmd": "cd a && git push --force"}, True),
        (PUSH, "shell", {"command": ["bash", "-lc", "git push --force"]}, True),
        (PUSH, "Bash", {"command": "git push -f"}, True),
        (PUSH, "Bash", {"command": "git push --force-with-lease"}, False),
        (STAGING, "bash", {"command": "kubectl get pods --context staging"}, False),
        (STAGING, "bash", {"command": "kubectl --context=staging get pods"}, False),
        (STAGING, "bash", {"command": "kubectl --context prod get pods"}, True),
        (PUSH, "Bash", {"command": "git -C /a --no-pager push --force"}, True),
        (PUSH, "Bash", {"command": "git stash push --force"}, False),
        (PUSH, "Bash", {"command": "git commit -m 'push --force'"}, False),
        (PUSH, "Bash", {"command": "echo git push --force"}, False),
        (PUSH, "Read", {"command": "git push --force"}, False),
        (GENERATED, "Edit", {"file_path": "/a/db/schema.sql"}, True),
        (GENERATED, "Write", {"file_path": "/a/generated/x/y.py"}, True),
        (GENERATED, "Bash", {"command": "echo 1 >> generated/y.py"}, True),
        (GENERATED, "Bash", {"command": "sed -i.bak s/a/b/ poetry.lock"}, True),
        (GENERATED, "Bash", {"command": "cp a schema.sql"}, True),
        (GENERATED, "Bash", {"command": "cp schema.sql /tmp/x"}, False),
        (PUSH, "shell", {"command": ["git", "push", "--force"]}, True),
        (PUSH, "Bash", {"command": "cat <<E > x\n" + "a\n" * 10_000 + "E\ngit push -f"}, True),
        (GENERATED, "apply_patch", {"input": "*** Update File: db/schema.sql\n@@\n"}, True),
        (GENERATED, "Bash", {"command": "cat <<E > generated/x\nhi\nE"}, True),
        (GENERATED, "apply_patch", {"input": "*** Update File: a\n*** Move to: generated/b\n"}, True),
        (GENERATED, "Read", {"file_path": "/a/db/schema.sql"}, False),
        (GENERATED, "Bash", {"command": "cat schema.sql > /tmp/x"}, False),
        (GENERATED, "Edit", {"file_path": "/a/db/myschema.sql"}, False),
        (GENERATED, "Edit", {"file_path": 7}, False),
        (RACE, "bash", {"command": "go test ./..."}, True),
        (RACE, "bash", {"command": "go test -race ./..."}, False),
        (RACE, "bash", {"command": "go vet ./..."}, False),
        (RACE, "bash", None, False),
        (RACE, "bash", {"command": "go test \udcff"}, True),
    ],
)
def test_a_call_that_breaks_a_check(check: dict[str, Any], tool: str, arguments: Any, is_broken: bool) -> None:
    assert violates(check, tool, arguments) is is_broken


def test_flags_that_are_written_together() -> None:
    assert runs("rm -fr build", ["rm", "-r", "-f"])
    assert not runs("rm -r build", ["rm", "-r", "-f"])


def test_calls_of_other_tools_have_no_command() -> None:
    assert command_of_call("Read", {"file_path": "x"}) is None
    assert files_of_call("Read", {"file_path": "x"}) == []


def test_the_same_error_of_another_day_has_the_same_signature() -> None:
    one = "\x1b[31mError: connect ECONNREFUSED 127.0.0.1:5432\x1b[0m at /home/a/x.js:12\nnpm ERR! code 1"
    other = "…\nError: connect ECONNREFUSED 127.0.0.1:6543 at /home/b/y.js:99"
    assert len(set(signatures_in(one)) & set(signatures_in(other))) == 1
    assert not set(signatures_in("Error: no such column")) & set(signatures_in(other))
