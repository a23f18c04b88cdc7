"""How fast sessions are read, what redaction costs, and whether time and memory keep in step with the amount.

    python -m benchmarks.reading FIXTURES [MEGABYTES ...]

First, for each harness (the directories in FIXTURES): MB/s of reading with and without redaction, beside the floor,
`orjson.loads` over the same lines and nothing else. Each figure is the best of several rounds, taken in turns.
Then, for each amount: the fixtures repeated with new ids until there are so many MB, read by the sessions stage into
its tables in a process of its own: seconds, MB/s and peak memory, beside the same process doing nothing but the floor.
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from benchmarks.common import ROOT, parser
from memory_pipeline.workspace.workspace import Workspace

ROUNDS = 5
IDS = ("id", "parentId", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "leafUuid", "firstKeptEntryId")


def lines_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file


def floor(files: list[Path]) -> None:
    for path in files:
        for line in lines_of(path):
            try:
                orjson.loads(line)
            except orjson.JSONDecodeError:
                continue


def throughput(fixtures: Path) -> None:
    from memory_pipeline.harnesses.model import NotASessionError
    from memory_pipeline.redaction import Redactor
    from memory_pipeline.redaction.redactor import Unredacted
    from memory_pipeline.sessions.reading import parse_file

    def reading(redactor: Redactor) -> Callable[[list[Path]], None]:
        def read(files: list[Path]) -> None:
            for path in files:
                try:
                    parse_file(path, redactor=redactor)
                except NotASessionError as error:
                    print(f"  {path}: {error}")

        return read

    ways = {"orjson": floor, "plain": reading(Unredacted()), "redacted": reading(Redactor(b"salt"))}
    print(f"{'MB/s':<16}{'MB':>8}{'orjson':>10}{'plain':>10}{'redacted':>10}{'plain/orjson':>14}{'redacted/plain':>16}")
    total = dict.fromkeys(ways, 0.0)
    everything = 0.0
    for folder in sorted(path for path in fixtures.iterdir() if path.is_dir()):
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        size = sum(path.stat().st_size for path in files) / 1e6
        best = dict.fromkeys(ways, float("inf"))
        for _ in range(ROUNDS):
            for name, way in ways.items():
                start = time.perf_counter()
                way(files)
                best[name] = min(best[name], time.perf_counter() - start)
        print_row(folder.name, size, best)
        everything += size
        for name in ways:
            total[name] += best[name]
    print_row("all", everything, total)


def print_row(name: str, size: float, seconds: dict[str, float]) -> None:
    speeds = "".join(f"{size / taken:>10.0f}" for taken in seconds.values())
    plain, redacted = seconds["plain"], seconds["redacted"]
    print(f"{name:<16}{size:>8.1f}{speeds}{seconds['orjson'] / plain:>14.2f}{redacted / plain:>14.2f} ×")


def renewed(line: bytes, number: int) -> bytes:
    """The record with ids of its own; a damaged line as it is."""
    try:
        record: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        return line
    if not isinstance(record, dict):
        return line
    payload = record.get("payload")
    for part in (record, payload if record.get("type") == "session_meta" else None):
        if isinstance(part, dict):
            part.update({key: f"{part[key]}-{number}" for key in IDS if isinstance(part.get(key), str)})
    return orjson.dumps(record) + b"\n"


def repeat(fixtures: Path, target: Path, megabytes: int) -> tuple[int, float]:
    """Files written and their size in MB."""
    files = sorted(path for path in fixtures.rglob("*.jsonl"))
    written = count = number = 0
    while written < megabytes * 1e6:
        number += 1
        for path in files:
            copy = target / str(number) / path.name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(b"".join(renewed(line, number) for line in lines_of(path)))
            written += copy.stat().st_size
            count += 1
            if written >= megabytes * 1e6:
                break
    return count, written / 1e6


def read_everything(root: Path, workspace: Path) -> None:
    """What a first run does before it observes: the catalogue, then the tables of every day."""
    from memory_pipeline.lake.store import Lake
    from memory_pipeline.sessions.catalogue import Catalogue
    from memory_pipeline.sessions.stage import SessionsStage
    from memory_pipeline.settings import Settings
    from memory_pipeline.stages import bring_up_to_date

    settings = Settings(workspace=workspace, timezone="UTC", session_dirs=(root,), default_session_dirs=False)
    lake = Lake.from_settings(settings)
    stage = SessionsStage(Workspace(settings, lake), Catalogue(lake, settings), datetime.now(UTC))
    stage.look()
    for day in stage.catalogue.days():
        bring_up_to_date(stage, lake, day)


def child(way: str, root: Path) -> None:
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as workspace:
        floor(sorted(root.rglob("*.jsonl"))) if way == "floor" else read_everything(root, Path(workspace))
    print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def measured(way: str, root: Path) -> tuple[float, float]:
    """Seconds and peak MB of a process of its own."""
    with tempfile.TemporaryDirectory() as home:
        output = subprocess.run(
            [sys.executable, "-m", "benchmarks.reading", str(root), "--child", way],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "HOME": home},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    seconds, megabytes = output.split()[-2:]
    return float(seconds), float(megabytes)


def amounts(fixtures: Path, sizes: list[int]) -> None:
    print(f"\n{'amount':<12}{'files':>7}{'floor s':>9}{'floor MB':>10}{'tables s':>10}{'MB/s':>7}{'peak MB':>9}")
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            count, megabytes = repeat(fixtures, Path(folder), size)
            floor_s, floor_mb = measured("floor", Path(folder))
            seconds, peak = measured("tables", Path(folder))
        rate = megabytes / seconds
        print(f"{megabytes:>9.0f} MB{count:>7}{floor_s:>9.1f}{floor_mb:>10.0f}{seconds:>10.1f}{rate:>7.0f}{peak:>9.0f}")


def main() -> None:
    options = parser("reading", __doc__)
    options.add_argument("fixtures", type=Path, help="a directory with one of sessions for each harness")
    options.add_argument("megabytes", type=int, nargs="*")
    options.add_argument("--child", choices=("floor", "tables"), help="measure this alone, in this process")
    asked = options.parse_args()
    if asked.child:
        child(asked.child, asked.fixtures)
        return
    throughput(asked.fixtures)
    amounts(asked.fixtures, asked.megabytes)


if __name__ == "__main__":
    main()
