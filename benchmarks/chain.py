"""How long the whole chain takes and how much memory, over the examples or any directory of sessions.

    python -m benchmarks.chain [DIR ...]

Each row is one `memory run --all` as a process of its own, in an empty home and workspace: the first run, which
makes everything, and the second, which finds that nothing changed. Beside them the floor: parsing the same
files with orjson and doing nothing else. Wall times of one run on whatever else the machine is doing; repeat
before you compare.
"""

import hashlib
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson

from benchmarks.common import EXAMPLES, parser
from memory_pipeline.sessions.discovery import find_sources


def run(command: list[str], home: str) -> tuple[float, float]:
    """Wall seconds and peak megabytes of a command; its output is shown only when it fails."""
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        env={"PATH": os.environ["PATH"], "HOME": home, "MEMORY_TIMEZONE": "UTC"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(output.decode())
    return time.monotonic() - start, usage.ru_maxrss / 1024


def floor(files: list[Path]) -> tuple[float, float]:
    """Parsing every line with orjson, in this process."""
    start = time.monotonic()
    for path in files:
        for line in path.read_bytes().splitlines():
            try:
                orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
    return time.monotonic() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def digest(lake: Path) -> str:
    """Of every byte of every table."""
    return hashlib.sha256(b"".join(p.read_bytes() for p in sorted(lake.rglob("*.parquet")))).hexdigest()


def measure(directory: Path) -> None:
    files = [Path(source.path) for source in find_sources([directory])]
    size = sum(p.stat().st_size for p in files) / 1e6
    print(f"\n{directory.name}: {len(files)} files, {size:.1f} MB")
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "memory_pipeline.cli.main", "run", "--all", "--sessions", str(directory)]
        lake = Path(home, ".memory-pipeline/lake")
        rows = [("floor: orjson on the same lines", *floor(files)), ("first run", *run(command, home))]
        before = digest(lake)
        rows.append(("second run, nothing changed", *run(command, home)))
        for name, seconds, megabytes in rows:
            print(f"  {name:<34} {seconds:8.2f} s {megabytes:8.0f} MB")
        print(f"  tables after the second run        {'no byte changed' if digest(lake) == before else 'CHANGED'}")


def main() -> None:
    options = parser("chain", __doc__)
    options.add_argument("directories", type=Path, nargs="*", default=[EXAMPLES], metavar="DIR")
    for directory in options.parse_args().directories:
        measure(directory.absolute())


if __name__ == "__main__":
    main()
