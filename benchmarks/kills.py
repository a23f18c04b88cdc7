"""Kills reflecting, proposing, reviewing and promoting at random moments, and compares what the next run makes of it.

    python -m benchmarks.kills [SESSIONS_DIR] [--trials N] [--seed S] [--only NUMBER]

The workspace is that of ten days of SESSIONS_DIR (default ../shared/fixtures, else the bundled examples), with lines of
a person added so that each end of a proposal comes up. Over it go four runs, with a person in between who approves,
rejects, edits and deletes lines of REVIEW.md, writes into MEMORY.md and lets a session of a day grow that was done.
A trial takes one of the runs as it was before, kills it with SIGKILL, runs it again and compares every byte of
MEMORY.md, REVIEW.md, the daily logs and the tables with what the run left that nobody killed. Half of the moments are
chosen by the clock, half before or after one of the calls that write, rename, remove or flush a file. A quarter of the
second runs is killed too and run a third time; a quarter comes a day later and must differ in nothing but times. Every
tenth trial goes on to the last run.

The baseline writes files in place and is killed around these writes: it must be found out, or the comparison sees
nothing.
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
from memory_pipeline.stage import bring_up_to_date
from memory_pipeline.workspace import Workspace
from memory_pipeline_tests.killing.chain import Chain, Left, Trial
from memory_pipeline_tests.killing.forks import forked
from memory_pipeline_tests.killing.story import STEPS, workspace_of

DAYS = 10
MIN_DAYS = 6
BASELINE_SHARE, MIN_BASELINE = 5, 20


def main() -> None:
    options = parser("kills", __doc__)
    options.add_argument("sessions", nargs="?", type=Path, default=SESSIONS)
    options.add_argument("--trials", type=int, default=200)
    options.add_argument("--seed", default="1")
    options.add_argument("--only", type=int, help="repeat this trial alone; by the clock as near as the machine can")
    arguments = options.parse_args()
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
