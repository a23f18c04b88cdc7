"""What is high and what is offered without a model, on labelled sessions of people whom nothing was tuned on.

    python -m benchmarks.strangers [--looked-at] [--list]

Twenty sessions of ten people in `../shared/more-sessions` are labelled in `benchmarks/labels/strangers`, by readers who
saw nothing but the sessions. Earlier rules for what is high and offered were chosen with ten of these in view
(`labels.is_looked_at`) and with those of `benchmarks/observing.py`; the words of `text/languages` with none. Figures
are of the ten others, by six people of whom one has a session among the first ten, too; `--looked-at` gives those of
the first ten.

All go through `memory run --all` into an empty workspace, twice: by this package, and by commit `BEFORE`. Lines are
held against the labels as in `benchmarks/promoted.py`: `junk` is the share that carries no labelled fact.

Last, how far two readers of the same five sessions agree: facts of the one that the other has, and as high ones.
"""

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.common import MORE, ROOT, parser, run_everything
from benchmarks.labels import SECOND_READER, STRANGERS, is_looked_at, restored, scorer, texts_of
from benchmarks.promoted import FIGURES, Labelled, Line, Stages, figures
from memory_pipeline.lake.store import Lake
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import HIGH


def labelled(folder: Path) -> dict[str, Labelled]:
    """The sessions by the names of their files."""
    found = {}
    for file in sorted(folder.glob("*.json")):
        label = json.loads(file.read_text("utf-8"))
        path = MORE / label["file"]
        label = restored(label, texts_of(path))
        flat = tuple((number, " ".join(text.split())) for number, text in scorer().spoken(path))
        found[path.name] = Labelled(label["file"], label["facts"], label["traps"], flat)
    return found


BEFORE = "46ebf5e"
"""The commit that is run beside this one: with a fitted rule of what is high, and offers of what was said twice."""


def before(folder: Path) -> Path:
    """The checkout of the commit before."""
    archive = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", f"{folder}"], input=archive, check=True)
    return folder


def stages_of(code: Path, files: Iterable[str], folder: Path) -> Stages:
    for file in files:
        target = folder / "sessions" / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(MORE / file, target)
    run_everything(code, [folder / "sessions"], folder / "workspace", folder / "home")
    lake = Lake(Settings(workspace=folder / "workspace").lake_dir)
    return Stages(lake, [Path(file).name for file in files])


def report(name: str, sessions: dict[str, Labelled], lines: dict[str, list[Line]]) -> None:
    values = figures(sessions, {file: lines.get(file, []) for file in sessions})
    count = sum(len(lines.get(file, [])) for file in sessions)
    print(f"  {name:28}" + "".join(f"{value:>12}" for value in values) + f"{count / len(sessions):>12.1f}", flush=True)


def agreement(first: dict[str, Labelled], second: dict[str, Labelled]) -> None:
    """Of the facts of each reader: how many the other has, and how many of the high ones as high ones."""
    both = [(first[name], second[name]) for name in second]
    for title, pairs in (("first", both), ("second", [(b, a) for a, b in both])):
        found = [(own["priority"], _priorities(own, other)) for mine, other in pairs for own in mine.facts]
        highs = [priorities for priority, priorities in found if priority == HIGH]
        print(
            f"  the {title} reader: {sum(bool(p) for _, p in found)} of {len(found)} facts, "
            f"{sum(map(bool, highs))} of {len(highs)} high ones, {sum(HIGH in p for p in highs)} of these as high"
        )


def _priorities(fact: Mapping[str, Any], other: Labelled) -> set[str]:
    """Those of the other reader's facts that say it."""
    line = Line(fact["text"], (" ".join(fact["quote"].split()),))
    return {theirs["priority"] for theirs in other.facts if other.carries(line, theirs)}


def main() -> None:
    options = parser("strangers", __doc__)
    options.add_argument("--looked-at", action="store_true", help="the ten that the rules were chosen with")
    options.add_argument("--list", action="store_true", help="print what is offered, and the facts that it carries")
    asked = options.parse_args()
    every = labelled(STRANGERS)
    chosen = {n: s for n, s in every.items() if is_looked_at(n) == asked.looked_at}
    print(f"{len(chosen)} sessions{'':18}" + "".join(f"{name:>12}" for name in (*FIGURES, "a session")))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "code").mkdir()
        for title, code in (("before", before(folder / "code")), ("now", ROOT)):
            at = stages_of(code, [s.file for s in chosen.values()], folder / title)
            observed = at.observations.values()
            report(f"observed, {title}", chosen, at.lines(observed))
            report(f"high, {title}", chosen, at.lines(o for o in observed if o["priority"] == HIGH))
            offered = at.lines(at.queue)
            report(f"offered, {title}", chosen, offered)
        if asked.list:
            for name, session in chosen.items():
                for line in offered.get(name, []):
                    carried = [fact["id"] for fact in session.facts if session.carries(line, fact)]
                    print(f"    {name[:30]} {carried or 'JUNK'} {line.text[:200]}")
    print("Two readers of five sessions:")
    agreement(every, labelled(SECOND_READER))


if __name__ == "__main__":
    main()
