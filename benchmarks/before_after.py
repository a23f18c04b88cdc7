"""Whether two checkouts make the same of the same sessions, in every table and Markdown file.

    python -m benchmarks.before_after --before CHECKOUT [--after CHECKOUT] [--sessions DIR]... [--keep DIR]

Each checkout runs `memory run --all --sessions DIR` with its own `.venv`, an empty home and a workspace at the same
path with the same salt; `benchmarks.same_tables` then compares what they made. A third workspace is that of BEFORE,
run again by AFTER: it must open, and hold the same too. The sessions are the examples of BEFORE unless some are named.
Exit code 1 when a run fails or something differs.

With `--keep` the workspaces stay in DIR as `before`, `after` and `upgraded`, with what each run printed beside them.
A run that goes over midnight may differ in more than times.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common import ROOT, parser, run_everything
from benchmarks.same_tables import add_options, compare, report

SALT = b"the same for both"


def run(checkout: Path, folder: Path, sessions: Sequence[Path], name: str) -> None:
    """Run everything in `folder/workspace`, as it is, and keep a copy as `folder/NAME`; raises CalledProcessError."""
    workspace, home = folder / "workspace", folder / "home"
    shutil.rmtree(home, ignore_errors=True)
    (workspace / "lake").mkdir(parents=True, exist_ok=True)
    (workspace / "lake/salt").write_bytes(SALT)
    python = f"{checkout / '.venv/bin/python'}"
    start = time.monotonic()
    with (folder / f"{name}.txt").open("wb") as output:
        run_everything(checkout, sessions, workspace, home, python=python, output=output)
    print(f"{name}: {checkout}, {time.monotonic() - start:.0f} s", flush=True)
    shutil.copytree(workspace, folder / name)


def make(before: Path, after: Path, sessions: Sequence[Path], folder: Path) -> None:
    """The three workspaces `before`, `upgraded` and `after` in the folder, all made at the same path."""
    run(before, folder, sessions, "before")
    run(after, folder, sessions, "upgraded")
    shutil.rmtree(folder / "workspace")
    run(after, folder, sessions, "after")
    shutil.rmtree(folder / "workspace")


def compared(folder: Path, name: str, ignored: Sequence[str], first: int) -> bool:
    print(f"\nbefore and {name}")
    return report(compare(folder / "before", folder / name, ignored), first)


def main() -> None:
    options = parser("before_after", __doc__)
    options.add_argument("--before", type=Path, required=True, help="a checkout with a .venv")
    options.add_argument("--after", type=Path, default=ROOT, help="another one; this one when none is named")
    options.add_argument("--sessions", type=Path, action="append", help="a directory of sessions; may be given again")
    options.add_argument("--keep", type=Path, metavar="DIR", help="where the workspaces stay; must be empty or new")
    add_options(options)
    arguments = options.parse_args()
    before, after = arguments.before.resolve(), arguments.after.resolve()
    sessions = [path.resolve() for path in arguments.sessions or [before / "memory_pipeline/examples"]]
    for path in (before / ".venv/bin/python", after / ".venv/bin/python", *sessions):
        if not path.exists():
            options.error(f"There is no {path}.")
    if arguments.keep and arguments.keep.exists() and any(arguments.keep.iterdir()):
        options.error(f"{arguments.keep} is not empty.")
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.keep or Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        try:
            make(before, after, sessions, folder)
        except subprocess.CalledProcessError as error:
            sys.stderr.write("".join(path.read_text("utf-8", "replace")[-4000:] for path in _last_output(folder)))
            sys.exit(f"{error.cmd[0]} ended with {error.returncode}.")
        equal = [compared(folder, name, arguments.ignore, arguments.first) for name in ("after", "upgraded")]
    sys.exit(0 if all(equal) else 1)


def _last_output(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.txt"), key=lambda path: path.stat().st_mtime_ns)[-1:]


if __name__ == "__main__":
    main()
