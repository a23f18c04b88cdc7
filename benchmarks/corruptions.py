"""Damages one file of a workspace at a time, and counts what becomes of it: healed, told, lost, or a trace.

    python -m benchmarks.corruptions [SESSIONS_DIR] [--points N] [--seed S] [--only NUMBER]

The workspace is that of SESSIONS_DIR (default ../shared/fixtures, else the bundled examples), with a user's decisions
in REVIEW.md, a line of theirs in MEMORY.md, a note in a daily log and a setting. A point takes a copy of it and damages
one file: cut off, zeroed, garbage in the middle, empty, gone, or a folder in its place. The points go over all kinds of
files in turn (each table, its kept versions, the index, Dagster's files, the marks, Markdown, settings), which file of
a kind is chosen by the seed. Then `memory status`, `memory run --all`, `memory review --list` and `memory why` are
called, and once more `memory run --all` where they said that something was to be done by hand and it was not a user's
file: then what they name is moved away first, as they say.

healed  every command ended well, and every row of the tables is as before; what is damaged of a user's own file, or of
        a kept copy of one, nobody can make again: there it means that nothing more was lost
told    a command ended with one sentence that names the file or its folder, or what was moved away came back whole
lost    a row of a table is other than before, or a byte that the damage had left of a user's own file is nowhere
trace   a command ended with a traceback or a signal

The baseline is what a plain reader makes of the same damaged file, without versions, setting aside and making again:
Parquet is read with Polars, databases with SQLite, the rest as UTF-8. It raises (trace), or gives other rows or text
(lost) or the same ones (healed).
"""

import random
import re
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from benchmarks.common import SESSIONS, memory, parser
from benchmarks.same_tables import compare

HEALED, TOLD, LOST, TRACE = "healed", "told", "lost", "trace"
OUTCOMES = (HEALED, TOLD, LOST, TRACE)
DAMAGES = ("cut off", "zeroed", "garbage", "empty", "gone", "a folder")
OWN_LINE, OWN_NOTE = "- Bring cake on the first of May.", "Bought milk."
GARBAGE = 64
"""Bytes that are overwritten in the middle."""
COMMANDS = (("status",), ("run", "--all"), ("review", "--list"))
AWAY = re.compile(r"`mv (\S+) (\S+)`")


@dataclass(frozen=True)
class Result:
    """How a command ended, and all that it said."""

    command: str
    code: int
    said: str

    @property
    def is_trace(self) -> bool:
        return self.code < 0 or "Traceback (most recent call last)" in self.said


@dataclass(frozen=True)
class Place:
    """A workspace and the sessions that it is made from."""

    sessions: Path
    workspace: Path

    def memory(self, *arguments: str) -> Result:
        done = memory(arguments, self.sessions, self.workspace)
        return Result(" ".join(arguments), done.returncode, done.stdout + done.stderr)


def main() -> None:
    options = parser("corruptions", __doc__)
    options.add_argument("sessions", nargs="?", type=Path, default=SESSIONS)
    options.add_argument("--points", type=int, default=60)
    options.add_argument("--first", type=int, default=0, help="begin with this point")
    options.add_argument("--seed", default="1")
    options.add_argument("--only", type=int, help="do this point alone")
    arguments = options.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        place, whole = Place(arguments.sessions.resolve(), Path(folder) / "workspace"), Path(folder) / "whole"
        proposal = lived_in(place)
        shutil.copytree(place.workspace, whole)
        kinds = kinds_of(whole)
        print(f"{sum(map(len, kinds.values()))} files of {len(kinds)} kinds; made in {time.monotonic() - began:.0f} s")
        numbers = range(arguments.first, arguments.points) if arguments.only is None else [arguments.only]
        found = [point(place, whole, kinds, arguments.seed, number, proposal) for number in numbers]
    print(f"\n{len(found)} corruptions in {time.monotonic() - began:.0f} s")
    for name, column in (("as it is", 0), ("baseline, a plain reader", 1)):
        counted = Counter(outcomes[column] for outcomes in found)
        print(f"  {name:<26} {', '.join(f'{outcome} {counted[outcome]}' for outcome in OUTCOMES)}")
    sys.exit(1 if any(outcome in (LOST, TRACE) for outcome, _ in found) else 0)


def lived_in(place: Place) -> str:
    """Make the workspace and do in it what a user does; returns a proposal that was approved."""
    must(place.memory("run", "--all"))
    review, memory = place.workspace / "REVIEW.md", place.workspace / "MEMORY.md"
    text = review.read_text("utf-8")
    ids = re.findall(r"^- \[ \] `(p-[\d-]+)`", text, re.MULTILINE)
    for proposal, mark in zip(ids, "xx-", strict=False):
        text = text.replace(f"- [ ] `{proposal}`", f"- [{mark}] `{proposal}`")
    review.write_text(text, "utf-8")
    (place.workspace / "settings.toml").write_text('user_name = "Ada"\n', "utf-8")
    log = sorted((place.workspace / "memory").glob("*.md"))[0]
    log.write_text(f"{log.read_text('utf-8')}\n{OWN_NOTE}\n", "utf-8")
    must(place.memory("run", "--all"))
    memory.write_text(f"{memory.read_text('utf-8')}\n## By hand\n{OWN_LINE}\n", "utf-8")
    must(place.memory("run", "--all"))
    must(place.memory("review", "--list"))  # which is on record
    return f"{ids[0]}"


def must(result: Result) -> None:
    if result.code:
        sys.exit(f"`memory {result.command}` failed before anything was damaged:\n{result.said}")


def kinds_of(workspace: Path) -> dict[str, list[Path]]:
    """All files by what they are, locks and logs of runs left out."""
    found: dict[str, list[Path]] = {}
    for path in sorted(workspace.rglob("*")):
        name = path.relative_to(workspace)
        if path.is_symlink() or not path.is_file() or path.suffix in (".lock", ".log"):
            continue
        if name.parts[:2] == ("dagster", "storage") or name.parts[0] == "logs":
            continue
        versions = name.parts[0] == "backups" and "versions"
        kind = versions or (f"{name.parent}" if name.parts[0] == "lake" and len(name.parts) > 2 else None)
        kind = kind or ("index" if name.parts[0] == "index" else "memory" if name.parts[0] == "memory" else f"{name}")
        kind = "dagster/history/runs" if kind.startswith("dagster/history/runs/") else kind
        found.setdefault(kind, []).append(name)
    return found


def point(
    place: Place, whole: Path, kinds: dict[str, list[Path]], seed: str, number: int, proposal: str
) -> tuple[str, str]:
    """One corruption: what became of it, and what a plain reader makes of it; printed."""
    chance = random.Random(f"{seed}-{number}")
    kind = sorted(kinds)[number % len(kinds)]
    name = chance.choice(kinds[kind])
    damage = DAMAGES[(number + number // len(kinds)) % len(DAMAGES)]
    shutil.rmtree(place.workspace)
    shutil.copytree(whole, place.workspace)
    path = place.workspace / name
    before = path.read_bytes()
    left = damaged(path, damage, chance)
    plainly = plain(path, whole / name)
    results = [place.memory(*command) for command in (*COMMANDS, ("why", proposal))]
    sentences = [line for r in results if r.code for line in r.said.splitlines()[-3:]]
    if orders := {found.groups() for r in results for found in AWAY.finditer(r.said)}:
        for old, new in orders:  # as the sentence says
            if Path(old).exists() and not Path(new).exists():
                Path(old).rename(new)
        again = [place.memory(*command) for command in (*COMMANDS, ("why", proposal))]
        results += again
    wrong = lost_of_user(place.workspace, name, before, left) + unequal(whole, place.workspace, name)
    last = results[-len(COMMANDS) - 1 :]
    if any(result.is_trace for result in results):
        outcome = TRACE
    elif wrong and not (any(r.code for r in last) and names(last, path)):
        outcome = LOST
    else:
        outcome = TOLD if any(result.code for result in results) else HEALED
    print(f"{number:3} {outcome:<7} (plain: {plainly:<6}) {damage:<9} {name}", flush=True)
    if outcome in (LOST, TRACE):
        for line in (wrong or [])[:4]:
            print(f"      {line}")
        for result in (r for r in results if r.is_trace or r.code):
            print(f"      memory {result.command}: {result.code}: {' | '.join(result.said.splitlines()[-2:])[:400]}")
    elif sentences:
        print(f"      {sentences[-1][:200]}")
    return outcome, plainly


def names(results: Sequence[Result], path: Path) -> bool:
    """Whether a sentence names the file or the folder that it lies in."""
    said = "".join("".join(result.said.split()) for result in results if result.code)
    return f"{path}" in said or f"{path.parent}" in said


def damaged(path: Path, damage: str, chance: random.Random) -> bytes:
    """Damage the file; returns what is left of its bytes."""
    data = path.read_bytes()
    if damage == "cut off":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "zeroed":
        path.write_bytes(bytes(len(data)))
    elif damage == "garbage":
        middle = max(0, len(data) // 2 - GARBAGE // 2)
        path.write_bytes(data[:middle] + chance.randbytes(min(GARBAGE, len(data))) + data[middle + GARBAGE :])
    elif damage == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
        if damage == "a folder":
            path.mkdir()
    return path.read_bytes() if path.is_file() else b""


def lost_of_user(workspace: Path, name: Path, before: bytes, left: bytes) -> list[str]:
    """Lines of a user that the damage had left, and that are nowhere in the workspace any more."""
    files = [p for p in workspace.rglob("*") if p.is_file() and (p.suffix == ".md" or "backups" in p.parts)]
    there = b"\n".join(p.read_bytes() for p in files)
    is_theirs = name.suffix == ".md"
    wanted = [line for line in (OWN_LINE.encode(), OWN_NOTE.encode()) if not is_theirs or line not in before]
    wanted += [line for line in left.splitlines() if is_theirs and line.strip(b"\0 ") and not line.startswith(b"_")]
    return [f"lost: {line[:80]!r}" for line in wanted if line not in there]


def unequal(whole: Path, workspace: Path, name: Path) -> list[str]:
    """Rows of tables that differ; the ledger of a file's time is no matter. What a user's own damaged file says is in
    the tables made of it, so these are not compared for Markdown."""
    try:
        compared = [each for each in compare(whole, workspace) if not each.name.endswith(".md")]
    except (OSError, pl.exceptions.PolarsError) as error:
        return [f"a table cannot be read: {error}"]
    if name.suffix == ".md":
        ignored = {"notes", "reflections", "observations", "embeddings", "pool_reflections", "supports", "proposals"}
        compared = [each for each in compared if each.name not in ignored]
    return [f"{each.name}: {each.differences[0]}" for each in compared if each.differences]


def plain(path: Path, whole: Path) -> str:
    """What a reader makes of the file that looks for nothing."""
    try:
        return HEALED if list(read(path)) == list(read(whole)) else LOST
    except (OSError, ValueError, sqlite3.Error, pl.exceptions.PolarsError):
        return TRACE


def read(path: Path) -> Iterator[object]:
    if path.suffix == ".parquet":
        yield from pl.read_parquet(path, glob=False).iter_rows()
    elif path.suffix == ".db":
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            yield from database.iterdump()
    elif path.suffix in (".md", ".yaml", ".toml", ".json", ""):
        yield path.read_text("utf-8")
    else:
        yield path.read_bytes()


if __name__ == "__main__":
    main()
