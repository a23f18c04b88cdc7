"""Fit the metric by which users' sentences are compared, and tell how well it ranks what it has never seen.

    python -m benchmarks.fit_metric [--without-near] [--write FILE]

Fitted on the objections of `objections/` and `objections/rules/`, which are grouped by what they are about: linear
discriminant analysis, the covariance within a topic shrunk towards that of a sphere. Printed is, for four banks of
planted friction, none of which it is fitted on, the average precision of all pairs of objections that are about one
thing, in one language and in two, and of the line of a file that each is about: by each encoder, by both, and by the
metric. Topics coincide between files, wordings do not; the row "topics far from the bank" is of a metric that was
fitted without the topics that are near one of the bank's, so that it knows nothing of what it ranks.

``--without-near`` leaves out what is near a topic of `held_out` and `everyday`, by which figures of friction are told.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import parser
from benchmarks.fit_objections import WORDINGS
from benchmarks.planted_friction.bank import (
    EVERYDAY,
    HELD_OUT,
    KEPT_ASIDE,
    REPORTING,
    TUNING,
    UNHEARD,
    Bank,
    bank_of,
)
from benchmarks.planted_friction.model import REPEATED_CORRECTION, RULE_VIOLATED
from memory_pipeline.friction.metric import Metric, joined
from memory_pipeline.text.phrases import MULTILINGUAL, phrase_encoder

BANKS = (TUNING, REPORTING, UNHEARD, KEPT_ASIDE)
KEPT_APART = (HELD_OUT, EVERYDAY)
DIRECTIONS = 256
"""Of 128 to 512 none is better by more than .01."""
SHRUNK = 0.3
"""Of the covariance within a topic: from .2 to .8 the mean precision changes by .02."""
NEAR = 0.4
"""Cosine of the means of two topics from which they may be one: .4 takes out many that are not, too."""
Matrix = Any


class Wording(NamedTuple):
    topic: str
    language: str
    is_line: bool
    text: str


class Wordings:
    """Texts with their vectors."""

    def __init__(self, all_of: Sequence[Wording], vectors: Matrix | None = None) -> None:
        self.all, self.vectors = all_of, vectors
        if vectors is None:
            self.vectors = phrase_encoder().encode([one.text for one in all_of])

    def groups(self) -> dict[str, list[int]]:
        found = defaultdict(list)
        for position, one in enumerate(self.all):
            found[one.topic].append(position)
        return {topic: of for topic, of in found.items() if len(of) > 1}

    def without(self, topics: Collection[str]) -> Wordings:
        kept = [position for position, one in enumerate(self.all) if one.topic not in topics]
        return Wordings([self.all[position] for position in kept], self.vectors[kept])

    def near(self, metric: Metric, other: Wordings) -> set[str]:
        """The topics whose mean is near one of the other's."""
        means, of_other = self.means(metric), other.means(metric)
        likest = (np.stack([*means.values()]) @ np.stack([*of_other.values()]).T).max(axis=1)
        return {topic for topic, likeness in zip(means, likest, strict=True) if likeness >= NEAR}

    def means(self, metric: Metric) -> dict[str, Matrix]:
        seen = metric.seen(self.vectors)
        found = {topic: seen[of].mean(axis=0) for topic, of in self.groups().items()}
        return {topic: mean / np.linalg.norm(mean) for topic, mean in found.items()}


def fit(given: Wordings) -> Metric:
    """With the least variance within the wordings of a topic beside that between topics."""
    vectors, groups = joined(given.vectors).astype(float), [*given.groups().values()]
    mean = np.mean([vectors[position] for of in groups for position in of], axis=0)
    means = np.stack([vectors[of].mean(axis=0) for of in groups]) - mean
    within = np.vstack([vectors[of] - vectors[of].mean(axis=0) for of in groups])
    covariance = within.T @ within / (len(within) - len(groups))
    size = len(covariance)
    shrunk = (1 - SHRUNK) * covariance + SHRUNK * np.trace(covariance) / size * np.eye(size)
    values, directions = np.linalg.eigh(shrunk)
    whitened = directions * values**-0.5 @ directions.T
    values, directions = np.linalg.eigh(whitened @ (means.T @ means / len(means)) @ whitened)
    best = np.argsort(-values)[:DIRECTIONS]
    return Metric(mean.astype(np.float16).astype(np.float32), (whitened @ directions[:, best]).astype(np.float16))


def far_from(banks: Iterable[str]) -> Metric:
    """Fitted without what is near a topic of these banks: on them it is as good as on what nobody has thought of."""
    given = objections()
    metric = fit(given)
    return fit(given.without({topic for name in banks for topic in given.near(metric, planted(bank_of(name)))}))


def objections() -> Wordings:
    found = []
    for path in sorted([*WORDINGS.glob("*.toml"), *WORDINGS.glob("rules/*.toml")]):
        for topic in tomllib.loads(path.read_text("utf-8")).get("topic", []):
            found += _wordings(f"{path.stem}/{topic['name']}", topic.get("objections") or topic["says"], topic)
    return Wordings(found)


def planted(bank: Bank) -> Wordings:
    topics = {topic["name"]: topic for kind in (REPEATED_CORRECTION, RULE_VIOLATED) for topic in bank.topics(kind)}
    return Wordings([one for name, topic in topics.items() for one in _wordings(name, topic["says"], topic)])


def _wordings(name: str, said: Mapping[str, Sequence[str]], topic: Mapping[str, Any]) -> list[Wording]:
    told = [Wording(name, language, False, text) for language, texts in said.items() for text in dict.fromkeys(texts)]
    return told + [Wording(name, language, True, text) for language, text in topic.get("line", {}).items()]


def precisions(given: Wordings, seen: Matrix) -> list[float]:
    """Of pairs of objections in one language, in two, in any; and of each with the lines."""
    said = [i for i, one in enumerate(given.all) if not one.is_line]
    lines = [i for i, one in enumerate(given.all) if one.is_line]
    topics, languages = (np.array([one[part] for one in given.all]) for part in (0, 1))
    upper = np.triu_indices(len(said), 1)
    alike = (seen[said] @ seen[said].T)[upper]
    same = (topics[said][:, None] == topics[said][None, :])[upper]
    one_language = (languages[said][:, None] == languages[said][None, :])[upper]
    about = (seen[said] @ seen[lines].T).ravel(), (topics[said][:, None] == topics[lines][None, :]).ravel()
    pairs = ((alike[some], same[some]) for some in (one_language, ~one_language, slice(None)))
    return [average_precision(*each) for each in (*pairs, about)]


def average_precision(alike: Matrix, same: Matrix) -> float:
    hits = same[np.argsort(-alike, kind="stable")]
    return float((np.cumsum(hits) / np.arange(1, len(hits) + 1))[hits].mean())


def main() -> None:
    options = parser("fit_metric", __doc__)
    options.add_argument("--without-near", action="store_true", help="leave out topics near those that figures are of")
    options.add_argument("--write", type=Path, metavar="FILE", help="where the metric goes")
    chosen = options.parse_args()
    given = objections()
    metric = fit(given)
    if chosen.without_near:
        near = {topic for name in KEPT_APART for topic in given.near(metric, planted(bank_of(name)))}
        print(f"{len(near)} of {len(given.groups())} topics are left out")
        given = given.without(near)
        metric = fit(given)
    print(f"{len(given.all)} wordings of {len(given.groups())} topics\n")
    print(f"{'average precision':<28}{'one language':>14}{'two':>8}{'any':>8}{'lines':>8}")
    for name in BANKS:
        bank = planted(bank_of(name))
        apart = fit(given.without(given.near(metric, bank)))
        rows = {
            "multilingual": bank.vectors[:, :MULTILINGUAL],
            "MiniLM": bank.vectors[:, MULTILINGUAL:],
            "both": joined(bank.vectors),
            "metric, topics far from it": apart.seen(bank.vectors),
            "metric": metric.seen(bank.vectors),
        }
        print(name)
        for row, seen in rows.items():
            one, two, every, lines = precisions(bank, seen)
            print(f"  {row:<28}{one:>12.2f}{two:>8.2f}{every:>8.2f}{lines:>8.2f}")
    if chosen.write:
        np.savez_compressed(chosen.write, mean=metric.mean.astype(np.float16), directions=metric.directions)


if __name__ == "__main__":
    main()
