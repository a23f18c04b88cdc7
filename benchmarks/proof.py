"""Whether memory shows the right thing when it is needed, on public data and beside baselines.

    python -m benchmarks.proof [--only PART]... [--memorycode DIR] [--folder DIR] [--out DIR]

1. `decisions`: sde-bench's tasks; the decision as of the task.
2. `history`: what the users of three projects had to say again, as two readers found who saw nothing but what was
   typed (`proof_parts/repeats.csv`: places only); the memory of the day before. `careful` is the same with recorded
   answers of careful readers in place of a model, for all sessions of agentv and sixteen of the cli's.
3. `preferences`: dialogues of MemoryCode in which rules change; `--memorycode` is the folder `dataset` of a checkout.

Shares have an interval of 95 %. `--folder` keeps the workspaces, which take minutes, for the next run; `--out` keeps
each case. Nothing was tuned on these cases. What is not shown: no agent was run, so the shares are opportunities.
"""

import tempfile
from pathlib import Path

from benchmarks.common import BENCH, MORE, parser
from benchmarks.proof_parts import decisions, preferences, real_history

PARTS = ("decisions", "history", "careful", "preferences")


def main() -> None:
    options = parser("proof", __doc__)
    options.add_argument("--only", action="append", choices=PARTS, help="this part alone; may be given again")
    options.add_argument("--memorycode", type=Path, metavar="DIR", help="the folder with the dialogues of MemoryCode")
    options.add_argument("--folder", type=Path, metavar="DIR", help="where the workspaces are kept")
    options.add_argument("--out", type=Path, metavar="DIR", help="where the cases are kept, a file for each part")
    asked = options.parse_args()
    parts = asked.only or PARTS
    with tempfile.TemporaryDirectory() as temporary:
        folder: Path = asked.folder or Path(temporary)
        if "decisions" in parts and _is_there(BENCH):
            decisions.run(folder / "decisions", asked.out)
        if "history" in parts and _is_there(MORE):
            real_history.run(folder / "history", asked.out)
        if "careful" in parts and _is_there(MORE):
            real_history.run_careful(folder / "careful", asked.out)
        if "preferences" in parts:
            if asked.memorycode and asked.memorycode.is_dir():
                preferences.run(asked.memorycode, folder / "preferences", asked.out)
            else:
                print("\n3. changing preferences: skipped, as --memorycode names no folder.")


def _is_there(data: Path) -> bool:
    if not data.exists():
        print(f"There is no {data}: skipped.")
    return data.exists()


if __name__ == "__main__":
    main()
