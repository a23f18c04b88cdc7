"""How long the command takes to start: `--help`, `--version`, and `status` of the bundled examples.

    python -m benchmarks.startup [--runs N] [CHECKOUT ...]

Each checkout (this one when none is named) runs with this Python and its packages, in a home of its own; `status`
shows the examples, which are run once before. The checkouts take turns, so that a busy minute falls on all of them.
Wall seconds, minimum and median, and the least processor seconds, which other work on the machine changes less. The
floor is Python doing nothing. Name an older checkout first to have a baseline.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import parser

COMMANDS = (("--help",), ("--version",), ("status",))
HERE = Path(__file__).resolve().parents[1]


def call(checkout: Path, home: Path, *args: str) -> tuple[float, float, int]:
    """Wall seconds, processor seconds and exit code of one call."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(checkout), "MEMORY_TIMEZONE": "UTC"}
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *args], env=environment, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, status


def main() -> None:
    options = parser("startup", __doc__)
    options.add_argument("checkouts", nargs="*", type=Path, default=[HERE])
    options.add_argument("--runs", type=int, default=10)
    chosen = options.parse_args()
    checkouts = [checkout.resolve() for checkout in chosen.checkouts]
    seconds: dict[tuple[Path, tuple[str, ...]], list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        homes = {checkout: Path(folder) / f"{number}" for number, checkout in enumerate(checkouts)}
        for checkout, home in homes.items():
            home.mkdir()
            if call(checkout, home, "-m", "memory_pipeline.cli.main", "run")[-1]:
                sys.exit(f"{checkout}: `memory run` on the examples failed.")
        for turn in range(chosen.runs + 1):  # the first turn fills caches and does not count
            for checkout, home in homes.items():
                for command in (("-c", "pass"), *COMMANDS):
                    module = () if command[0] == "-c" else ("-m", "memory_pipeline.cli.main")
                    wall, processor, failed = call(checkout, home, *module, *command)
                    if turn and not failed:
                        seconds.setdefault((checkout, command), []).append((wall, processor))
    width = max(len(str(checkout)) for checkout in checkouts)
    print(f"{'checkout':<{width}}  {'command':<12}  minimum   median  processor")
    for command in (("-c", "pass"), *COMMANDS):
        for checkout in checkouts:
            name = "floor" if command[0] == "-c" else " ".join(command)
            if found := seconds.get((checkout, command)):
                walls, processors = zip(*found, strict=True)
                figures = f"{min(walls):7.3f}  {statistics.median(walls):7.3f}  {min(processors):9.3f}"
                print(f"{checkout!s:<{width}}  {name:<12}  {figures}")
            else:
                print(f"{checkout!s:<{width}}  {name:<12}  {'fails':>7}")


if __name__ == "__main__":
    main()
