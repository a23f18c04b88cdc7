"""Runs on disks that are full or fill up, and whether anything is lost or ends without a word.

    python -m benchmarks.full_disk [--points N]

Each point is a small disk of its own (a tmpfs, so it needs root on Linux) with a workspace over one bundled session.
Half of the disks are nearly full from the beginning; on the others there is room, and a balloon takes it all at a
moment of the run, chosen evenly over the time that a whole run takes. Every other one asks an observer and a reflector
on loopback, which may not be asked again for an answer that is kept. Then the disk is made large, and `memory run` is
called again. A point is good when the first run ended well or with a sentence that says that the disk is full (and no
trace), and the second one ends well with the tables of a run that never met a full disk. Where a library writes into a
mapped file, the system ends the process with a signal (SIGBUS) that nobody can answer; the sentence counts there, too,
and how many ended so is told.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import EXAMPLES, ROOT, parser
from memory_pipeline_tests.cli.test_model import both, environment
from memory_pipeline_tests.llm.openai_server import OpenAIServer, openai_server

SMALL, LARGE = 4, 600
"""Megabytes of a disk that is full at once, and of one with room."""


def main() -> None:
    options = parser("full_disk", __doc__)
    options.add_argument("--points", type=int, default=50)
    points = options.parse_args().points
    if os.geteuid() != 0 or not shutil.which("mount"):
        sys.exit("Not run: it mounts small disks, which needs root on Linux.")
    with tempfile.TemporaryDirectory() as folder, openai_server(both) as server:
        sessions = Path(folder) / "sessions"
        sessions.mkdir()
        shutil.copy(min((EXAMPLES / "codex").iterdir()), sessions)
        wholes = [Whole.made(Path(folder), sessions, model) for model in (None, server)]
        bad = [point(Path(folder), sessions, number, points, wholes[number % 2]) for number in range(points)]
    kinds = ("without a word", "unequal", "asked again")
    silent, lost, twice = (sum(kind in each for each, _ in bad) for kind in kinds)
    print(f"\n{points} points: {silent} ended without a sentence, {lost} lost something, {twice} asked again for what")
    print(f"was kept; {sum(code < 0 for _, code in bad)} ended by a signal")
    sys.exit(1 if silent or lost or twice else 0)


@dataclass(frozen=True)
class Whole:
    """A run that never met a full disk."""

    model: OpenAIServer | None
    seconds: float
    tables: dict[str, int]

    @classmethod
    def made(cls, folder: Path, sessions: Path, model: OpenAIServer | None) -> Whole:
        workspace, began = folder / f"whole-{model is not None}", time.monotonic()
        done = run(sessions, workspace, model)
        if done.returncode:
            sys.exit(f"The run that is to be compared with failed:\n{done.stderr}")
        return cls(model, time.monotonic() - began, tables(workspace))


def point(folder: Path, sessions: Path, number: int, points: int, whole: Whole) -> tuple[str, int]:
    """What was wrong there ("" when nothing was) and the exit code of the first run, both printed."""
    model, seconds = whole.model, whole.seconds
    is_small = number < points // 2
    moment = seconds * (number - points // 2 + 0.5) / (points - points // 2)
    disk = folder / f"disk-{number}"
    disk.mkdir()
    size = SMALL * (number + 1) if is_small else LARGE
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}m", "tmpfs", disk], check=True)
    try:
        balloon = None if is_small else (disk / "balloon", moment)
        first = run(sessions, disk / "workspace", model, balloon=balloon)
        (disk / "balloon").unlink(missing_ok=True)
        subprocess.run(["mount", "-o", f"remount,size={LARGE}m", disk], check=True)
        kept = len(list((disk / "workspace" / "answers").rglob("*.json")))
        asked = len(model.requests) if model else 0
        second = run(sessions, disk / "workspace", model)
        says = [line for line in first.stderr.splitlines() if "is full" in line]
        wrong = []
        if (first.returncode and not says) or "Traceback" in first.stderr:
            wrong.append("without a word")
        if second.returncode or tables(disk / "workspace") != whole.tables:
            wrong.append("unequal")
        answers = len(list((disk / "workspace" / "answers").rglob("*.json")))
        if model and len(model.requests) - asked > answers - kept:
            wrong.append("asked again")
        state = f"{size} MB" if is_small else f"full after {moment:.1f} s"
        state += ", model" if model else ""
        print(f"{state:<27} ended with {first.returncode}  {' and '.join(wrong) or 'good'}", flush=True)
        if wrong:
            print(*first.stderr.splitlines()[-4:], *second.stderr.splitlines()[-2:], sep="\n", flush=True)
        return " ".join(wrong), first.returncode
    finally:
        subprocess.run(["umount", disk], check=True)


def run(
    sessions: Path, workspace: Path, model: OpenAIServer | None, *, balloon: tuple[Path, float] | None = None
) -> subprocess.CompletedProcess[str]:
    """`memory run` over all days; the balloon is a file that takes all room after so many seconds."""
    command = [sys.executable, "-m", "memory_pipeline.cli.main", "run", "--all", "--sessions", f"{sessions}"]
    env = {"PATH": os.environ["PATH"], "HOME": f"{workspace.parent}", "TZ": "UTC", "MEMORY_WORKSPACE": f"{workspace}"}
    if model:
        env |= environment(model, REFLECTOR_MODEL="openai:other", REFLECTOR_BASE_URL=model.url, REFLECTOR_PRICE="1/3")
        env |= {"OBSERVER_PRICE": "1/3", "MEMORY_DAILY_BUDGET_USD": "50"}
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        if balloon:
            time.sleep(balloon[1])
            blow_up(balloon[0])
        out, err = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def blow_up(path: Path) -> None:
    """Write until the disk has no byte left."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def tables(workspace: Path) -> dict[str, int]:
    """Rows of each table that a second run must have made good."""
    import polars as pl

    names = ("sessions", "messages", "windows", "segments", "observations", "embeddings", "reflections", "proposals")
    return {
        name: sum(pl.read_parquet(file).height for file in (workspace / "lake" / name).glob("*.parquet"))
        for name in names
    }


if __name__ == "__main__":
    main()
