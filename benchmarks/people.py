"""The extractive observer on people of whom its weights have seen nothing, beside the shipped weights and the cues.

    python -m benchmarks.people [--by-person]

All 48 labelled sessions: gold (8), `benchmarks/labels` (20) and `benchmarks/labels/strangers` (20). For each person the
weights are fitted on the sessions of all others and score that person's. A person is the owner of a repository, as
`SOURCES.tsv` beside the sessions names it: several projects of one owner are one person, and what shares content has
one owner. Half of the sessions are of one owner, entireio, who is several people in truth: leaving out all of them at
once is the stricter way.

Rows by kind of label and over all, each by the scorer itself: the shipped weights, which were fitted on gold and on
`benchmarks/labels` (there they are in-sample) and on no stranger; the weights without the person; and the baseline.
`junk` is the share of all observations that carry no labelled fact, `high_junk` that of the high ones.

What is not left out: the features, the cues and the rules for what is high were chosen with gold, `labels` and ten of
the strangers' sessions in view.
"""

import csv
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.common import FIXTURES, GOLD, MORE, parser
from benchmarks.fitting import Labelled, fit, labelled, observed, weights_of
from benchmarks.labels import LABELS, STRANGERS, restore
from benchmarks.observing import baseline, rows, score, sessions
from memory_pipeline.observations.quotes.candidates import Weights, shipped_weights

BASELINE = "cues"
FIGURES = ("recall", "recall_high", "high_as_high", "junk", "high_junk", "trap_rate", "budget", "high_obs")
GOLD_KIND, OWN_KIND, STRANGERS_KIND = KINDS = ("gold", "labels", "strangers")


@dataclass(frozen=True)
class Everybody:
    """The labelled sessions of all kinds; `folder` has them as the scorer and its baselines want them."""

    folder: Path
    kinds: dict[str, list[Labelled]]
    owners: dict[str, str]

    @property
    def all(self) -> list[Labelled]:
        return [d for kind in KINDS for d in self.kinds[kind]]

    def person(self, data: Labelled) -> str:
        return self.owners[data.session.file]

    def report(self, name: str, data: Sequence[Labelled], weights: Callable[[Labelled], Weights] | None) -> None:
        """Prints the scorer's figures of these sessions, observed with these weights, or by the baseline."""
        fixtures, gold = self.folder / "fixtures", self.folder / "gold"
        with tempfile.TemporaryDirectory() as temporary:
            some = Path(temporary)
            for d in data:
                label = f"{Path(d.session.file).name}.gold.json"
                (some / label).symlink_to(gold / "labels" / label)
            if weights:
                found = [row for d in data for row in rows(d.session, observed(d, weights(d)))]
            else:
                found = [json.loads(row) for row in baseline(some, BASELINE, gold).splitlines()]
            figures = score(some, found, fixtures)["TOTAL"]
            every = score(some, [row | {"priority": "high"} if "text" in row else row for row in found], fixtures)
        values = figures | {"junk": every["TOTAL"]["junk"], "high_junk": figures["junk"]}
        print(line(name, [values[figure] for figure in FIGURES]), flush=True)


def line(name: str, values: Sequence[Any]) -> str:
    return f"{name:44}" + "".join(f"{value!s:>13}" for value in values)


@contextmanager
def everybody() -> Iterator[Everybody]:
    """All labelled sessions and what is measured of them, in a temporary folder."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "gold").mkdir()
        for script in ("score.py", "baselines.py"):  # they look for `fixtures` beside the folder they are in
            shutil.copy(GOLD / script, folder / "gold")
        owners = {}
        for source in (FIXTURES, MORE):
            with (source / "SOURCES.tsv").open(encoding="utf-8", newline="") as file:
                for row in csv.DictReader(file, delimiter="\t"):
                    owners[row["file"]] = row["source_repo"].split("/")[0]
            for path in source.glob("*/*"):
                target = folder / "fixtures" / path.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.symlink_to(path)
        own = folder / "own"
        restore(own / OWN_KIND, FIXTURES, LABELS)
        restore(own / STRANGERS_KIND, MORE, STRANGERS)
        shutil.copytree(GOLD / "labels", own / GOLD_KIND)
        (folder / "gold" / "labels").mkdir()
        for label in own.glob("*/*.gold.json"):
            (folder / "gold" / "labels" / label.name).symlink_to(label)
        fixtures = folder / "fixtures"
        kinds = {kind: [labelled(s, fixtures) for s in sessions(own / kind, fixtures)] for kind in KINDS}
        yield Everybody(folder, kinds, owners)


def main() -> None:
    options = parser("people", __doc__)
    options.add_argument("--by-person", action="store_true", help="a row for each person, too")
    asked = options.parse_args()
    with everybody() as known:
        people = Counter(map(known.person, known.all))
        without = {person: weights_of(fit([d for d in known.all if known.person(d) != person])) for person in people}
        print(line(f"{len(people)} people", FIGURES))
        for kind, data in (*known.kinds.items(), ("all", known.all)):
            known.report(f"{kind} ({len(data)}): as shipped", data, lambda d: shipped_weights())
            known.report(f"{kind} ({len(data)}): person left out", data, lambda d: without[known.person(d)])
            known.report(f"{kind} ({len(data)}): baseline {BASELINE}", data, None)
        for person, count in sorted(people.items()) if asked.by_person else ():
            data = [d for d in known.all if known.person(d) == person]
            known.report(f"{person} ({count}): left out", data, lambda d: without[known.person(d)])


if __name__ == "__main__":
    main()
