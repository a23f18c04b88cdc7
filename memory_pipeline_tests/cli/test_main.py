"""The command as a whole: its help, its version, completion, and that a command is imported when it is called."""

from __future__ import annotations

import inspect
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

import memory_pipeline
from memory_pipeline.cli.main import COMMANDS, MODULES, app, load_command
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
        "from memory_pipeline import Lake, Settings; print(Lake.__module__, Settings.__module__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "memory_pipeline.lake.store memory_pipeline.settings\n"
    assert set(memory_pipeline.__all__) <= set(dir(memory_pipeline))
    with pytest.raises(AttributeError, match="no attribute 'Lakes'"):
        memory_pipeline.Lakes  # noqa: B018


def test_the_version_is_the_packages(tmp_path: Path) -> None:
    assert memory(tmp_path, "--version").stdout == f"memory-pipeline {memory_pipeline.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_command_says_of_itself(name: str) -> None:
    own = MODULES.get(name, name)
    target = getattr(import_module(f"memory_pipeline.cli.{own}"), own)
    told = target.info.help if isinstance(target, typer.Typer) else inspect.getdoc(target)
    assert told.splitlines()[0] == COMMANDS[name]
    assert load_command(name).name == name


def test_the_list_of_commands_cuts_no_line() -> None:
    listed = CliRunner(env=NARROW).invoke(app, ["--help"]).stdout
    for name, summary in COMMANDS.items():
        assert [line.split() for line in listed.splitlines() if line.split()[:1] == [name]] == [
            [name, *summary.split()]
        ]


@pytest.mark.parametrize("args", [["--help"], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_help_fits_a_narrow_terminal_and_names_no_type_of_a_flag(args: list[str]) -> None:
    done = CliRunner(env=NARROW).invoke(app, args, prog_name="memory")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"Usage: {' '.join(['memory', *args[:-1]])} ")
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "<bool>" not in done.stdout and "..." not in done.stdout.replace("[ARGS]...", "").replace("{QUERY}...", "")


def test_a_command_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    done = memory(tmp_path, "statu")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "Error: No such command 'statu'. Did you mean 'status', 'estimate', 'setup'?"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("memory re", ["review", "recall", "remember", "report"]),
        ("memory log --h", ["--high", "--help"]),
        ("memory sta", ["status"]),
    ],
)
def test_bash_completes_commands_and_options(typed: str, offered: list[str], tmp_path: Path) -> None:
    """With the script that the command prints, as bash calls it."""
    program = tmp_path / "memory"
    program.write_text(f"#!{sys.executable}\nfrom memory_pipeline.cli.main import main\nmain()\n")
    program.chmod(0o755)
    words = typed.split()
    script = (
        'eval "$(memory --show-completion bash)"; '
        f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _memory_completion memory; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": f"{tmp_path}"}
    done = subprocess.run(["bash", "--norc", "-c", script], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == offered
