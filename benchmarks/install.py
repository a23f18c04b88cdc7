"""What it costs to install and to start: set-up, bytes, and the first second of a command, of two revisions in turns.

    python -m benchmarks.install [--runs N] [--python PATH] [REVISION ...]

Each revision (HEAD and 46ebf5e, which installs torch with pip, when none is named) is cloned and set up by `make setup`
twice in an empty home: cold, with empty caches of pip and uv, and warm, with those of the first time. Then the bundled
examples are run once, and the commands in turns, the revisions one after the other. Seconds are those of the clock and,
in brackets, of the processor, which other work on the machine changes less; of several runs the median.
`run` has nothing to do; `search` and `brief` are new processes each time. A cold set-up downloads up to 3 GB. What the
environment tells pip and uv holds here too, but not what this machine's home says.
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import ROOT, parser

COMMANDS = ("--help", "status", "run", "brief", "search uv")
MEGABYTE = 1_000_000


class Checkout:
    """A clone of a revision with an environment and a home of its own."""

    def __init__(self, revision: str, folder: Path, python: str) -> None:
        self.revision, self.place, self.home = revision, folder / "checkout", folder / "home"
        self.python = python
        self.home.mkdir(parents=True)
        self.env = dict(os.environ) | {"HOME": f"{self.home}", "MEMORY_TIMEZONE": "UTC"}
        for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
            self.env.pop(name, None)
        subprocess.run(["git", "clone", "--quiet", f"{ROOT}", f"{self.place}"], check=True)
        subprocess.run(["git", "checkout", "--quiet", revision], cwd=self.place, check=True)

    def timed(self, *command: str) -> tuple[float, float]:
        """Seconds of a command by the clock and of the processor. Raises CalledProcessError."""
        clock, processor = time.perf_counter(), of_processor()
        subprocess.run(command, cwd=self.place, env=self.env, capture_output=True, check=True)
        return time.perf_counter() - clock, of_processor() - processor

    def set_up(self) -> tuple[float, float]:
        """Seconds of a set-up without an environment from before."""
        subprocess.run(["rm", "-rf", ".venv"], cwd=self.place, check=True)
        return self.timed("make", "setup", f"PYTHON={self.python}")

    def memory(self, arguments: str) -> tuple[float, float]:
        return self.timed(".venv/bin/memory", *arguments.split())

    def environment_bytes(self) -> int:
        return sum(p.stat().st_size for p in (self.place / ".venv").rglob("*") if p.is_file() and not p.is_symlink())

    def wheel_bytes(self) -> int:
        self.timed(".venv/bin/pip", "wheel", "--quiet", "--no-deps", "-w", "dist", ".")
        return sum(wheel.stat().st_size for wheel in (self.place / "dist").glob("*.whl"))


def main() -> None:
    options = parser("install", __doc__)
    options.add_argument("revisions", nargs="*", default=["HEAD", "46ebf5e"], metavar="REVISION")
    options.add_argument("--runs", type=int, default=5, metavar="N")
    options.add_argument("--python", default=sys.executable, help="the interpreter that makes the environments")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        folders = [Path(directory) / f"{number}" for number in range(len(chosen.revisions))]
        python = os.path.realpath(chosen.python)
        checkouts = [Checkout(*pair, python) for pair in zip(chosen.revisions, folders, strict=True)]
        for checkout in checkouts:
            report(checkout, "set-up, cold", shown([checkout.set_up()]))
            report(checkout, "set-up, warm", shown([checkout.set_up()]))
            report(checkout, ".venv", f"{checkout.environment_bytes() / MEGABYTE:.0f} MB")
            report(checkout, "wheel", f"{checkout.wheel_bytes() / MEGABYTE:.1f} MB")
            report(checkout, "run, the first", shown([checkout.memory("run")]))
        seconds: dict[tuple[str, Checkout], list[tuple[float, float]]] = {}
        for _ in range(chosen.runs):
            for checkout in checkouts:
                code = ".venv/bin/python", "-c", "import memory_pipeline"
                seconds.setdefault(("import", checkout), []).append(checkout.timed(*code))
                for command in COMMANDS:
                    seconds.setdefault((command, checkout), []).append(checkout.memory(command))
        for command in ("import", *COMMANDS):
            for checkout in checkouts:
                report(checkout, command, shown(seconds[command, checkout]))


def of_processor() -> float:
    """Processor seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def shown(seconds: list[tuple[float, float]]) -> str:
    clock, processor = map(statistics.median, zip(*seconds, strict=True))
    return f"{clock:.2f} s ({processor:.2f} s)"


def report(checkout: Checkout, what: str, figure: str) -> None:
    print(f"{checkout.revision:<10} {what:<16} {figure}", flush=True)


if __name__ == "__main__":
    main()
