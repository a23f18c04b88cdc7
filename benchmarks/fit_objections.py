"""Fit the weights by which a user's words count as an objection, and tell how well they do on topics left out.

    python -m benchmarks.fit_objections [--write]

Fitted on `objections.toml`, on the banks `tuning` and `unheard` of planted friction (what people say there again and
what they ask for besides), and on what users say in the sessions of ../shared/fixtures. Printed is, for each language,
the area under the curve and the average precision over topics that were left out, an eighth of them at a time.
`--write` writes `memory_pipeline/friction/objections.json`.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.common import FIXTURES, ROOT, parser
from benchmarks.planted_friction.bank import LANGUAGES, TUNING, UNHEARD, bank_of
from benchmarks.planted_friction.model import MISSING_SKILL, REPEATED_CORRECTION, RULE_VIOLATED
from memory_pipeline.friction.objections import ENCODED, FILE, LEXICAL, Objections, parts_of
from memory_pipeline.friction.said import MAX_MESSAGE, sentences_in
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline.text.encoder import Encoder

OWN = Path(__file__).with_name("objections.toml")
MIN_TOPICS = 5
"""That have a word, for it to have a weight: a word of one topic tells what it is about."""
PENALTY, PENALTY_OF_VECTOR = 1.5, 2.0
"""Of the ridge. Half or twice as much does as well."""
FOLDS = 8
MAX_SENTENCE, MAX_SAID = 200, 1_500
"""Characters of a recorded sentence and of its message, above which it was pasted more often than said."""
RECORDED = "recorded"


class Example(NamedTuple):
    text: str
    is_objection: bool
    topic: str
    language: str


def examples() -> list[Example]:
    """All of them. Without ../shared/fixtures there are no recorded ones, and nothing should be written."""
    own = tomllib.loads(OWN.read_text("utf-8"))
    found = [
        Example(text, kind == "objections", text, language)
        for kind in ("objections", "other")
        for language, texts in own[kind].items()
        for text in texts
    ]
    for name in (TUNING, UNHEARD):
        found += _planted(name)
    recorded, unclear = (set(own[RECORDED][kind]) for kind in ("objections", "unclear"))
    return found + [
        Example(text, text in recorded, session, RECORDED)
        for text, session in _said_in_fixtures().items()
        if text not in unclear
    ]


def _planted(name: str) -> Iterator[Example]:
    bank, chance = bank_of(name), random.Random(1)
    told: list[tuple[bool, str, Mapping[str, Sequence[str]]]] = []
    for kind in (REPEATED_CORRECTION, RULE_VIOLATED):
        for topic in bank.topics(kind):
            told += [(True, topic["name"], topic["says"]), (False, topic["name"], topic.get("about", {}))]
    if name == TUNING:
        told += [(False, topic["name"], topic["says"]) for topic in bank.topics(MISSING_SKILL)]
        told += [(False, kind, bank.decoys[kind]) for kind in ("politeness", "approval")]
        for kind in ("requests", "pleased"):
            told += [(False, text, {x: [text]}) for x in LANGUAGES for text in bank.talk[kind][x]]
    else:
        told += [(False, group["name"], group["says"]) for group in bank.decoys["same_task"]]
    seen = set()
    for is_objection, topic_name, phrases in told:
        for language, texts in phrases.items():
            for text in texts:
                if text not in seen:
                    seen.add(text)
                    yield Example(bank.filled(text, chance), is_objection, topic_name, language)


def _said_in_fixtures() -> dict[str, str]:
    """Sentences of users by text, with their session's file."""
    found: dict[str, str] = {}
    for path in sorted(p for p in FIXTURES.rglob("*") if p.suffix in (".jsonl", ".json")):
        for message in parse_file(path).messages:
            if message.role == "user" and len(message.text) < MAX_SAID <= MAX_MESSAGE:
                for start, end, _ in sentences_in(message.text, ()):
                    if end - start < MAX_SENTENCE:
                        found.setdefault(message.text[start:end], path.name)
    return found


class Fitting:
    """The examples as numbers."""

    def __init__(self, given: Sequence[Example], encoder: Encoder | None) -> None:
        self.given = given
        self.vectors = np.array(encoder.encode([e.text for e in given])) if encoder else np.zeros((len(given), 0))
        self.parts = [parts_of(e.text) for e in given]
        self.label = np.array([float(e.is_objection) for e in given])

    def fit(self, some: Sequence[int]) -> dict[str, object]:
        """Logistic regression with a ridge, by Newton's method."""
        topics: dict[str, set[str]] = {}
        for i in some:
            for part in self.parts[i]:
                topics.setdefault(part, set()).add(self.given[i].topic)
        known = sorted(part for part, of in topics.items() if len(of) >= MIN_TOPICS)
        number = {part: n for n, part in enumerate(known)}
        bag = np.zeros((len(some), len(known)))
        for row, i in enumerate(some):
            bag[row, [number[part] for part in self.parts[i] if part in number]] = 1
        x = np.hstack([bag, self.vectors[some], np.ones((len(some), 1))])
        dimension = self.vectors.shape[1]
        ridge = np.array([PENALTY] * len(known) + [PENALTY_OF_VECTOR] * dimension + [1e-6])
        beta = np.zeros(x.shape[1])
        for _ in range(30):
            p = 1 / (1 + np.exp(-np.clip(x @ beta, -30, 30)))
            gradient = x.T @ (p - self.label[some]) + ridge * beta
            step = np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x + np.diag(ridge), gradient)
            beta -= step
            if abs(step).max() < 1e-7:
                break
        rounded = [round(float(b), 3) for b in beta]
        words = {part: w for part, w in zip(known, rounded, strict=False) if w}
        return {"intercept": rounded[-1], "words": words, "vector": rounded[len(known) : -1]}

    def left_out(self) -> np.ndarray:
        """What each example gets by weights that were fitted without its topic."""
        topics = sorted({e.topic for e in self.given})
        random.Random(0).shuffle(topics)
        fold = {topic: n % FOLDS for n, topic in enumerate(topics)}
        own = np.array([fold[e.topic] for e in self.given])
        found = np.zeros(len(self.given))
        for n in range(FOLDS):
            weights = Objections(**self.fit(np.flatnonzero(own != n)))  # type: ignore[arg-type]
            for i in map(int, np.flatnonzero(own == n)):
                found[i] = weights.logit(self.given[i].text, self.vectors[i] if self.vectors.size else None)
        return found


def figures(label: np.ndarray, found: np.ndarray) -> str:
    order = np.argsort(-found, kind="stable")
    hits = label[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    rank = np.argsort(np.argsort(found, kind="stable"), kind="stable")
    positive = label.sum()
    area = (rank[label == 1].sum() - positive * (positive - 1) / 2) / (positive * (len(label) - positive))
    return f"{int(positive):>5} of {len(label):<6} area {area:.2f}  average precision {precision[hits == 1].mean():.2f}"


def main() -> None:
    options = parser("fit_objections", __doc__)
    options.add_argument("--write", action="store_true", help=f"write {FILE}")
    arguments = options.parse_args()
    if not FIXTURES.is_dir():
        raise SystemExit(f"{FIXTURES} is not there: without recorded sessions the weights would be others.")
    given, weights = examples(), {}
    for name, encoder in ((LEXICAL, None), (ENCODED, Encoder())):
        fitting = Fitting(given, encoder)
        found = fitting.left_out()
        for language in (*LANGUAGES, "fr", RECORDED, "all"):
            own = np.array([language in ("all", e.language) for e in given])
            print(f"{name:<10}{language:<10}{figures(fitting.label[own], found[own])}")
        weights[name] = fitting.fit(range(len(given)))
    if arguments.write:
        path = ROOT / "memory_pipeline/friction" / FILE
        path.write_text(json.dumps(weights, ensure_ascii=False, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
