"""How much planted friction is found, and how much is found that is none: recall and precision of every kind.

    python -m benchmarks.friction [--bank tuning|reporting] [--seeds N] [--first N] [--keep DIR]
    python -m benchmarks.friction --growth

Each seed is a week of 20 to 40 sessions of pi, Claude Code and Codex in English, German and Spanish, with friction of
seven kinds planted in ordinary talk, beside decoys that only look like it. The pipeline reads and observes it
without a model and looks for friction on each day. A pattern is right when most of its evidence lies in planted
friction of its kind, in two sessions of it or more, and no other pattern of the kind was there before. Printed are
recall and precision of each kind with counts and the 95 % interval over weeks drawn anew; the kinds that were taken for
each other; the decoys that were taken.

The bank `reporting` shares no topic, phrase, command or error with `tuning`: figures that count are of it.

`--growth`: seconds and peak memory of the last day of windows of 1,000 to 50,000 points (observations and messages of
users), each in a process of its own and without what is cached; and how much more that is than for the window before.
The window is made of four weeks, copied under other names.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.common import parser
from benchmarks.planted_friction.bank import BANKS, REPORTING, TUNING, bank_of
from benchmarks.planted_friction.growth import Window, grow
from benchmarks.planted_friction.model import KINDS, Week
from benchmarks.planted_friction.running import Ran, run
from benchmarks.planted_friction.scoring import MISSED, Scored, Table, confusion, score, wrongly_taken
from benchmarks.planted_friction.weeks import make_week

BAR = 0.85
SIZES = (1_000, 3_000, 10_000, 30_000, 50_000)
SECONDS, MB = 60, 2_048
"""What the largest window may take."""
IN_MEMORY = Path("/dev/shm")
"""Where there is one, the weeks are kept in memory: their indexes are opened so often that a disk takes most of the
time."""


def main() -> None:
    options = parser("friction", __doc__)
    options.add_argument("--bank", choices=BANKS, default=REPORTING, help="whose wordings are planted")
    options.add_argument("--seeds", type=int, default=50, metavar="N", help="how many weeks")
    options.add_argument("--first", type=int, default=1, metavar="N", help="number of the first seed")
    options.add_argument("--keep", type=Path, metavar="DIR", help="write every pattern and every plant there")
    options.add_argument("--growth", action="store_true", help="measure time and memory of windows that grow instead")
    arguments = options.parse_args()
    if arguments.growth:
        growth()
        return
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    found = measure(arguments.bank, seeds, arguments.keep)
    show(f"bank {arguments.bank}, {len(seeds)} weeks", found)
    show_confusion(found.weeks)
    show_taken(found.weeks)


def growth() -> None:
    """Time and memory of one day, by the number of points in its window."""
    print(f"{'points':>8}{'seconds':>10}{'ratio':>8}{'of points':>11}{'peak MB':>10}{'patterns':>10}")
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        before: Window | None = None
        for window in grow(bank_of(TUNING), SIZES, Path(folder)):
            ratios = (
                f"{window.seconds / before.seconds:8.1f}{window.points / before.points:11.1f}" if before else " " * 19
            )
            above = "  ABOVE THE BAR" if window.seconds > SECONDS or window.megabytes > MB else ""
            took = f"{window.points:>8,}{window.seconds:>10.2f}{ratios}{window.megabytes:>10,.0f}{window.patterns:>10}"
            print(f"{took}{above}", flush=True)
            before = window


def measure(bank: str, seeds: Sequence[int], keep: Path | None) -> Table:
    """Every seed's week, made, run and scored in a folder of its own."""
    found, points, start = Table(), [], time.monotonic()
    for seed in seeds:
        with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
            week = make_week(seed, bank_of(bank), Path(folder))
            ran = run(week)
            scored = score(ran.patterns, week.plants)
            found.weeks.append(scored)
            points.append(ran.points)
            if keep:
                keep_week(keep, bank, week, ran, scored)
    took = time.monotonic() - start
    print(f"{bank}: {len(points)} weeks in {took:.0f} s, {min(points)} to {max(points)} points each", flush=True)
    return found


def show(title: str, table: Table) -> None:
    print(f"\n{title}\n{'':<22}{'recall':<36}precision")
    for kind, tally, recall, precision in table.rows():
        low = [share for share in (recall.value, precision.value) if share is not None and share < BAR]
        print(
            f"{kind:<22}{recall!s:<20}{f'{tally.recalled}/{tally.planted}':<16}"
            f"{precision!s:<20}{f'{tally.right}/{tally.found}':<10}{'below the bar' if low else ''}"
        )
    all_kinds = table.overall()
    print(
        f"{'all':<22}{all_kinds.recall or 0:<20.2f}{f'{all_kinds.recalled}/{all_kinds.planted}':<16}"
        f"{all_kinds.precision or 0:<20.2f}{f'{all_kinds.right}/{all_kinds.found}'}"
    )


def show_confusion(weeks: Sequence[Scored]) -> None:
    counts = confusion(weeks)
    columns = [*KINDS, MISSED]
    print(f"\nplanted, and found as{'':<3}" + "".join(f"{column[:11]:>12}" for column in columns))
    for kind in KINDS:
        print(f"{kind:<24}" + "".join(f"{counts.get((kind, column), 0) or '·':>12}" for column in columns))


def show_taken(weeks: Sequence[Scored]) -> None:
    print("\nwrongly found, by what it is")
    for what, kinds in sorted(wrongly_taken(weeks).items(), key=lambda item: -item[1].total()):
        print(f"  {kinds.total():>4}  {what}: {', '.join(f'{kind} {count}' for kind, count in kinds.most_common())}")


def keep_week(keep: Path, bank: str, week: Week, ran: Ran, scored: Scored) -> None:
    """A file of the week: what was planted with whether it was found, and each pattern with what it is."""
    keep.mkdir(parents=True, exist_ok=True)
    texts = {row["message_id"]: row["text"] for row in ran.messages.to_dicts()}
    judged = {each.found.name: each for each in scored.judged}
    told = {
        "seed": week.seed,
        "planted": [
            {
                "name": plant.name,
                "kind": plant.kind or None,
                "why_none": plant.why or None,
                "found_as": sorted(scored.kinds_found.get(plant.name, ())),
                "sessions": sorted(plant.sessions),
                "texts": [occurrence.texts for occurrence in plant.occurrences],
            }
            for plant in week.plants
        ],
        "patterns": [
            {
                "pattern_id": row["pattern_id"],
                "kind": row["kind"],
                "title": row["title"],
                "change": row["change"],
                "is": judged[row["pattern_id"]].where,
                "right": judged[row["pattern_id"]].hit and not judged[row["pattern_id"]].again,
                "evidence": [texts.get(e["message_id"], "")[e["start"] : e["end"]] for e in row["evidence"]],
            }
            for row in ran.rows
        ],
    }
    path = keep / f"{bank}-{week.seed:03}.json"
    path.write_text(json.dumps(told, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
