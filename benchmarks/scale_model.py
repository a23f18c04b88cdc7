"""The pipeline at four sizes, on paper: what a day and a year take, computed from constants that were measured.

    python -m benchmarks.scale_model

Each constant has its source and date; nothing is measured here. Beyond the largest size that one was measured at it is
taken on in a straight line, which is a guess: the second table names what leaves the measured range first, and after
how many days. Each person has a workspace, but where all share one. `make docs` writes the tables into
docs/scale-out.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.common import parser


class Constant(NamedTuple):
    """A number with where it comes from."""

    value: float
    unit: str
    source: str
    date: str


YEAR = 365
NIGHT_SECONDS = 8 * 3600
CORES = 2
"""Of the machine that the constants were measured on."""
DISK = 500e9
"""Of an ordinary machine; chosen."""
SIMULATED = "benchmarks/README.md, simulated_year: 364 days of 36 messages"
_MESSAGES = 364 * 36

CONSTANTS = {
    "sessions": Constant(25, "sessions a person and day", "given", "2026-11"),
    "messages": Constant(400_000 / 200, "messages a person and day", "given: 400,000 of 200 people", "2026-11"),
    "transcripts": Constant(5e9 / 200, "bytes a person and day", "given: 5 GB of 200 people", "2026-11"),
    "seconds": Constant(
        (68.5 + 669) / _MESSAGES, "s of the processor a message, without a model", SIMULATED, "2026-11-23"
    ),
    "seconds_of_a_byte": Constant(
        (80 + 30) / 19e6,
        "s a byte of transcripts, on two busy cores",
        "docs/limits.md, 70 files",
        "2026-11-22",
    ),
    "tables": Constant(43e6 / _MESSAGES, "bytes of tables a message", SIMULATED, "2026-11-23"),
    "files": Constant(4814 / 364, "files of tables a day and workspace", SIMULATED, "2026-11-23"),
    "events": Constant(20_318 / 364, "events of Dagster a day and workspace", SIMULATED, "2026-11-23"),
    "record": Constant(135e6 / 364, "bytes of Dagster's record a day and workspace", SIMULATED, "2026-11-23"),
    "points": Constant(
        (199 + 75 + 181) / 317, "points a message", "`memory sql` after `memory run` over the examples", "2026-11-23"
    ),
    "index": Constant(4300, "bytes a point", "benchmarks/README.md, recall_speed --million", "2026-11-23"),
    "memory": Constant(2.0e9, "bytes of memory a run", SIMULATED, "2026-11-23"),
    "cheap": Constant(53 / YEAR, "USD a person and day, gpt-6-luna", "docs/models.md, a year", "2026-11-22"),
    "dear": Constant(1052 / YEAR, "USD a person and day, claude-sonnet-5-5", "docs/models.md, a year", "2026-11-22"),
    "stored": Constant(0.010, "s of the processor an event in Postgres", "docs/scale-out.md, at load 10", "2026-11-23"),
}
UNKNOWN = (
    "What a day of 25 sessions takes: the year that was simulated had two small sessions a day.",
    "Points a message of recorded sessions: the examples are written, and denser in what is worth keeping.",
    "Requests a day, and the rates that providers allow.",
    "The embedded index beyond 1,010,000 points; a Qdrant server of any size.",
    "Postgres with many deployments at once; its record over years.",
    "A shared file system below the workspace of many pods.",
)


class Size(NamedTuple):
    """How many people for how long."""

    name: str
    people: int
    years: float = 1
    in_one_workspace: bool = False


SIZES = (
    Size("one person", 1),
    Size("one person, ten years", 1, 10),
    Size("200 people", 200),
    Size("200 people in one workspace", 200, 1, True),
    Size("10,000 people", 10_000),
)


@dataclass(frozen=True)
class Load:
    """What a size comes to; bytes, seconds and USD."""

    messages_a_day: float
    transcripts_a_day: float
    seconds_a_day: float
    seconds_by_bytes: float
    """The same by the other constant: of real files, on a clock instead of by the processor."""
    tables: float
    files: float
    points: float
    index: float
    events_a_day: float
    record: float
    cheap: float
    dear: float
    points_of_a_workspace_a_day: float
    cores_of_a_workspace: float
    """Of which only one is of use: runs over days go one after the other."""

    @property
    def cores(self) -> float:
        """That are busy all night so that all is done by morning."""
        return max(self.seconds_a_day, self.seconds_by_bytes) / NIGHT_SECONDS

    @property
    def memory(self) -> float:
        """Of the runs that go at once."""
        return max(1, math.ceil(self.cores)) * CONSTANTS["memory"].value

    @property
    def storing(self) -> float:
        """Seconds of the processor a day that take Dagster's events to Postgres."""
        return self.events_a_day * CONSTANTS["stored"].value


def load_of(size: Size) -> Load:
    """The whole of it."""
    of = {name: constant.value for name, constant in CONSTANTS.items()}
    workspaces = 1 if size.in_one_workspace else size.people
    messages, days = of["messages"] * size.people, YEAR * size.years
    transcripts = of["transcripts"] * size.people
    points = messages * days * of["points"]
    return Load(
        messages_a_day=messages,
        transcripts_a_day=transcripts,
        seconds_a_day=messages * of["seconds"],
        seconds_by_bytes=transcripts * of["seconds_of_a_byte"],
        tables=messages * days * of["tables"],
        files=of["files"] * days * workspaces,
        points=points,
        index=points * of["index"],
        events_a_day=of["events"] * workspaces,
        record=of["record"] * days * workspaces,
        cheap=of["cheap"] * size.people * days,
        dear=of["dear"] * size.people * days,
        points_of_a_workspace_a_day=messages * of["points"] / workspaces,
        cores_of_a_workspace=transcripts * of["seconds_of_a_byte"] / workspaces / NIGHT_SECONDS,
    )


class Limit(NamedTuple):
    """The largest that was measured, or that there is."""

    what: str
    day: float
    """From which day of work it is passed; never where that is beyond the time."""
    turn_on: str


def limits_of(size: Size) -> list[Limit]:
    """What is passed within the time, the first first."""
    load, days = load_of(size), YEAR * size.years
    points = load.points_of_a_workspace_a_day
    found = [
        Limit("an index of 1,010,000 points (a query .15 s)", 1_010_000 / points, "a Qdrant server"),
        Limit("50,000 points in a week of friction", 1 if points * 7 > 50_000 else days + 1, "a workspace a person"),
        Limit(
            "a night of two cores for all runs",
            1 if load.cores > CORES else days + 1,
            "runs on more machines: containers, Postgres",
        ),
        Limit(
            "a night of one run after the other in a workspace",
            1 if load.cores_of_a_workspace > 1 else days + 1,
            "a workspace a person",
        ),
        Limit(
            "500 GB of tables and index on one disk",
            DISK / ((load.tables + load.index) / days),
            "tables on object storage, a Qdrant server",
        ),
    ]
    return sorted((limit for limit in found if limit.day <= days), key=lambda limit: limit.day)


def rows() -> Iterator[tuple[str, ...]]:
    """The table, a row for each size."""
    yield (
        *("", "messages a day", "transcripts a day", "processor a day", "cores all night", "memory", "tables"),
        *("files", "index", "events a day (in Postgres)", "Dagster's record", "models, USD"),
    )
    for size in SIZES:
        load = load_of(size)
        yield (
            size.name,
            f"{load.messages_a_day:,.0f}",
            _bytes(load.transcripts_a_day),
            f"{_time(load.seconds_a_day)} to {_time(load.seconds_by_bytes)}",
            f"{load.cores:,.2f}" if load.cores < 10 else f"{load.cores:,.0f}",
            _bytes(load.memory),
            _bytes(load.tables),
            f"{load.files:,.0f}",
            _bytes(load.index),
            f"{load.events_a_day:,.0f} ({_time(load.storing)})",
            _bytes(load.record),
            f"{_money(load.cheap)} to {_money(load.dear)}",
        )


def breaks() -> Iterator[tuple[str, ...]]:
    """What leaves the measured range at each size, the first first."""
    yield ("", "what is passed", "from", "what is turned on")
    for size in SIZES:
        for limit in limits_of(size) or [Limit("nothing", 0, "nothing")]:
            when = "" if not limit.day else "the first day" if limit.day <= 1 else f"day {limit.day:,.0f}"
            yield size.name, limit.what, when, limit.turn_on


def constants() -> Iterator[tuple[str, ...]]:
    """Each with its source."""
    yield "constant", "value", "unit", "source", "date"
    for name, constant in CONSTANTS.items():
        yield name, _number(constant.value), constant.unit, constant.source, constant.date


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _money(value: float) -> str:
    return f"{value:,.0f}"


def _bytes(value: float) -> str:
    for unit, size in (("PB", 1e15), ("TB", 1e12), ("GB", 1e9)):
        if value >= size:
            return f"{value / size:,.1f} {unit}"
    return f"{value / 1e6:,.0f} MB"


def _time(seconds: float) -> str:
    if seconds >= 3600:
        return f"{seconds / 3600:,.1f} h"
    return f"{seconds / 60:,.1f} min" if seconds >= 60 else f"{seconds:,.1f} s"


def main() -> None:
    parser("scale_model", __doc__).parse_args()
    for table in (list(rows()), list(breaks()), list(constants())):
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for line in table:
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        print()
    print("Unknown:")
    print("\n".join(f"- {line}" for line in UNKNOWN))


if __name__ == "__main__":
    main()
