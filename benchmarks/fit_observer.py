"""Fit the weights of the extractive observer, and tell how good it is on a session that it was not fitted on.

    python benchmarks/fit_observer.py [--lexical] [--write]

For each labelled session the weights are fitted, and the threshold of high chosen, on the other ones alone; the
choice leaves out one of those in turn. Beside it stand the same figures in-sample and the baselines.
`--lexical` leaves out the set that needs a model; `--write` writes `memory_pipeline/observations/weights.json`.

A unit counts as worth keeping when the scorer would find a gold fact in it; those that hold a high fact count double.
What was not fitted, and was chosen with all of these sessions in view: the cues, the features, the filters, `COST`,
`REDUNDANCY`, and the segments' numbers. About 300 settings were compared: expect .05 to .10 less on others.
"""

import importlib.util
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from observing import BASELINES, SHARED, Session, baseline, heading, line, rows, score, sessions

from memory_pipeline.observations import weights as shipped
from memory_pipeline.observations.candidates import Measured, measured
from memory_pipeline.observations.extractive import ExtractiveObserver
from memory_pipeline.observations.features import ENCODED, FEATURES, Window
from memory_pipeline.observations.observer import Segment
from memory_pipeline.observations.weights import Weights
from memory_pipeline.text.encoder import Encoder

GOLD, FIXTURES = SHARED / "gold", SHARED / "fixtures"
WORTH_OF_HIGH = 2.0
HIGHS = (0.5, 0.55, 0.6)
PENALTY = 0.1
"""Of the ridge. It only keeps the fit finite: a third or three times as much does as well."""
COST, REDUNDANCY = 0.3, 0.8
"""From 0.2 to 0.4, and from 0.6 to 1, do as well within the noise, so nothing is chosen here."""
OBSERVER = ExtractiveObserver(min_budget=0)


def _scorer() -> Any:
    spec = importlib.util.spec_from_file_location("score", GOLD / "score.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SCORER = _scorer()


@dataclass(frozen=True, eq=False)
class Labelled:
    """A session measured, and for each of its units whether the scorer finds a fact in it."""

    session: Session
    found: Measured
    features: np.ndarray
    is_fact: np.ndarray
    worth: np.ndarray
    hits: Callable[[str, tuple[str, ...]], tuple[frozenset[int], frozenset[int]]]
    """Numbers of the facts and of the traps that a text with its evidence holds."""


def labelled(session: Session, encoder: Encoder | None) -> Labelled:
    found = measured(Window.of(session.said), encoder)
    spoken = [(n, " ".join(text.split())) for n, text in SCORER.spoken(FIXTURES / session.file)]

    @cache
    def hits(text: str, evidence: tuple[str, ...]) -> tuple[frozenset[int], frozenset[int]]:
        spans = [" ".join(e.split()) for e in evidence[:3] if len(e.strip()) >= 12]
        lines = {n for n, said in spoken for e in spans if e in said}
        words = set(SCORER.words(text))
        facts = (i for i, fact in enumerate(session.gold["facts"]) if _finds(fact, text.lower(), words, lines))
        traps = (i for i, t in enumerate(session.gold["traps"]) if SCORER.overlap(t["quote"], words) >= 0.6)
        return frozenset(facts), frozenset(traps)

    facts = [hits(unit.text, _evidence(session, unit.places))[0] for unit in found.units]
    high = {i for i, fact in enumerate(session.gold["facts"]) if fact["priority"] == "high"}
    is_fact = np.array([float(bool(f)) for f in facts])
    worth = np.array([WORTH_OF_HIGH if f & high else 1.0 for f in facts])
    return Labelled(session, found, np.array(found.rows), is_fact, worth, hits)


def _evidence(session: Session, places: Iterable[tuple[int, int, int]]) -> tuple[str, ...]:
    return tuple(session.said[position].text[start:end] for position, start, end in places)


def _finds(fact: dict[str, Any], text: str, words: set[str], lines: set[int]) -> bool:
    """The scorer's rule."""
    keys = sum(k.lower() in text for k in fact["keywords"]) * 2 >= len(fact["keywords"])
    same = max(SCORER.overlap(fact["text"], words), SCORER.overlap(fact["quote"], words)) >= 0.35
    return (keys and same) or ((keys or same) and bool(lines & {fact["line"], *fact.get("other_lines", [])}))


def fit(data: Sequence[Labelled]) -> np.ndarray:
    """Logistic regression with a ridge, by Newton's method; the intercept comes last and is not penalised."""
    x = np.vstack([np.c_[d.features, np.ones(len(d.features))] for d in data])
    y, worth = np.concatenate([d.is_fact for d in data]), np.concatenate([d.worth for d in data])
    ridge = PENALTY * np.eye(x.shape[1])
    ridge[-1, -1] = 1e-6
    beta = np.zeros(x.shape[1])
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ beta))
        gradient = x.T @ (worth * (p - y)) + ridge @ beta
        step = np.linalg.solve((x * (worth * p * (1 - p))[:, None]).T @ x + ridge, gradient)
        beta -= step
        if abs(step).max() < 1e-8:
            break
    return beta


def weights_of(beta: np.ndarray, names: Sequence[str], high: float) -> Weights:
    features = {name: round(float(value), 4) for name, value in zip(names, beta, strict=False)}
    return Weights(round(float(beta[-1]), 4), features, COST, REDUNDANCY, high)


def goodness(data: Labelled, segments: Iterable[Segment]) -> np.ndarray:
    """Facts, high facts, found, high found, high as high, high observations, junk, traps, trapped."""
    gold = data.session.gold
    high = {i for i, fact in enumerate(gold["facts"]) if fact["priority"] == "high"}
    texts = {m.message_id: m.text for m in data.session.said}
    all_found: set[int] = set()
    as_high: set[int] = set()
    trapped: set[int] = set()
    highs = junk = 0
    for fact in (fact for segment in segments for fact in segment.facts):
        facts, traps = data.hits(fact.text, tuple(texts[s.message_id][s.start : s.end] for s in fact.evidence))
        all_found |= facts
        if fact.priority == "high":
            highs, junk = highs + 1, junk + (not facts)
            as_high |= facts
            trapped |= traps
    counts = (len(gold["facts"]), len(high), len(all_found), len(all_found & high), len(as_high & high), highs, junk)
    return np.array([*counts, len(gold["traps"]), len(trapped)], dtype=float)


def objective(counts: np.ndarray) -> float:
    """What the threshold of high is chosen by: the five figures with equal weight."""
    facts, high, found, high_found, as_high, highs, junk, traps, trapped = counts
    return float(found / facts + high_found / high + as_high / high - junk / max(1.0, highs) - trapped / traps)


class Fitting:
    """Fits and choices, each made once."""

    def __init__(self, data: Sequence[Labelled], names: Sequence[str]) -> None:
        self.data, self.names = data, names
        self.beta = cache(self._beta)

    def _beta(self, left_out: frozenset[int]) -> np.ndarray:
        return fit([d for i, d in enumerate(self.data) if i not in left_out])

    def weights(self, left_out: frozenset[int], high: float) -> Weights:
        return weights_of(self.beta(left_out), self.names, high)

    def observe(self, i: int, left_out: frozenset[int], high: float) -> list[Segment]:
        return OBSERVER.segments(self.data[i].found, self.weights(left_out, high))

    def choose(self, left_out: frozenset[int]) -> float:
        """The threshold that does best on the other sessions, each of which is left out in turn."""
        others = [i for i in range(len(self.data)) if i not in left_out]

        def good(high: float) -> float:
            seen = (goodness(self.data[i], self.observe(i, left_out | {i}, high)) for i in others)
            return objective(np.sum(list(seen), axis=0))

        return max(HIGHS, key=good)


def report(name: str, found: Iterable[tuple[Labelled, list[Segment]]], *, by_session: bool = False) -> dict[str, Any]:
    observations = [row for data, segments in found for row in rows(data.session, segments)]
    figures = score(GOLD, FIXTURES, observations)
    print(line(name, figures["TOTAL"]))
    for file, values in figures.items():
        if by_session and file != "TOTAL":
            print(line(f"  {file}", values))
    return {name: figures["TOTAL"][name] for name in ("recall", "recall_high", "high_as_high", "junk", "trap_rate")}


def main() -> None:
    known = list(sessions(GOLD, FIXTURES))
    sets: dict[str, tuple[Encoder | None, list[str]]] = {shipped.LEXICAL: (None, list(FEATURES))}
    if "--lexical" not in sys.argv:
        sets[shipped.ENCODED] = (Encoder(), [*FEATURES, *ENCODED])
    print(heading())
    written: dict[str, Any] = {}
    story: dict[str, Any] = {}
    for name, (encoder, names) in sets.items():
        fitting = Fitting([labelled(session, encoder) for session in known], names)
        numbers = range(len(known))
        chosen = [fitting.choose(frozenset({i})) for i in numbers]
        left_out = [(fitting.data[i], fitting.observe(i, frozenset({i}), chosen[i])) for i in numbers]
        figures = report(f"{name}: left out", left_out, by_session=True)
        final = fitting.choose(frozenset())
        all_of_them = frozenset[int]()
        report(f"{name}: in-sample", [(fitting.data[i], fitting.observe(i, all_of_them, final)) for i in numbers])
        print("   high from:", final, "left out:", sorted(set(chosen)))
        written[name] = vars(fitting.weights(all_of_them, final))
        story[name] = {"left_out": figures}
    for kind in BASELINES:
        print(line(f"baseline: {kind}", score(GOLD, FIXTURES, baseline(GOLD, kind))["TOTAL"]))
    if "--write" in sys.argv:
        write(written, story, known)


def write(written: dict[str, Any], story: dict[str, Any], known: Sequence[Session]) -> None:
    """What was fitted, behind how it was."""
    target = Path(shipped.__file__).with_name(shipped.FILE)
    how = (
        f"benchmarks/fit_observer.py: logistic regression with a ridge of {PENALTY} on whether the scorer finds a gold "
        f"fact in a unit, high facts counted {WORTH_OF_HIGH:g} times; `high` is the best of {HIGHS} when each session "
        "is left out in turn. left_out: figures on sessions that neither the weights nor `high` had seen; features, "
        "cues, cost and redundancy were chosen with all in view, so expect .05 to .10 less on others."
    )
    fitted = {"how": how, "when": str(date.today()), "sessions": [session.file for session in known]}
    before = json.loads(target.read_text("utf-8")) if target.exists() else {}
    fitted = before.get("fitted", {}) | fitted | story
    target.write_text(json.dumps(before | {"fitted": fitted} | written, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
