"""`memory team run`: the memory of many people, each made in a process with their own lake and keys.

A folder holds the workspace of each person under their name, with a file `lake.env` of lines NAME=VALUE: MEMORY_LAKE
and the credentials for it. A run has the variables of its person alone, so nobody's rows meet another's.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from memory_pipeline.cli.console import INTERRUPTED, err, say

FILE = "lake.env"
_NOT_INHERITED = ("MEMORY_LAKE", "MEMORY_OWNER", "MEMORY_SESSION_DIRS", "MEMORY_WORKSPACE")
"""What would be the same for all."""


@dataclass(frozen=True)
class Person:
    """Somebody whose memory is made: their workspace, and the variables of their file."""

    workspace: Path
    variables: Mapping[str, str] = field(repr=False, default_factory=dict)
    problem: str = ""
    """A sentence, where the file says no lake."""

    @property
    def name(self) -> str:
        return self.workspace.name

    @property
    def environment(self) -> dict[str, str]:
        """Of their run: no sessions of this machine, which are somebody else's."""
        inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
        own = {"MEMORY_OWNER": self.name, "MEMORY_DEFAULT_SESSION_DIRS": "false"} | dict(self.variables)
        return inherited | own | {"MEMORY_WORKSPACE": f"{self.workspace}"}


def people_in(folder: Path) -> list[Person]:
    """By the folders in it, in the order of their names."""
    workspaces = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return [_person(path.absolute()) for path in workspaces]


def shared_lakes(people: Sequence[Person]) -> list[str]:
    """Who would get the memory of one another, as a sentence for each lake."""
    owners = defaultdict[str, list[str]](list)
    for person in people:
        if not person.problem:
            owners[person.variables["MEMORY_LAKE"].rstrip("/")].append(person.name)
    return [
        f"{' and '.join(names)} have the same lake {lake}: each person needs one of their own."
        for lake, names in owners.items()
        if len(names) > 1
    ]


def run_each(people: Sequence[Person], everything: bool, workers: int = 1) -> dict[str, str]:
    """Run for each of them, so many at a time, whatever becomes of the others; who failed, with the reason.

    Raises KeyboardInterrupt, after each that was under way has been told to stop, and has.
    """
    under_way: set[subprocess.Popen[str]] = set()

    def failure_of(person: Person) -> str:
        return person.problem or _run(person, everything, under_way)

    with ThreadPoolExecutor(workers) as pool:
        try:
            failures = list(pool.map(failure_of, people))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in [*under_way]:
                process.send_signal(signal.SIGINT)
            raise
    return {person.name: failure for person, failure in zip(people, failures, strict=True) if failure}


def _run(person: Person, everything: bool, under_way: set[subprocess.Popen[str]]) -> str:
    """The last that it said where it failed, else nothing. It finds its modules without the current folder, and hears
    of Ctrl-C from here alone: a second one would end it without a word."""
    command = [sys.executable, "-P", "-m", "memory_pipeline.cli.main", "run", "--no-review"]
    last = ""
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as printed,
        subprocess.Popen(
            [*command, *(["--all"] if everything else [])],
            env=person.environment,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process,
    ):
        under_way.add(process)
        assert process.stderr
        for line in filter(str.strip, process.stderr):
            err.print(f"{person.name}: {line.rstrip()}", soft_wrap=True, style="dim", markup=False)
            last = line.strip()
        code = process.wait()
        under_way.discard(process)
        printed.seek(0)
        say(f"{person.name}\n{printed.read()}".rstrip())
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return (last or f"it ended with code {code}") if code else ""


def _person(workspace: Path) -> Person:
    path = workspace / FILE
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return Person(workspace, problem=f"There is no {path}: expected MEMORY_LAKE and its credentials in it.")
    except (OSError, UnicodeDecodeError):
        return Person(workspace, problem=f"{path} cannot be read: expected lines NAME=VALUE in UTF-8.")
    found = {}
    for number, line in enumerate(map(str.strip, lines), 1):
        name, equals, value = map(str.strip, line.partition("="))
        if not line or line.startswith("#"):
            continue
        if not equals or not name.isidentifier():  # what stands there may be a secret, and is not shown
            return Person(workspace, problem=f"Line {number} of {path} is not NAME=VALUE: fix it.")
        found[name] = value
    if "://" not in found.get("MEMORY_LAKE", ""):
        return Person(workspace, problem=f"{path} has no MEMORY_LAKE: expected one like s3://bucket/{workspace.name}.")
    return Person(workspace, found)
