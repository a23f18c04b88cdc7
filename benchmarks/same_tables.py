"""Whether two workspaces hold the same: every table row by row, and the Markdown files.

    python -m benchmarks.same_tables BEFORE AFTER [--ignore TABLE[.COLUMN]]... [--first N]

BEFORE and AFTER are workspaces, or lake directories, of which only the tables are compared. Rows are matched by what
names them (a key of columns; of a table that this script does not know, all of its columns), so their order does not
count, and neither do empty files of days. Columns and tables that only one side has are differences.

Ignored because they tell when a run was: the columns that are printed with each table, and in the Markdown files the
day of offering, the time of writing, the days of expiring and of striking, and the clock of the entries about
decisions. Not compared: fingerprints of days, the vector index, Dagster's history, backups and locks. Marks of secrets
and some ids follow from the salt of the workspace (`lake/salt`): where the salts differ, that is said first. Times of
files (`files.modified_ns`) are compared, since both sides should have read the same files.

Reads Parquet only, so any two versions can be compared. Exit code 1 when something differs, 2 when there is nothing
to compare.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.common import parser

KEYS: Mapping[str, tuple[str, ...]] = {
    "files": ("path",),
    "sessions": ("day", "session_id", "source_file"),
    "messages": ("day", "session_id", "message_id"),
    "windows": ("day", "dedupe_key"),
    "segments": ("day", "segment_id"),
    "observations": ("day", "observation_id"),
    "notes": ("day", "note_id"),
    "embeddings": ("day", "point_id"),
    "reflections": ("day", "reflection_id"),
    "pool_reflections": ("pool_id",),
    "day_distillations": ("day", "distillation_id"),
    "week_distillations": ("day", "distillation_id"),
    "month_distillations": ("day", "distillation_id"),
    "proposals": ("proposal_id",),
    "supports": ("day", "proposal_id", "reflection_id"),
    "events": ("proposal_id", "kind", "surface"),
    "friction_clusters": ("day", "pattern_id"),
    "ledger": ("call_id",),
}
CLOCK: Mapping[str, tuple[str, ...]] = {
    "pool_reflections": ("reflected_at",),
    "events": ("day", "happened_at"),
    "ledger": ("day", "asked_at", "seconds"),
}
"""Columns that tell when a run was, not what it made."""
CLOCK_IN_TEXT = (
    r"(?m)^(?:_Offered on |_Last updated: )\S+",
    r"(?<=· expires on )\d{4}-\d\d-\d\d",
    r"(?<=superseded by )(p-[\d-]+), \d{4}-\d\d-\d\d",
    r"(?m)^\* \d\d:\d\d (?=[a-z]+ `p-)",
)
FIRST_SHOWN = 5
SHOWN_AROUND = 40
"""Characters of a value that are shown on each side of the place where it begins to differ."""

Row = dict[str, Any]


@dataclass
class Compared:
    """A table or file on both sides; `differences` is one sentence each."""

    name: str
    before: int
    after: int
    ignored: tuple[str, ...] = ()
    differences: list[str] = field(default_factory=list)


def compare(before: Path, after: Path, ignored: Collection[str] = ()) -> list[Compared]:
    """Every table, then every Markdown file. `ignored` are tables, or columns as `table.column`.

    Raises ValueError where a side has no table.
    """
    old, new = _lake_of(before), _lake_of(after)
    tables = sorted({path.parent.name for lake in (old, new) for path in lake.glob("*/*.parquet")})
    return [
        *(_table(table, old / table, new / table, ignored) for table in tables if table not in ignored),
        *_markdown(before, after, ignored),
    ]


def _lake_of(folder: Path) -> Path:
    lake = folder / "lake" if (folder / "lake").is_dir() else folder
    if not any(lake.glob("*/*.parquet")):
        raise ValueError(f"{folder} has no tables.")
    return lake


def salts_differ(before: Path, after: Path) -> bool:
    salts = [path.read_bytes() if (path := _lake_of(side) / "salt").exists() else None for side in (before, after)]
    return salts[0] != salts[1]


def _table(name: str, before: Path, after: Path, ignored: Collection[str]) -> Compared:
    frames = [_frame(before), _frame(after)]
    both = {column for frame in frames for column in frame.columns}
    left_out = tuple(sorted(c for c in both if c in CLOCK.get(name, ()) or f"{name}.{c}" in ignored))
    found = Compared(name, frames[0].height, frames[1].height, left_out)
    columns = sorted(both.difference(left_out))
    for column in columns if all(frame.columns for frame in frames) else ():
        sides = [side for side, frame in zip(("before", "after"), frames, strict=True) if column in frame.columns]
        if len(sides) == 1:
            found.differences.append(f"column {column} is there only {sides[0]}")
    shared = [c for c in columns if all(c in frame.columns for frame in frames if frame.height)]
    key = [c for c in KEYS.get(name, shared) if c in shared]
    old, new = (_by_key(frame, key, shared) for frame in frames)
    for name_of_row in old.keys() | new.keys():
        if name_of_row not in new:
            found.differences.append(f"{_named(key, name_of_row)} is there only before")
        elif name_of_row not in old:
            found.differences.append(f"{_named(key, name_of_row)} is there only after")
        else:
            pair = old[name_of_row], new[name_of_row]
            changed = [c for c in shared if pair[0][c] != pair[1][c]]
            found.differences += [f"{_named(key, name_of_row)} {c}: {_apart(pair[0][c], pair[1][c])}" for c in changed]
    found.differences.sort()
    return found


def _frame(folder: Path) -> pl.DataFrame:
    """All rows of a table. Of files without rows nothing is taken: their columns may be older ones."""
    frames = [pl.read_parquet(path, glob=False) for path in sorted(folder.glob("*.parquet"))]
    return pl.concat([f for f in frames if f.height] or frames[-1:] or [pl.DataFrame()], how="diagonal_relaxed")


def _by_key(frame: pl.DataFrame, key: list[str], columns: list[str]) -> dict[tuple[str, ...], Row]:
    """Rows by what names them; rows of one name are numbered in the order of their values."""
    rows: dict[tuple[str, ...], Row] = {}
    seen: Counter[tuple[str, ...]] = Counter()
    for row in sorted((frame.select(columns).iter_rows(named=True) if frame.height else ()), key=repr):
        name = tuple(f"{row[c]}" for c in key)
        seen[name] += 1
        rows[(*name, f"{seen[name]}")] = row
    return rows


def _named(key: list[str], name: tuple[str, ...]) -> str:
    shown = " ".join(f"{column}={_clipped(value)}" for column, value in zip(key, name, strict=False))
    return shown if name[-1] == "1" else f"{shown} (row {name[-1]} of that name)"


def _apart(before: object, after: object) -> str:
    """Both values around the first place where they differ."""
    old, new = (value if isinstance(value, str) else f"{value!r}" for value in (before, after))
    at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    start = max(0, at - SHOWN_AROUND)
    return f"{_clipped(old[start:])!r} -> {_clipped(new[start:])!r}"


def _clipped(text: str) -> str:
    return text if len(text) <= 2 * SHOWN_AROUND else f"{text[: 2 * SHOWN_AROUND]}…"


def _markdown(before: Path, after: Path, ignored: Collection[str]) -> Iterator[Compared]:
    """MEMORY.md, REVIEW.md and the daily logs, where a side is a workspace."""
    if not all((side / "lake").is_dir() for side in (before, after)):
        return
    found = [{f"{path.relative_to(side)}": path for path in _markdown_of(side)} for side in (before, after)]
    for name in sorted((found[0].keys() | found[1].keys()).difference(ignored)):
        texts = [paths[name].read_text("utf-8", "replace") if name in paths else None for paths in found]
        lines = [without_clock(text).splitlines() if text is not None else [] for text in texts]
        compared = Compared(name, len(lines[0]), len(lines[1]), ("times of the run",))
        if None in texts:
            compared.differences.append(f"it is there only {'after' if texts[0] is None else 'before'}")
        elif lines[0] != lines[1]:
            changed = [n for n, pair in enumerate(zip(*lines, strict=False), 1) if pair[0] != pair[1]]
            compared.differences += [f"line {n}: {_apart(lines[0][n - 1], lines[1][n - 1])}" for n in changed]
            if len(lines[0]) != len(lines[1]):
                compared.differences.append(f"{len(lines[0])} lines before, {len(lines[1])} after")
        yield compared


def _markdown_of(workspace: Path) -> Iterator[Path]:
    return chain(workspace.glob("*.md"), (workspace / "memory").rglob("*.md"))


def without_clock(text: str) -> str:
    """The text without what tells when it was written."""
    for pattern in CLOCK_IN_TEXT:
        text = re.sub(pattern, lambda found: found[1] if found.lastindex else "", text)
    return text


def report(found: list[Compared], first: int) -> bool:
    """Print a line for each, and its first differences; returns whether all are equal."""
    width = max(len(each.name) for each in found)
    print(f"{'table or file':<{width}} {'before':>8} {'after':>8}  rows, or lines")
    for each in found:
        verdict = f"{len(each.differences)} DIFFERENCES" if each.differences else "equal"
        without = f" without {', '.join(each.ignored)}" if each.ignored else ""
        print(f"{each.name:<{width}} {each.before:8,} {each.after:8,}  {verdict}{without}")
        for difference in each.differences[:first]:
            print(f"    {difference}")
        if len(each.differences) > first:
            print(f"    … and {len(each.differences) - first} more")
    wrong = [each.name for each in found if each.differences]
    print(f"\n{len(found)} tables and files: " + (f"{', '.join(wrong)} differ" if wrong else "all equal"))
    return not wrong


def add_options(options: argparse.ArgumentParser) -> None:
    """How to compare."""
    options.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="NAME",
        help="a table, a column as table.column, or a file that may differ; may be given again",
    )
    options.add_argument("--first", type=int, default=FIRST_SHOWN, metavar="N", help="differences shown of each table")


def main() -> None:
    options = parser("same_tables", __doc__)
    options.add_argument("before", type=Path)
    options.add_argument("after", type=Path)
    add_options(options)
    arguments = options.parse_args()
    try:
        if salts_differ(arguments.before, arguments.after):
            print("The salts differ, so marks of secrets and some ids must differ too.")
        found = compare(arguments.before, arguments.after, arguments.ignore)
    except ValueError as error:
        options.error(f"{error}")
    if arguments.ignore:
        print(f"Ignored as asked for: {', '.join(arguments.ignore)}")
    sys.exit(0 if report(found, arguments.first) else 1)


if __name__ == "__main__":
    main()
