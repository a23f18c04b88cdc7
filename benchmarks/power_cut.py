"""Cuts the power at random moments of a month, and compares what the next runs make of what was flushed.

    python -m benchmarks.power_cut [--cuts N] [--minutes M] [--seed S]

The month is that of `kills --month`: all stages but Dagster, over thirty days, with models on loopback, in three runs
with a person in between. A process is killed at a moment chosen by the clock, or before or after a call that changes a
file, and the workspace becomes what a power cut may leave of it: of each folder the names that were flushed or those of
now, of each file the bytes that were flushed or those of now, by chance; of what was never flushed nothing, or zeros.
So it goes on until each run is through, and once more after that. Then every byte of MEMORY.md, REVIEW.md, the daily
logs and the tables must be as in a month that nobody disturbed, the index whole, and no request sent or paid twice
whose answer was kept. Nobody does anything by hand.

It is harder than a file system is: ext4 and its like write names in the order in which they were changed. What it does
not show: pages that are torn within a file, disks that lie about flushing, what SQLite does (Dagster's record, which
flushes by rules of its own), and the index in its parts: it outlasts a cut as a whole or loses all of the run.

The baseline flushes files and no folders, as most programs do: it must be found out.
"""

import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import parser
from benchmarks.kills import counted, tell_month
from memory_pipeline_tests.killing.month import STEPS, model_of
from memory_pipeline_tests.killing.month_kills import Month, MonthTrial

CUTS_OF_A_MONTH = 12


def main() -> None:
    options = parser("power_cut", __doc__)
    options.add_argument("--cuts", type=int, default=100, help="about so many")
    options.add_argument("--minutes", type=float, default=60, help="after which no new month begins")
    options.add_argument("--seed", default="1")
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as folder, model_of(Path(folder)) as place:
        month, start = Month.begun(place), time.monotonic()
        trials: list[MonthTrial] = []
        wrong = cuts = 0
        while cuts < arguments.cuts and time.monotonic() - start < arguments.minutes * 60:
            trials.append(month.trial(f"{arguments.seed}-{len(trials)}", CUTS_OF_A_MONTH, power=True))
            cuts += trials[-1].cuts
            wrong += tell_month(trials[-1])
        print(f"{cuts} power cuts in {len(trials)} months and {time.monotonic() - start:.0f} s")
        print(f"  fell in      {counted(STEPS, [step for trial in trials for step in trial.steps])}, or after a run")
        sent = sum(trial.requests - month.requests for trial in trials)
        print(f"  sent again   {sent} requests that were out when the power went")
        print(f"  unequal      {wrong}")
        found_out = tell_month(month.trial(f"{arguments.seed}-plain", CUTS_OF_A_MONTH, power=True, plain=True))
        print("the baseline " + ("is found out" if found_out else "was not found out: this run proves nothing"))
    sys.exit(0 if found_out and not wrong else 1)


if __name__ == "__main__":
    main()
