"""The command as a whole: its help, its version, completion, and that a command is imported when it is called."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import memory_pipeline
from memory_pipeline.cli.commands import (
    ADMIN,
    AGENTS,
    CALLED_BY_PROGRAMS,
    COMMANDS,
    OLD_NAMES,
    REMOVED,
    function_of,
    load_command,
)
from memory_pipeline.cli.main import app
from memory_pipeline_tests.cli.command import memory

NARROW = {"COLUMNS": "80"}
SLOW = ("polars", "duckdb", "dagster", "pydantic", "numpy", "memory_pipeline.settings", "memory_pipeline.cli.status")


@pytest.mark.parametrize("args", [[], ["--help"], ["--version"]], ids=" ".join)
def test_what_names_no_command_imports_none(args: list[str], tmp_path: Path) -> None:
    code = (
        "import atexit, sys; from memory_pipeline.cli.main import main\n"
        f"atexit.register(lambda: print([m for m in {SLOW} if m in sys.modules], file=sys.stderr)); main()"
    )
    env = {"PATH": os.environ["PATH"], "HOME": f"{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", code, *args], env=env, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "[]"
    assert "memory" in done.stdout + done.stderr


def test_the_package_gives_its_public_names_when_they_are_asked_for(tmp_path: Path) -> None:
    code = (
        "import sys, memory_pipeline; assert 'polars' not in sys.modules\n"
        "from memory_pipeline import Lake, Settings, Workspace, search\n"
        "print(*(public.__module__ for public in (Lake, Settings, Workspace, search)), sep='\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "memory_pipeline.lake.store",
        "memory_pipeline.settings.fields",
        "memory_pipeline.workspace.workspace",
        "memory_pipeline.recall.search",
    ]
    assert set(memory_pipeline.__all__) <= set(dir(memory_pipeline))
    with pytest.raises(AttributeError, match="no attribute 'Lakes'"):
        memory_pipeline.Lakes  # noqa: B018


def test_the_version_is_the_packages(tmp_path: Path) -> None:
    assert memory(tmp_path, "--version").stdout == f"memory-pipeline {memory_pipeline.__version__}\n"


def test_the_list_of_commands_says_what_each_command_says_of_itself() -> None:
    wrong = []
    for name, summary in (COMMANDS | AGENTS | ADMIN).items():
        told = inspect.getdoc(function_of(name)) or ""
        if told.splitlines()[0] != summary or load_command(name).name != name:
            wrong.append((name, told))
    assert wrong == []


def test_the_list_of_commands_cuts_no_line() -> None:
    listed = CliRunner(env=NARROW).invoke(app, ["--help"]).stdout
    for name, summary in COMMANDS.items():
        assert [line.split() for line in listed.splitlines() if line.split()[:1] == [name]] == [
            [name, *summary.split()]
        ]


def test_help_fits_a_narrow_terminal_and_names_no_type_of_a_flag() -> None:
    named = [*COMMANDS, *(f"agents {name}" for name in AGENTS), *(f"admin {name}" for name in ADMIN)]
    for args in ([], *(name.split() for name in named)):
        done = CliRunner(env=NARROW).invoke(app, [*args, "--help"], prog_name="memory")
        assert done.exit_code == 0, args
        assert done.stdout.startswith(f"Usage: {' '.join(['memory', *args])} ")
        assert max(map(len, done.stdout.splitlines())) <= 80, args
        text = done.stdout.replace("[ARGS]...", "").replace("{QUERY}...", "")
        assert "<bool>" not in text and "..." not in text, args


def test_an_old_name_calls_the_new_command_and_is_not_listed() -> None:
    listed = CliRunner(env=NARROW).invoke(app, ["--help"]).stdout
    for old, new in OLD_NAMES.items():
        asked, done = (CliRunner(env=NARROW).invoke(app, [*words, "--help"]) for words in (new.split(), [old]))
        assert done.stdout == asked.stdout and done.exit_code == 0
        note = f"`memory {old}` is now `memory {new}`; the next release drops the old name.\n"
        assert done.stderr == ("" if old in CALLED_BY_PROGRAMS else note)
        assert f"  {old} " not in listed


def test_old_names_take_their_old_arguments(tmp_path: Path) -> None:
    cases = {
        ("compaction", "--seconds=1", "--json", "--", "nowhere"): (0, "No summary: "),
        ("pack", "--session", "nowhere"): (1, "nowhere"),
        ("brief", "--project", f"{tmp_path}"): (0, "Nothing is remembered"),
    }
    for args, (code, said) in cases.items():
        done = memory(tmp_path, *args)
        assert (done.returncode, done.stdout) == (code, ""), args
        assert said in done.stderr.splitlines()[-1]


def test_a_wrong_call_exits_with_2_and_another_failure_with_1(tmp_path: Path) -> None:
    for args, code in ((("sql", "DROP TABLE messages"), 2), (("why", "o-nowhere"), 1)):
        done = memory(tmp_path, *args)
        assert (done.returncode, done.stderr.count("\n") > 0, "Traceback" in done.stderr) == (code, True, False), args


def test_a_removed_command_says_what_to_use_instead() -> None:
    for name, sentence in REMOVED.items():
        for args in ([name], ["admin", name], ["admin", name, "--yes"]):
            done = CliRunner(env=NARROW).invoke(app, args)
            assert (done.exit_code, done.stdout, done.stderr) == (2, "", f"{sentence}\n"), args


def test_a_form_of_the_context_is_named_once(tmp_path: Path) -> None:
    for args in (["--pack", "--compaction", "s"], ["--compaction"], ["some-session"]):
        done = memory(tmp_path, "context", *args)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1


def test_a_command_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    done = memory(tmp_path, "statu")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "Error: No such command 'statu'. Did you mean 'status', 'setup'?"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    """With the script that the command prints, as bash calls it."""
    program = tmp_path / "memory"
    program.write_text(f"#!{sys.executable}\nfrom memory_pipeline.cli.main import main\nmain()\n")
    program.chmod(0o755)
    typed = {"memory re": ["review", "remember", "recall"], "memory show --h": ["--high", "--help"]}
    script = 'eval "$(memory --show-completion bash)"\n'
    for words in map(str.split, typed):
        script += f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _memory_completion memory; "
        script += 'echo "${COMPREPLY[@]}"\n'
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": f"{tmp_path}"}
    done = subprocess.run(["bash", "--norc", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert [line.split() for line in done.stdout.splitlines()] == [*typed.values()]


def test_a_port_that_there_cannot_be_is_a_misuse(tmp_path: Path) -> None:
    for command in ("ui", "open"):
        done = memory(tmp_path, command, "--port", "80000")
        assert (done.returncode, "65535" in done.stderr, "Traceback" in done.stderr) == (2, True, False), command
