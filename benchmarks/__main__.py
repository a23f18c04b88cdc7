"""The benchmarks that end within a minute or so, one after the other; with `--all` the long ones too.

    python -m benchmarks [--all]

Each runs in a process of its own with an empty home. One whose data are not there is named and left out.
`before_after`, `same_tables` and `labels` compare or write what they are given, `fuzz` needs Atheris, `recall_peers`
installs other systems: none of them is in here.
"""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import BENCH, FIXTURES, GOLD, ROOT, SHARED, parser


@dataclass(frozen=True)
class Benchmark:
    """A module with its arguments, and the data without which it has nothing to say."""

    name: str
    arguments: tuple[str, ...] = ()
    needs: tuple[Path, ...] = ()


QUICK = (
    Benchmark("hops"),
    Benchmark("action_latency"),
    Benchmark("auto_promotion"),
    Benchmark("chain"),
    Benchmark("far_apart"),
    Benchmark("languages"),
    Benchmark("sensor", ("2000",)),
    Benchmark("kills", ("--trials", "10")),
    Benchmark("reading", (f"{FIXTURES}",), (FIXTURES,)),
    Benchmark("redaction", (f"{FIXTURES}",), (FIXTURES,)),
    Benchmark("said_passwords"),
    Benchmark("grounding", needs=(GOLD, FIXTURES)),
)
LONG = (
    Benchmark("observing", needs=(GOLD, FIXTURES)),
    Benchmark("observing_speed"),
    Benchmark("embedding", ("--threads", "1")),
    Benchmark("recall", needs=(BENCH, SHARED / "more-sessions")),
    Benchmark("recall_speed"),
    Benchmark("page"),
    Benchmark("recall_speed", ("--growth",)),
    Benchmark("fit_observer", needs=(GOLD, FIXTURES)),
    Benchmark("people", needs=(GOLD, FIXTURES, SHARED / "more-sessions")),
    Benchmark("answer_words", needs=(BENCH,)),
    Benchmark("distillation", needs=(BENCH,)),
    Benchmark("friction"),
    Benchmark("friction", ("--growth",)),
    Benchmark("proposals"),
    Benchmark("promoted", needs=(GOLD, FIXTURES)),
    Benchmark("promoted", ("--unseen",), (GOLD, FIXTURES)),
    Benchmark("chain", (f"{FIXTURES}",), (FIXTURES,)),
    Benchmark("reading", (f"{FIXTURES}", "100", "1000"), (FIXTURES,)),
    Benchmark("sensor", ("10000",)),
    Benchmark("kills", ("--trials", "200")),
    Benchmark("year_cost"),
    Benchmark("corruptions"),
    Benchmark("processes"),
)


def main() -> None:
    options = parser("", __doc__)
    options.add_argument("--all", action="store_true", help="the long ones too, which take far longer")
    failed = []
    for benchmark in QUICK + (LONG if options.parse_args().all else ()):
        called = " ".join((benchmark.name, *benchmark.arguments))
        print(f"\n== {called}", flush=True)
        if missing := [str(path) for path in benchmark.needs if not path.exists()]:
            print(f"left out: there is no {missing[0]}")
            continue
        start = time.monotonic()
        command = [sys.executable, "-m", f"benchmarks.{benchmark.name}", *benchmark.arguments]
        with tempfile.TemporaryDirectory() as home:
            env = {"PATH": os.environ["PATH"], "HOME": home}
            if subprocess.run(command, cwd=ROOT, env=env, check=False).returncode:
                failed.append(called)
        print(f"({time.monotonic() - start:.0f} s)", flush=True)
    if failed:
        sys.exit(f"\nFailed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
