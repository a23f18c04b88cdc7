"""Fit what tells an environment that is not as it should be from a failure of the work, and print how well it does.

    python -m benchmarks.fit_errors [--write FILE]

The files of `errors/` have what failed commands print, each problem in two or three sessions: of the `environment`, a
`failure` of the work, or a `misuse`, a call that is wrong itself. Each file was written by a language model that saw
nothing of the others or of the code; in most half of the problems are told in words that deceive (a test asserts that
a connection is refused; a runtime that is too old calls good code a syntax error). Beside them the banks `tuning` and
`reporting` of planted friction.

Printed is, for each source, by weights fitted on the others: the area under the curve; how many problems of the
environment are told as such, and how many others as none. Beside it the same by the patterns of `friction/drift.py`
alone. `--write` writes the weights, those that are shipped to `memory_pipeline/friction/environment.json`.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.common import parser
from benchmarks.fit_objections import Example, Fitting, area
from benchmarks.planted_friction.bank import REPORTING, TUNING, bank_of
from benchmarks.planted_friction.model import CONFIGURATION_DRIFT, RECURRING_FAILURE, TOOL_MISUSE
from memory_pipeline.friction.attempts import errors_in
from memory_pipeline.friction.drift import drifting
from memory_pipeline.friction.environment import end_of, parts_of_output

FILES = Path(__file__).with_name("errors")
ENVIRONMENT = "environment"


def outputs() -> Iterator[Example]:
    """The end of each output; labelled by whether it is of the environment."""
    for path in sorted(FILES.glob("*.toml")):
        for problem in tomllib.loads(path.read_text("utf-8"))["error"]:
            is_environment = problem["kind"] == ENVIRONMENT
            for output in problem["outputs"]:
                yield Example(end_of(output), is_environment, f"{path.stem}/{problem['name']}", "en", path.stem)
    for name in (TUNING, REPORTING):
        bank, chance = bank_of(name), random.Random(1)
        for kind in (CONFIGURATION_DRIFT, RECURRING_FAILURE, TOOL_MISUSE):
            for topic in (t for t in bank.topics(kind) if "error" in t):
                for _ in range(2):  # with other numbers and hashes
                    end = end_of(bank.filled(topic["error"], chance))
                    yield Example(end, kind == CONFIGURATION_DRIFT, f"{name}/{topic['name']}", "en", name)
        for command, output in bank.decoys["tdd"]:
            yield Example(end_of(bank.filled(output, chance)), False, f"{name}/{command}", "en", name)


def told(label: np.ndarray, found: np.ndarray) -> str:
    shares = f"{(found[label == 1] > 0).mean():.2f} of {int((label == 1).sum()):<5}"
    return f"{shares} others as none {(found[label == 0] <= 0).mean():.2f} of {int((label == 0).sum()):<5}"


def main() -> None:
    options = parser("fit_errors", __doc__)
    options.add_argument("--write", type=Path, metavar="FILE", help="where the weights go")
    chosen = options.parse_args()
    fitting = Fitting(list(outputs()), parts_of_output)
    by_patterns = np.array([2.0 * any(map(drifting, errors_in(e.text))) - 1 for e in fitting.given])
    everything = np.zeros(len(fitting.given))
    for source in dict.fromkeys(fitting.sources.tolist()):
        own = fitting.sources == source
        everything[own] = fitting.logits(fitting.without(source), own)
    for source in (*dict.fromkeys(fitting.sources.tolist()), "all"):
        own = (fitting.sources == source) | (source == "all")
        label, found = fitting.label[own], everything[own]
        under = area(found[label == 1], found[label == 0])
        print(f"{source:<25}area {under:.2f}  environment as such {told(label, found)}", flush=True)
        print(f"{'':<25}by patterns alone               {told(label, by_patterns[own])}")
    if chosen.write:
        fitted = fitting.fit(range(len(fitting.given)))
        chosen.write.write_text(json.dumps(fitted, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
