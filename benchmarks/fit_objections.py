"""Fit the weights by which a user's words count as an objection, and tell how well they do on what was left out.

    python -m benchmarks.fit_objections [--without SOURCE ...] [--write FILE]

Fitted on the files of `objections/`; on the banks `tuning` and `unheard` of planted friction (what is said there again
and what is asked for besides); and on what users say in the sessions of ../shared/fixtures. Files and banks were
written for this by language models, each file apart from the others; `recorded` alone is of people. Printed is, for
each language, the area under the curve and the average precision, of each source by weights fitted on the others.

`--without` leaves sources out, so that what is measured with the weights was never seen by them; `--write` writes the
weights, those that are shipped to `memory_pipeline/friction/objections.json`.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from benchmarks.common import FIXTURES, parser
from benchmarks.planted_friction.bank import LANGUAGES, TUNING, UNHEARD, bank_of
from benchmarks.planted_friction.model import MISSING_SKILL, REPEATED_CORRECTION, RULE_VIOLATED
from memory_pipeline.friction import sentence_weights
from memory_pipeline.friction.said import MAX_MESSAGE, sentences_in
from memory_pipeline.friction.sentence_weights import SentenceWeights, parts_of
from memory_pipeline.sessions.reading import parse_file
from memory_pipeline.text.phrases import PhraseEncoder

WORDINGS = Path(__file__).with_name("objections")
TYPED = "typed"
"""The file that has no topics, only sentences, and tells which recorded ones object."""
MIN_TOPICS = 5
"""That have a part, for it to have a weight: a word of one topic tells what it is about."""
STRENGTH, OF_VECTOR = 0.3, 2.0
"""Inverse of the ridge, of which a third is .01 worse and thrice no better; how much the vector counts beside words."""
MAX_SENTENCE, MAX_SAID = 200, 1_500
"""Characters of a recorded sentence and of its message, above which it was pasted more often than said."""
RECORDED = "recorded"


class Example(NamedTuple):
    text: str
    label: bool
    """Whether it is what is looked for: an objection, news, an output of the environment."""
    topic: str
    language: str
    source: str


def examples() -> list[Example]:
    """All of them. Without ../shared/fixtures there are no recorded ones, and nothing should be written."""
    files = {path.stem: tomllib.loads(path.read_text("utf-8")) for path in sorted(WORDINGS.glob("*.toml"))}
    found = [
        Example(text, kind == "objections", topic.get("name", text), language, source)
        for source, told in files.items()
        for topic in told.get("topic", [told])
        for kind in ("objections", "other")
        for language, texts in topic[kind].items()
        for text in texts
    ]
    for name in (TUNING, UNHEARD):
        found += _planted(name)
    recorded = files[TYPED][RECORDED]
    return found + [
        Example(text, text in recorded["objections"], session, RECORDED, RECORDED)
        for text, session in _said_in_fixtures().items()
        if text not in recorded["unclear"]
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
                    yield Example(bank.filled(text, chance), is_objection, topic_name, language, name)


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

    def __init__(self, given: Sequence[Example], parts: Callable[[str], frozenset[str]] = parts_of) -> None:
        self.given = given
        self.vectors = PhraseEncoder().encode([e.text for e in given])
        self.parts = [parts(e.text) for e in given]
        self.label = np.array([float(e.label) for e in given])
        self.sources = np.array([e.source for e in given])

    def fit(self, some: Sequence[int]) -> dict[str, object]:
        """Logistic regression with a ridge."""
        topics: dict[str, set[str]] = {}
        for i in some:
            for part in self.parts[i]:
                topics.setdefault(part, set()).add(self.given[i].topic)
        known = sorted(part for part, of in topics.items() if len(of) >= MIN_TOPICS)
        number = {part: n for n, part in enumerate(known)}
        cells = [(row, number[part]) for row, i in enumerate(some) for part in self.parts[i] if part in number]
        rows, columns = zip(*cells, strict=True)
        bag = csr_matrix((np.ones(len(cells)), (rows, columns)), shape=(len(some), len(known)))
        x = hstack([bag, csr_matrix(OF_VECTOR * self.vectors[some])]).tocsr()
        fitted = LogisticRegression(C=STRENGTH, max_iter=2_000).fit(x, self.label[some])
        of_words, of_vector = fitted.coef_[0][: len(known)], OF_VECTOR * fitted.coef_[0][len(known) :]
        words = {part: weight for part, w in zip(known, of_words, strict=True) if (weight := round(float(w), 3))}
        vector = [round(float(w), 3) for w in of_vector]
        return {"intercept": round(float(fitted.intercept_[0]), 3), "words": words, "vector": vector}

    def without(self, *sources: str) -> SentenceWeights:
        """Fitted on all others."""
        some = np.flatnonzero(~np.isin(self.sources, sources)).tolist()
        return SentenceWeights(**self.fit(some))  # type: ignore[arg-type]

    def logits(self, weights: SentenceWeights, some: np.ndarray) -> np.ndarray:
        """What each of the examples gets that ``some``, a truth value for each, tells."""
        return np.array([weights.logit(self.parts[i], self.vectors[i]) for i in np.flatnonzero(some).tolist()])


def area(found: np.ndarray, others: np.ndarray) -> float:
    """Under the curve: how likely one of the first is above one of the others."""
    rank = np.argsort(np.argsort(np.concatenate([found, others]), kind="stable"), kind="stable")
    count = len(found)
    return float((rank[:count].sum() - count * (count - 1) / 2) / (count * len(others)))


def figures(label: np.ndarray, found: np.ndarray) -> str:
    order = np.argsort(-found, kind="stable")
    hits = label[order]
    precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    under, mean = area(found[label == 1], found[label == 0]), precision[hits == 1].mean()
    return f"{int(label.sum()):>5} of {len(label):<6} area {under:.2f}  average precision {mean:.2f}"


def use(file: str, found: SentenceWeights) -> None:
    """From now on in this process, in place of those that are shipped."""
    others = sentence_weights.load
    patch.object(sentence_weights, "load", lambda other: found if other == file else others(other)).start()


def main() -> None:
    options = parser("fit_objections", __doc__)
    options.add_argument("--without", nargs="*", default=[], metavar="SOURCE", help="files of objections/ or banks")
    options.add_argument("--write", type=Path, metavar="FILE", help="where the weights go")
    arguments = options.parse_args()
    if not FIXTURES.is_dir():
        raise SystemExit(f"{FIXTURES} is not there: without recorded sessions the weights would be others.")
    given = [e for e in examples() if e.source not in arguments.without]
    fitting = Fitting(given)
    for source in dict.fromkeys(e.source for e in given):
        found = fitting.logits(fitting.without(source), fitting.sources == source)
        own = [e for e in given if e.source == source]
        for language in (*LANGUAGES, "fr", "all"):
            these = np.array([language in ("all", e.language) for e in own])
            label = np.array([float(e.label) for e in own])[these]
            if 0 < label.sum() < len(label):
                print(f"{source:<17}{language:<6}{figures(label, found[these])}", flush=True)
    if arguments.write:
        arguments.write.write_text(
            json.dumps(fitting.fit(range(len(given))), ensure_ascii=False, indent=1) + "\n", "utf-8"
        )


if __name__ == "__main__":
    main()
