"""Fit the weights of the extractive observer, and tell how good it is on a session that it was not fitted on.

    python -m benchmarks.fit_observer [--write]

Two kinds of labelled sessions: the gold ones (8) and those of `benchmarks/labels` (20). Rows, by the scorer itself:
weights fitted on the one kind and scored on the other; every session scored with weights that were fitted without it
(`session left out`; sessions that share content are left out together) and without its whole project; the weights as
they are shipped, in-sample; and the baselines. `--write` writes `memory_pipeline/observations/quotes/weights.json`.

What is not fitted: the features, cues and filters were chosen with the gold sessions in view (about 350 settings), the
rule of what is high with the labels in view (about 150; the gold sessions were looked at seven times to test it). So no
row is free of all choosing. The labels' rows are lower because their sessions are short: see `labels/README.md`.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.common import GOLD, parser
from benchmarks.fitting import PENALTY, WEIGHT_OF_HIGH, Labelled, fit, labelled, observed, weights_of
from benchmarks.labels import label_folder
from benchmarks.observing import BASELINES, baseline, heading, line, rows, score, sessions
from memory_pipeline.observations.quotes import candidates as shipped
from memory_pipeline.observations.quotes.candidates import Weights, shipped_weights

FIGURES = ("recall", "recall_high", "high_as_high", "junk", "trap_rate")
SHARING = ("Hoper-J", "can1357")
"""Projects whose sessions repeat each other's content."""


def project(data: Labelled) -> str:
    return Path(data.session.file).name.split("__")[0]


def session_or_sharing(data: Labelled) -> str:
    return next((name for name in SHARING if name in data.session.file), data.session.file)


def fitted_on(data: Sequence[Labelled]) -> Weights:
    return weights_of(fit(data))


class Sessions:
    """The labelled sessions of both kinds, measured, and the folder that the scorer reads."""

    def __init__(self, folder: Path) -> None:
        gold = {path.name for path in (GOLD / "labels").glob("*.gold.json")}
        every = [labelled(session) for session in sessions(folder)]
        self.gold = [d for d in every if f"{Path(d.session.file).name}.gold.json" in gold]
        self.labels = [d for d in every if d not in self.gold]
        self.folder = folder

    @property
    def all(self) -> list[Labelled]:
        return self.gold + self.labels

    def left_out(self, fold_of: Callable[[Labelled], str]) -> dict[str, Weights]:
        """For each fold the weights that were fitted without it."""
        folds = {fold_of(d) for d in self.all}
        return {fold: fitted_on([d for d in self.all if fold_of(d) != fold]) for fold in sorted(folds)}

    def report(
        self, name: str, data: Sequence[Labelled], weights: Callable[[Labelled], Weights], *, by_session: bool = False
    ) -> dict[str, Any]:
        """Prints the scorer's figures of these sessions, each observed with its weights."""
        with tempfile.TemporaryDirectory() as temporary:
            some = Path(temporary)
            for d in data:
                label = f"{Path(d.session.file).name}.gold.json"
                (some / label).write_bytes((self.folder / label).read_bytes())
            found = [row for d in data for row in rows(d.session, observed(d, weights(d)))]
            figures = score(some, found)
        print(line(name, figures["TOTAL"]), flush=True)
        for file, values in figures.items():
            if by_session and file != "TOTAL":
                print(line(f"  {file}", values))
        return {figure: figures["TOTAL"][figure] for figure in FIGURES}


def all_rows(known: Sessions) -> dict[str, Any]:
    """Prints every row; gives the figures that go into the file."""
    on_labels, on_gold = fitted_on(known.labels), fitted_on(known.gold)
    story = {"fitted_on_labels_scored_on_gold": known.report("on labels -> gold", known.gold, lambda d: on_labels)}
    known.report("on gold -> labels", known.labels, lambda d: on_gold)
    for title, fold_of in (("session", session_or_sharing), ("project", project)):
        weights = known.left_out(fold_of)
        for kind, data in (("all", known.all), ("gold", known.gold), ("labels", known.labels)):
            by_session = (title, kind) == ("session", "all")
            row = f"{title} left out, {kind}"
            figures = known.report(row, data, lambda d: weights[fold_of(d)], by_session=by_session)  # noqa: B023
            story[f"{title}_left_out_{kind}"] = figures
    known.report("as shipped, gold", known.gold, lambda d: shipped_weights())
    known.report("as shipped, labels", known.labels, lambda d: shipped_weights())
    return story


def main() -> None:
    options = parser("fit_observer", __doc__)
    options.add_argument("--write", action="store_true", help="write weights.json")
    asked = options.parse_args()
    print(heading())
    with label_folder(with_gold=True) as folder, label_folder(with_gold=False) as labels:
        known = Sessions(folder)
        story, weights = all_rows(known), fitted_on(known.all)
        for kind in BASELINES:
            print(line(f"baseline {kind}, gold", score(GOLD / "labels", baseline(GOLD / "labels", kind))["TOTAL"]))
            print(line(f"baseline {kind}, labels", score(labels, baseline(labels, kind))["TOTAL"]))
    if asked.write:
        write(weights, story, [d.session.file for d in known.all])


def write(weights: Weights, story: dict[str, Any], files: Sequence[str]) -> None:
    """What was fitted, behind how it was."""
    target = Path(shipped.__file__).with_name(shipped.FILE)
    how = (
        f"benchmarks/fit_observer.py: logistic regression with a ridge of {PENALTY} and an offset for each session on "
        "whether the scorer finds a labelled fact in a unit, high facts counted "
        f"{WEIGHT_OF_HIGH:g} times. Figures: fitted on the labels of this repository and scored on "
        "the gold sessions; and on sessions, and on projects, that the weights had not seen. The features and cues "
        "were chosen on the gold sessions."
    )
    fitted = {"how": how, "when": str(date.today()), "sessions": sorted(files)} | story
    target.write_text(json.dumps({"fitted": fitted} | vars(weights), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
