"""How long a tick of the session sensor takes over many files.

    python -m benchmarks.sensor [FILES]

Writes so many small sessions over two years into an empty directory and evaluates the sensor as Dagster does: the
first tick, which reads what its time allows, the ticks until all is read, a tick when all days are up to date and
nothing changed, and one after a single session has grown. Beside them the floor: listing the same directory and
looking at size and time of every file. "Up to date" is written into the tables without rows, since a tick only
compares fingerprints.
"""

import json
import os
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.common import parser

FIRST = datetime(2025, 1, 1, 9, tzinfo=UTC)
DAYS = 600


def write_sessions(root: Path, files: int) -> None:
    for number in range(files):
        start = FIRST + timedelta(days=number % DAYS, minutes=number // DAYS)
        stamp = start.strftime("%Y-%m-%dT%H:%M:%S.000Z")
        records: list[dict[str, object]] = [
            {"type": "session", "version": 3, "id": f"s{number}", "timestamp": stamp, "cwd": f"/src/{number % 50}"}
        ]
        for turn in range(6):
            role = "user" if turn % 2 == 0 else "assistant"
            text = f"Message {turn} of session {number} about parcels, invoices and the port {8000 + turn}."
            records.append(
                {
                    "type": "message",
                    "id": f"{turn:08x}",
                    "parentId": f"{turn - 1:08x}" if turn else None,
                    "timestamp": stamp,
                    "message": {"role": role, "content": [{"type": "text", "text": text}]},
                }
            )
        path = root / f"--src-{number % 50}--" / f"{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(record) + "\n" for record in records))


def floor(root: Path) -> float:
    start = time.monotonic()
    for folder, _, names in os.walk(root):
        for name in names:
            os.stat(os.path.join(folder, name))  # noqa: PTH116, PTH118 - the floor is the quickest way
    return time.monotonic() - start


def tick() -> tuple[float, str]:
    """Seconds of one evaluation, and what it came to."""
    import dagster as dg

    from memory_pipeline.defs.placement import Placement, WorkspaceResource
    from memory_pipeline.defs.sensors import session_sensor_of
    from memory_pipeline.settings import load_settings

    with (
        dg.DagsterInstance.ephemeral() as instance,
        dg.build_sensor_context(instance, resources={"workspace": WorkspaceResource()}) as context,
    ):
        start = time.monotonic()
        answer = session_sensor_of(Placement(load_settings()))(context)
        seconds = time.monotonic() - start
    if isinstance(answer, dg.SkipReason):
        return seconds, str(answer.skip_message)
    return seconds, f"{len(answer.run_requests or [])} days asked for"  # type: ignore[union-attr]


def pretend_up_to_date() -> int:
    """Give every day of every table the fingerprint that the sensor will look for; the number of days."""
    import polars as pl

    from memory_pipeline.lake.tables import TABLES
    from memory_pipeline.planning import Stages
    from memory_pipeline.settings import load_settings

    stages = Stages.from_settings(load_settings())
    days = stages.sessions.catalogue.days()
    for stage in stages.all():
        fingerprints = {day: stage.fingerprint(day) for day in days}
        for table in stage.tables:
            stages.sessions.lake.replace(table, pl.DataFrame(schema=TABLES[table].columns), days, fingerprints)
    return len(days)


def measure(files: int) -> None:
    with tempfile.TemporaryDirectory() as home:
        root = Path(home, "sessions")
        os.environ |= {
            "HOME": home,
            "MEMORY_WORKSPACE": str(Path(home, "workspace")),
            "MEMORY_SESSION_DIRS": str(root),
            "MEMORY_DEFAULT_SESSION_DIRS": "false",
            "MEMORY_TIMEZONE": "UTC",
        }
        write_sessions(root, files)
        size = sum(path.stat().st_size for path in root.rglob("*.jsonl")) / 1e6
        print(f"{files} files, {size:.1f} MB")
        print(f"  {'floor: listing and looking at each file':<44} {floor(root):7.2f} s")
        seconds, message = tick()
        print(f"  {'first tick':<44} {seconds:7.2f} s  {message}")
        ticks = 1
        while ", 0 still to be read" not in message and not message.endswith("days asked for") and ticks < 50:
            seconds, message = tick()
            ticks += 1
        print(f"  {f'tick {ticks}, by which all is read':<44} {seconds:7.2f} s  {message}")
        days = pretend_up_to_date()
        tick()  # the first tick after a change fills what the process remembers
        seconds, message = tick()
        print(f"  {f'nothing changed, {days} days up to date':<44} {seconds:7.2f} s  {message}")
        grown = next(root.rglob("0.jsonl"))
        record = {
            "type": "message",
            "id": "ffffffff",
            "timestamp": "2025-01-01T09:30:00.000Z",
            "message": {"role": "user", "content": "One more."},
        }
        with grown.open("a") as file:
            file.write(json.dumps(record) + "\n")
        seconds, message = tick()
        print(f"  {'one session has grown':<44} {seconds:7.2f} s  {message}")


def main() -> None:
    options = parser("sensor", __doc__)
    options.add_argument("files", type=int, nargs="?", default=10_000, metavar="FILES")
    measure(options.parse_args().files)


if __name__ == "__main__":
    main()
