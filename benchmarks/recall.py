"""What the product's own index and search find, beside BM25 alone, vectors alone and reciprocal rank fusion.

    python -m benchmarks.recall [DATASET]... [--out FILE] [--conversations N]

Datasets: `locomo` and `devmembench` of ../shared/bench, `entireio_cli` (one project's sessions in
../shared/more-sessions with the questions of `recall_questions/`, written by readers who saw no ranking). Each
collection is indexed as the pipeline does it and searched on its own. R@k is the mean share of a question's evidence
among the first k sessions, and on LoCoMo among the first k messages.

`shipped` are the weights of `recall/fusion.py`. `left out` are, for each conversation of LoCoMo, the weights of a
session's parts that are best on the nine others: nothing is chosen on what it is reported on. Intervals are 95 %, by
drawing conversations. On `entireio_cli` the questions without an answer tell abstention, those whose answer changed
freshness: half `a` of the questions was looked at while the thresholds were set, half `b` was not.
"""

import argparse
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common import parser
from benchmarks.peers.system import Collection, said_at, with_speaker
from benchmarks.recall_peers import DATASETS, QUESTIONS, quantile
from memory_pipeline.embeddings.edge import EdgeIndex
from memory_pipeline.embeddings.index import DENSE, PASSAGE, WORDS, Point
from memory_pipeline.embeddings.messages import points_of
from memory_pipeline.recall.answer import newest_first
from memory_pipeline.recall.fusion import Candidates, Ranked, candidates
from memory_pipeline.recall.search import OpenCollections, Searcher
from memory_pipeline.settings import BUNDLED_MODEL, Settings
from memory_pipeline.text.encoder import Encoder
from memory_pipeline.text.terms import query_terms

GRID = [
    (a / 10, b / 10, c / 10, (10 - a - b - c) / 10)
    for a, b, c in itertools.product(range(2, 11), range(11), range(11))
    if a + b + c <= 10
]
"""Weights of a session's parts, in tenths; its words count at least two."""
RRF = 60
DRAWS = 1000


@dataclass
class Asked:
    """A question with what the index answered."""

    collection: str
    question: dict[str, Any]
    found: Candidates
    seconds: float


@dataclass
class Scores:
    """Recall by level and k, a list over questions, with the conversation of each."""

    values: dict[tuple[str, int], list[tuple[str, float]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, asked: Asked, passages: Sequence[str], sessions: Sequence[str]) -> None:
        for level, gold, ranked in (
            ("message", asked.question.get("gold") or [], passages),
            ("session", asked.question["gold_sessions"], sessions),
        ):
            for k in (1, 5, 10):
                if gold and (ranked or level == "session"):
                    share = sum(g in ranked[:k] for g in gold) / len(gold)
                    self.values[level, k].append((asked.collection, share))

    def mean(self, level: str, k: int) -> float:
        return 100 * statistics.fmean(v for _, v in self.values[level, k])

    def interval(self, level: str, k: int) -> tuple[float, float]:
        """By drawing conversations with replacement."""
        by: dict[str, list[float]] = defaultdict(list)
        for name, value in self.values[level, k]:
            by[name].append(value)
        draw, names = random.Random(0), sorted(by)
        means = sorted(
            100 * statistics.fmean(v for name in draw.choices(names, k=len(names)) for v in by[name])
            for _ in range(DRAWS)
        )
        return means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS)]

    def row(self, *, with_interval: bool = False) -> str:
        cells = []
        for level, k in sorted(self.values):
            spread = " ({:.1f}–{:.1f})".format(*self.interval(level, k)) if with_interval and k == 5 else ""
            cells.append(f"{level[0]}@{k} {self.mean(level, k):5.1f}{spread}")
        return "  ".join(cells)


def indexed(collection: Collection, folder: Path, encoder: Encoder) -> EdgeIndex:
    """The collection in an index of its own, made as the pipeline makes one of a day."""
    index = EdgeIndex(folder, encoder.dimension)
    rows: list[Any] = []
    for line, message in enumerate(collection.messages):
        at = said_at(message["said_at"])
        rows.append(
            {
                "day": at.date(),
                "session_id": message["session"],
                "message_id": message["id"],
                "role": "user" if message["speaker"] != "assistant" else "assistant",
                "said_at": at,
                "source_line": line,
                "text": with_speaker(message),
                "untimed": None,
                "voided": False,
            }
        )
    by_day = pl.DataFrame(rows).partition_by("day", maintain_order=True)
    points = [p for said in by_day for p in points_of(said, {}, "me")]
    passages = [p for p in points if p.payload["record"] == PASSAGE]
    vectors = dict(
        zip((p.point_id for p in passages), encoder.encode([p.payload["text"] for p in passages]), strict=True)
    )
    index.upsert([Point(p.point_id, vectors.get(p.point_id), p.payload, p.sparse) for p in points])
    return index


def ids_of(ranked: Ranked) -> tuple[list[str], list[str]]:
    """Messages and sessions, best first."""
    messages = dict.fromkeys(ranked.payloads[name]["source_id"] for name, _ in ranked.passages)
    return list(messages), [session for session, _ in ranked.sessions]


def of_one_list(found: Candidates, name: str) -> tuple[list[str], list[str]]:
    hits = found.passages[name]
    return list(dict.fromkeys(h.payload["source_id"] for h in hits)), _sessions(h.payload["session_id"] for h in hits)


def by_ranks(found: Candidates) -> tuple[list[str], list[str]]:
    """Reciprocal rank fusion of words and meaning."""
    scores: dict[str, float] = defaultdict(float)
    payloads = {}
    for name in (WORDS, DENSE):
        for rank, hit in enumerate(found.passages[name], 1):
            scores[hit.point_id] += 1 / (RRF + rank)
            payloads[hit.point_id] = hit.payload
    best = [payloads[name] for name in sorted(scores, key=lambda name: (-scores[name], name))]
    return list(dict.fromkeys(p["source_id"] for p in best)), _sessions(p["session_id"] for p in best)


def _sessions(found: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(found))


SYSTEMS: dict[str, Callable[[Candidates], tuple[list[str], list[str]]]] = {
    "BM25 alone, best message": lambda found: of_one_list(found, WORDS),
    "BM25 alone, whole session": lambda found: ([], _sessions(h.payload["session_id"] for h in found.sessions)),
    "vectors alone, best message": lambda found: of_one_list(found, DENSE),
    f"ranks of both, k = {RRF}": by_ranks,
    "shipped": lambda found: ids_of(Ranked(found)),
}


def ask_all(dataset: str, limit: int | None, place: Path) -> list[Asked]:
    encoder, asked = Encoder(BUNDLED_MODEL), []
    for number, collection in enumerate(list(DATASETS[dataset][1]())[:limit]):
        index = indexed(collection, place / f"{dataset}-{number}", encoder)
        for question in collection.questions:
            start = time.perf_counter()
            vector = encoder.encode_query(question["query"])
            found = candidates(index, query_terms(question["query"]), vector)
            Ranked(found)
            asked.append(Asked(collection.name, question, found, time.perf_counter() - start))
        if dataset == "entireio_cli":
            print_answers(index)
        index.close()
    return asked


def print_answers(index: EdgeIndex) -> None:
    """Abstention and freshness, by half of the questions."""
    rows = [json.loads(line) for line in QUESTIONS.read_text("utf8").splitlines()]
    with tempfile.TemporaryDirectory() as empty:
        ask = Searcher(Settings(workspace=Path(empty)), OpenCollections(index, model=BUNDLED_MODEL))
        for half in ("a", "b"):
            silent: dict[bool, list[bool]] = defaultdict(list)
            fresh: list[bool] = []
            for row in (row for row in rows if row["id"].startswith(f"q-{half}")):
                results = ask.search(row["question"])
                silent[row["kind"] == "none"].append(not results.is_likely)
                if row["kind"] == "newest":
                    first = newest_first(results)[:1]
                    fresh.append(bool(first) and first[0].hit.source_id not in row["superseded"])
            print(
                f"half {half}: silent on {sum(silent[True])} of {len(silent[True])} questions without an answer, "
                f"on {sum(silent[False])} of {len(silent[False])} with one; "
                f"the first quote is not the superseded one in {sum(fresh)} of {len(fresh)}"
            )


def report(dataset: str, asked: Sequence[Asked], out: Path | None) -> None:
    seconds = [a.seconds for a in asked]
    print(
        f"{len(asked)} questions; query encoded, asked and fused: p50 {1000 * statistics.median(seconds):.0f} ms, "
        f"p95 {1000 * quantile(seconds, 0.95):.0f} ms"
    )
    kinds = sorted({a.question["category"] for a in asked})
    for name, system in SYSTEMS.items():
        by_kind: dict[str, Scores] = defaultdict(Scores)
        every = Scores()
        for a in asked:
            passages, sessions = system(a.found)
            every.add(a, passages, sessions)
            by_kind[a.question["category"]].add(a, passages, sessions)
            _keep(out, dataset, name, a, passages, sessions)
        print(f"{name:30}{every.row(with_interval=dataset == 'locomo')}", flush=True)
        if name == "shipped":
            for kind in kinds:
                print(f"    {kind:26}{by_kind[kind].row()}")
    if dataset == "locomo":
        leave_one_out(asked)


def leave_one_out(asked: Sequence[Asked]) -> None:
    """For each conversation the weights of a session's parts that are best on the others, and what they find there."""
    parts = [_matrix(a) for a in asked]
    kept: list[list[list[str]]] = []
    value = np.empty((len(GRID), len(asked)))
    for g, weights in enumerate(GRID):
        ranked = [_ordered(sessions, matrix, weights) for sessions, matrix in parts]
        kept.append(ranked)
        for i, (a, found) in enumerate(zip(asked, ranked, strict=True)):
            value[g, i] = _worth(a, found)
    conversations = np.array([a.collection for a in asked])
    total, multi_hop = Scores(), Scores()
    for left_out in dict.fromkeys(conversations):
        chosen = int(value[:, conversations != left_out].mean(axis=1).argmax())
        print(f"    without {left_out}: {GRID[chosen]}")
        for i in map(int, np.flatnonzero(conversations == left_out)):
            total.add(asked[i], [], kept[chosen][i])
            if asked[i].question["category"] == "multi-hop":
                multi_hop.add(asked[i], [], kept[chosen][i])
    print(f"{'sessions, left out':30}{total.row(with_interval=True)}")
    print(f"    {'multi-hop':26}{multi_hop.row()}")


def _worth(asked: Asked, sessions: Sequence[str]) -> float:
    """What the folds choose by: recall at 5 and 10, some of it at 1, and questions over several sessions once more."""
    gold = asked.question["gold_sessions"]
    at = {k: sum(g in sessions[:k] for g in gold) / len(gold) for k in (1, 5, 10)}
    return at[5] + at[10] + 0.4 * at[1] + (0.4 * at[5] if asked.question["category"] == "multi-hop" else 0.0)


def _matrix(asked: Asked) -> tuple[list[str], np.ndarray]:
    parts = Ranked(asked.found).session_parts
    sessions = sorted({session for part in parts for session in part})
    return sessions, np.array([[part.get(session, 0.0) for part in parts] for session in sessions])


def _ordered(sessions: Sequence[str], matrix: np.ndarray, weights: Sequence[float]) -> list[str]:
    return [sessions[i] for i in np.argsort(-(matrix @ np.array(weights)), kind="stable")[:10]]


def _keep(
    out: Path | None, dataset: str, system: str, asked: Asked, passages: Sequence[str], sessions: Sequence[str]
) -> None:
    if out:
        row = {"dataset": dataset, "collection": asked.collection, "query_id": asked.question["query_id"]}
        row |= {"system": system, "ranking": list(passages[:50]), "sessions": list(sessions)}
        with out.open("a", encoding="utf8") as file:
            file.write(json.dumps(row) + "\n")


def _options() -> argparse.Namespace:
    options = parser("recall", __doc__)
    options.add_argument("datasets", nargs="*", metavar="DATASET", help="locomo, devmembench, entireio_cli")
    options.add_argument("--conversations", type=int, metavar="N", help="only the first collections of each dataset")
    options.add_argument("--out", type=Path, metavar="FILE", help="JSON lines: what was found on each question")
    return options.parse_args()


def main() -> None:
    options = _options()
    for dataset in options.datasets or list(DATASETS):
        if dataset not in DATASETS or not DATASETS[dataset][0].exists():
            sys.exit(f"There is no dataset {dataset!r} here; there are {', '.join(DATASETS)}, from ../shared.")
        print(f"\n{dataset}")
        with tempfile.TemporaryDirectory() as place:
            report(dataset, ask_all(dataset, options.conversations, Path(place)), options.out)


if __name__ == "__main__":
    main()
