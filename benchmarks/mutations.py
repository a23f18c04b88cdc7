"""Breaks one place of the product at a time and asks the tests whether they notice.

    python -m benchmarks.mutations [--only NAME] [--json FILE]

Each mutation replaces a piece of one product file in a copy of the checkout, and runs the test files that should catch
it, until the first failure. The list is in `mutations.toml`: one place for each invariant of the design, for each
reader of transcripts, and for what guards money, files and secrets. A place counts as caught when a test fails that
passes in the unchanged tree, missed when all pass, moved when the file no longer holds the piece exactly once (then the
list is out of date), and unsound when the test fails without the mutation too, which proves nothing.

Exit code 1 unless every place is caught.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.common import ROOT, parser

CAUGHT, MISSED, MOVED, UNSOUND = OUTCOMES = "caught", "missed", "moved", "unsound"
COPIED = ("memory_pipeline", "memory_pipeline_tests", "benchmarks", "prompts", "docs", "deploy")
PASSED = 0
"""Exit code of pytest. Every other one is a catch, also that of a module that cannot be imported."""
TESTS = "memory_pipeline_tests"
LIST = Path(__file__).with_suffix(".toml")


@dataclass(frozen=True)
class Mutation:
    """A place of the product, what is written there instead, and the test files or folders that should notice."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """What became of a mutation."""

    name: str
    outcome: str
    seconds: float
    test: str = ""
    """The test that failed."""


def main() -> None:
    options = parser("mutations", __doc__)
    options.add_argument("--only", help="run the mutations whose name contains this")
    options.add_argument("--json", type=Path, help="write the results to this file")
    given = options.parse_args()
    chosen = [mutation for mutation in load_mutations() if (given.only or "") in mutation.name]
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_tree(Path(folder) / "tree")
        results = []
        for mutation in chosen:
            results.append(result := try_mutation(tree, mutation))
            print(f"{result.outcome:7} {result.seconds:6.1f} s  {result.name:32} {result.test}", flush=True)
    counts = {outcome: sum(r.outcome == outcome for r in results) for outcome in OUTCOMES}
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()), f"of {len(results)}")
    if given.json:
        given.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", "utf-8")
    sys.exit(counts[CAUGHT] < len(results))


def load_mutations() -> list[Mutation]:
    """The mutations of the list. Raises TypeError for a key that is missing or unknown."""
    listed = tomllib.loads(LIST.read_text("utf-8"))["mutation"]
    return [Mutation(**fields | {"tests": tuple(fields["tests"])}) for fields in listed]


def copy_tree(tree: Path) -> Path:
    """A copy of the checkout in which files can be broken, with the shared data beside it where there are any."""
    tree.mkdir()
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy2(path, tree)
        elif path.name in COPIED:
            shutil.copytree(path, tree / path.name, ignore=shutil.ignore_patterns("__pycache__"))
    if (shared := ROOT.parent / "shared").is_dir():
        (tree.parent / "shared").symlink_to(shared.resolve())
    return tree


def try_mutation(tree: Path, mutation: Mutation) -> Result:
    started = time.perf_counter()
    with broken(tree / mutation.file, mutation.old, mutation.new) as is_broken:
        if not is_broken:
            return Result(mutation.name, MOVED, 0.0)
        code, failed = run_tests(tree, mutation.tests)
    seconds = round(time.perf_counter() - started, 1)
    if code == PASSED:
        return Result(mutation.name, MISSED, seconds)
    is_sound = run_tests(tree, [failed] if failed else mutation.tests)[0] == PASSED
    return Result(mutation.name, CAUGHT if is_sound else UNSOUND, seconds, failed)


@contextmanager
def broken(path: Path, old: str, new: str) -> Iterator[bool]:
    """The file with one piece replaced, until the end; False where it does not hold the piece exactly once."""
    text = path.read_text("utf-8") if path.is_file() else ""
    if text.count(old) != 1:
        yield False
        return
    path.write_text(text.replace(old, new), "utf-8")
    try:
        yield True
    finally:
        path.write_text(text, "utf-8")


def run_tests(tree: Path, files: Sequence[str]) -> tuple[int, str]:
    """Run all but the nightly tests of these files until one fails; pytest's exit code and the test that failed."""
    command = [sys.executable, "-m", "pytest", *(f"{TESTS}/{file}" for file in files)]
    options = ["-x", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", "not nightly", "--tb=no"]
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [*command, *options, f"--basetemp={home}/pytest"],
            cwd=tree,
            env={"PATH": "/usr/bin:/bin", "HOME": home, "PYTHONPATH": f"{tree}", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    named = re.search(r"^(?:FAILED|ERROR) memory_pipeline_tests/(.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return done.returncode, named[1] if named else ""


if __name__ == "__main__":
    main()
