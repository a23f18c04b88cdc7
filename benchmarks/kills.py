"""Kills runs at random moments, and compares what the next runs make of it with what nobody disturbed.

    python -m benchmarks.kills [SESSIONS_DIR] [--trials N] [--seed S] [--only NUMBER]
    python -m benchmarks.kills --month [--kills N] [--minutes M] [--seed S]

A **chain** is reflecting, proposing, reviewing and promoting without a model, over ten days of SESSIONS_DIR (default
../shared/fixtures, else the bundled examples), with lines of a person added so that each end of a proposal comes up:
four runs, with a person in between who approves, rejects, edits and deletes lines of REVIEW.md, writes into MEMORY.md
and lets a session of a day grow that was done. A trial takes one of the runs as it was before, kills it with SIGKILL,
runs it again and compares every byte of MEMORY.md, REVIEW.md, the daily logs and the tables. A quarter of the second
runs is killed too and run a third time; a quarter comes a day later and must differ in nothing but times. Every tenth
trial goes on to the last run.

A **month** is all stages but Dagster, from the session files to MEMORY.md, over thirty days, with an observer, a
reflector and a writer of friction patterns on loopback: three runs with a person in between, each killed again and
again until it is through. The same bytes are compared, the index must have a point for each row, and of money: no
request is sent of which the answer is kept, each that was sent stands in the ledger as often as it was sent, and none
is paid there twice. (A request that was out when the kill fell is sent again; nobody has its answer.)

Half of the moments are chosen by the clock, half before or after one of the calls that write, rename, remove or flush
a file. The baseline of both writes a user's files in place, that of the month keeps no answer either: it must be found
out, or the comparison sees nothing.
"""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime
from pathlib import Path

from benchmarks.common import SESSIONS, parser
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace
from memory_pipeline_tests.killing.chain import Chain, Left, Trial
from memory_pipeline_tests.killing.forks import forked
from memory_pipeline_tests.killing.month import STEPS as MONTH_STEPS
from memory_pipeline_tests.killing.month import model_of
from memory_pipeline_tests.killing.month_kills import Month, MonthTrial
from memory_pipeline_tests.killing.story import STEPS, workspace_of

DAYS = 10
MIN_DAYS = 6
KILLS_OF_A_MONTH = 25
BASELINE_SHARE, MIN_BASELINE = 5, 20


def main() -> None:
    options = parser("kills", __doc__)
    options.add_argument("sessions", nargs="?", type=Path, default=SESSIONS)
    options.add_argument("--trials", type=int, default=200)
    options.add_argument("--seed", default="1")
    options.add_argument("--only", type=int, help="repeat this trial alone; by the clock as near as the machine can")
    options.add_argument("--month", action="store_true", help="thirty days with a model, through all stages")
    options.add_argument("--kills", type=int, default=500, help="about so many, of the month")
    options.add_argument("--minutes", type=float, default=60, help="of the months, after which none begins")
    arguments = options.parse_args()
    if arguments.month:
        sys.exit(1 if month_killed(arguments.seed, arguments.kills, arguments.minutes * 60) else 0)
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template"
        days = [date.fromisoformat(day) for day in forked(lambda: observed(arguments.sessions, template))]
        if len(days) < MIN_DAYS:
            sys.exit(f"{arguments.sessions} has {len(days)} days with observations; {MIN_DAYS} are needed.")
        chain = Chain.begun(Path(folder), days, template)
        whole = chain.undisturbed()
        print(f"{len(days)} days, {days[0]} to {days[-1]}; {len(whole)} runs of", end=" ")
        print(", ".join(f"{left.seconds:.2f} s and {left.calls} calls" for left in whole))
        numbers = range(arguments.trials) if arguments.only is None else [arguments.only]
        wrong = killed(chain, whole, arguments.seed, numbers, plain=False)
        if arguments.only is None:
            share = range(max(MIN_BASELINE, arguments.trials // BASELINE_SHARE))
            found_out = killed(chain, whole, arguments.seed, share, plain=True)
            print("" if found_out else "\nThe baseline was not found out: this run proves nothing.")
            wrong += not found_out
    sys.exit(1 if wrong else 0)


def killed(chain: Chain, whole: Sequence[Left], seed: str, numbers: Sequence[int], *, plain: bool) -> int:
    """Print what became of these trials; returns how many were not as they should be."""
    start = time.monotonic()
    trials = [chain.trial(whole, f"{seed}-{n}", plain=plain, to_the_end=n % 10 == 0) for n in numbers]
    name = "baseline, files written in place" if plain else "as it is"
    print(f"\n{name}: {len(trials)} kills in {time.monotonic() - start:.0f} s")
    print(f"  fell in      {counted(STEPS, [t.step for t in trials])}")
    print(f"  chosen by    {counted(('clock', 'call'), [t.kind for t in trials])}")
    print(f"  run again    {counted(('at once', 'killed again', 'tomorrow'), [t.again for t in trials])}")
    wrong = [trial for trial in trials if trial.wrong]
    print(f"  unequal      {len(wrong)}")
    for trial in wrong[: 3 if plain else None]:
        explain(trial)
    temporary_files = Counter(Path(path).parts[0] for trial in trials for path in trial.temporary_files)
    print(f"  left behind  {', '.join(f'{n} files in {where}/' for where, n in temporary_files.items()) or 'nothing'}")
    return len(wrong)


def month_killed(seed: str, kills: int, seconds: float) -> int:
    """Print what became of a month that was killed so often; returns how much is wrong."""
    with tempfile.TemporaryDirectory() as folder, model_of(Path(folder)) as place:
        month = Month.begun(place)
        runs = ", ".join(f"{run.seconds:.1f} s and {run.calls} calls" for run in month.runs)
        print(f"a month of {len(month.runs)} runs: {runs}; {month.requests} requests to the model", flush=True)
        wrong = fallen = 0
        start = time.monotonic()
        trials: list[MonthTrial] = []
        while fallen < kills and time.monotonic() - start < seconds:
            trials.append(month.trial(f"{seed}-{len(trials)}", KILLS_OF_A_MONTH))
            fallen += len(trials[-1].steps)
            wrong += tell_month(trials[-1])
        steps = [step for trial in trials for step in trial.steps]
        print(f"{fallen} kills in {len(trials)} months and {time.monotonic() - start:.0f} s")
        print(f"  fell in      {counted(MONTH_STEPS, steps)}")
        print(
            f"  chosen by    clock {sum(t.by_clock for t in trials)}, call {fallen - sum(t.by_clock for t in trials)}"
        )
        sent = sum(trial.requests - month.requests for trial in trials)
        print(f"  sent again   {sent} requests that were out when a kill fell")
        print(f"  unequal      {wrong}")
        found_out = tell_month(month.trial(f"{seed}-plain", KILLS_OF_A_MONTH, plain=True))
        print("the baseline " + ("is found out" if found_out else "was not found out: this run proves nothing"))
    return wrong + (not found_out)


def tell_month(trial: MonthTrial) -> int:
    """Print what is wrong; returns how much."""
    for line in trial.wrong[:5]:
        print(f"    seed {trial.seed}, {len(trial.steps)} kills: {line}", flush=True)
    return len(trial.wrong)


def explain(trial: Trial) -> None:
    print(f"    seed {trial.seed}: run {trial.run}, {trial.step}, {trial.moment}; then {trial.again}:")
    for line in trial.wrong[:5]:
        print(f"      {line}")


def counted(names: Sequence[str], found: Sequence[str]) -> str:
    return ", ".join(f"{name} {found.count(name)}" for name in names)


def observed(sessions: Path, workspace: Path) -> list[str]:
    """Read and observe the first days of these sessions; returns those that have observations."""
    settings, lake = workspace_of(workspace)
    catalogue = Catalogue(lake, settings)
    catalogue.refresh(find_sources([sessions]))
    stages = (
        SessionsStage(Workspace(settings, lake), catalogue, datetime.now(UTC)),
        ObservationsStage.from_workspace(Workspace(settings, lake)),
    )
    found: list[str] = []
    for day in catalogue.days():
        for stage in stages:
            bring_up_to_date(stage, lake, day)
        if lake.read("observations", [day]).height:
            found.append(f"{day}")
        if len(found) == DAYS:
            break
    return found


if __name__ == "__main__":
    main()
