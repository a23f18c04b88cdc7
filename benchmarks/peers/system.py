"""What the systems that are measured have in common: collections of sessions, what came out, venvs and processes."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

QUESTIONS_DEADLINE = 3600
"""Seconds that one process of a peer may take for all questions on a collection."""


@dataclass(frozen=True)
class Collection:
    """The sessions of one person, searched on their own, and the questions on them.

    A message has id, session, said_at, speaker and text; a question has query_id, category, query and gold_sessions.
    """

    dataset: str
    name: str
    messages: Sequence[dict[str, Any]]
    questions: Sequence[dict[str, Any]]

    def sessions(self) -> dict[str, list[dict[str, Any]]]:
        """The messages of each session, in the order of the corpus."""
        found: dict[str, list[dict[str, Any]]] = {}
        for message in self.messages:
            found.setdefault(message["session"], []).append(message)
        return found


@dataclass(frozen=True)
class Ranking:
    """What a system in one of its modes found on one question: sessions, the best first, and the seconds it took."""

    mode: str
    query_id: str
    sessions: list[str]
    seconds: float


@dataclass
class Outcome:
    """What a system made of one collection; times in seconds, `index_bytes` without its copy of the sessions."""

    rankings: list[Ranking] = field(default_factory=list)
    indexing: float = 0.0
    index_bytes: int = 0
    cold: list[float] = field(default_factory=list)
    """One question on the command line, from the start of the process to its end; for those that have one."""


class System(Protocol):
    """A system under measurement."""

    def label(self) -> str:
        """Its name and version."""

    def answer(self, collection: Collection, folder: Path, *, cold: int) -> Outcome:
        """Index the collection in an empty folder, ask all its questions, and `cold` of them on the command line."""


def said_at(text: str) -> datetime:
    """The time of a message in UTC, from ISO or LoCoMo's '1:56 pm on 8 May, 2023'; noon where only a day is known.

    Raises ValueError.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.strptime(text, "%I:%M %p on %d %B, %Y")
    if moment.tzinfo:
        return moment.astimezone(UTC).replace(tzinfo=None)
    return moment.replace(hour=12) if len(text) == len("2025-01-15") else moment


def with_speaker(message: dict[str, Any]) -> str:
    """The text of a message, with the name of who said it where that is a person and no role."""
    named = message["speaker"] not in ("user", "assistant")
    return f"{message['speaker']}: {message['text']}" if named else f"{message['text']}"


def best_first(sessions: Iterable[str]) -> list[str]:
    """Each session once, where its best message or chunk stands."""
    return list(dict.fromkeys(sessions))


def bytes_below(folder: Path, suffixes: tuple[str, ...] = ()) -> int:
    """What the files below the folder take of the disk; those that end with one of the suffixes do not count.

    Blocks, not lengths: an index may reserve files much longer than what it has written of them.
    """
    return sum(
        path.stat().st_blocks * 512
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink() and not path.name.endswith(suffixes)
    )


def environment(home: Path, **variables: str) -> dict[str, str]:
    """What a peer's process sees: an empty home, no network for model hubs, nothing of this machine's settings."""
    home.mkdir(parents=True, exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "OPENBLAS_CORETYPE") if name in os.environ}
    quiet = {"HF_HUB_OFFLINE": "1", "ANONYMIZED_TELEMETRY": "False", "MEM0_TELEMETRY": "False", "DO_NOT_TRACK": "1"}
    return kept | quiet | {"HOME": f"{home}", "TZ": "UTC"} | variables


def ask(python: Path, script: Path, request: dict[str, Any], env: dict[str, str]) -> Iterator[Ranking]:
    """Let a script that runs in the peer's venv ask the questions of the request, and read what it prints.

    The script gets the request as JSON on its standard input, and prints one JSON line per mode and question with
    mode, query_id, sessions and seconds. Raises RuntimeError with the last words of a script that fails.
    """
    done = subprocess.run(
        [f"{python}", "-P", f"{script}"],  # -P: its folder holds modules of the names of packages
        input=json.dumps(request),
        env=env,
        capture_output=True,
        text=True,
        timeout=QUESTIONS_DEADLINE,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{script.name} failed with code {done.returncode}:\n{done.stderr[-2000:]}")
    for line in done.stdout.splitlines():
        if line.startswith('{"mode"'):
            row = json.loads(line)
            yield Ranking(row["mode"], row["query_id"], best_first(row["sessions"]), row["seconds"])


def call(command: Sequence[str | Path], env: dict[str, str], cwd: Path) -> str:
    """What a peer's command prints. Raises RuntimeError with its last words if it fails."""
    done = subprocess.run(
        [f"{part}" for part in command],
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=QUESTIONS_DEADLINE,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} {command[1]} failed:\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def venv(folder: Path, requirements: Sequence[str], *, python: str = sys.executable, loose: Sequence[str] = ()) -> Path:
    """The Python of a venv with the requirements, made if it is not there.

    `loose` are requirements that stand above what the packages themselves demand, which only uv can do. Raises
    CalledProcessError.
    """
    made = folder / "bin/python"
    if (folder / "complete").exists():
        return made
    subprocess.run([python, "-m", "venv", "--clear", f"{folder}"], check=True)
    install = [f"{made}", "-m", "pip", "install", "--quiet", "--no-cache-dir"]
    if loose:
        overrides = folder / "overrides.txt"
        overrides.write_text("\n".join(loose), "utf8")
        subprocess.run([*install, "uv"], check=True)
        install = [f"{made}", "-m", "uv", "pip", "install", "--quiet", "--no-cache", "--system-certs"]
        install += ["--prerelease=allow", "--python", f"{made}", "--override", f"{overrides}"]
    subprocess.run([*install, *requirements], check=True, stdout=sys.stderr)
    (folder / "complete").touch()
    return made


def version_of(python: Path, package: str) -> str:
    """The installed version of a package in the venv of this Python. Raises CalledProcessError."""
    command = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    return subprocess.run([f"{python}", "-c", command], check=True, capture_output=True, text=True).stdout.strip()
