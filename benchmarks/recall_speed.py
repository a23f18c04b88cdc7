"""How long a search takes, in a warm process and from a shell, and how the index grows.

    python -m benchmarks.recall_speed [--points N] [--folder DIR] [--growth] [--million]

Makes a workspace whose collections hold N passages (100,000) and a tenth as many observations: the words are drawn as
often as they stand in ../shared/fixtures (else by Zipf's law), a hundred passages are a session, and the dense vectors
are random ones of unit length, since encoding so many would take an hour; so times are told here, and no quality. A
folder that is named is kept, and used again as it is. Printed are

- warm: `Searcher.search` with the query encoded, the collections open;
- cold: `memory search` as a process, by the clock and by the processor's seconds (the machine may be busy);
- while a process writes day after day: the longest wait, failures, answers by words from the tables, half days seen;
- `--growth`: 10,000 to 100,000 points, each in an index of its own: points a second, bytes a point, time of a query;
  `--million` goes on to 1,000,000, with vectors of 32 numbers, so that the disk and an hour suffice.
"""

import argparse
import itertools
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common import FIXTURES, ROOT, parser
from benchmarks.recall_peers import quantile
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES, PASSAGE, WORDS, Filters, Point, weigh
from memory_pipeline.embeddings.messages import points_of
from memory_pipeline.embeddings.opening import collection_name, mark_complete, open_index
from memory_pipeline.recall.search import Searcher, search
from memory_pipeline.settings import BUNDLED_MODEL, Settings
from memory_pipeline.text.encoder import Encoder
from memory_pipeline.text.terms import terms

FIRST = date(2020, 1, 1)
PER_DAY = 500
PER_SESSION = 100
WORDS_OF_A_MESSAGE = (4, 90)
QUERIES = 200
WRITING_SECONDS = 30
MILLION_DIMENSION = 32


class Words:
    """Draws words as often as they are said, and now and then a name that is said once."""

    def __init__(self) -> None:
        found = Counter(word for text in _said() for word in text.split() if len(word) < 40)
        if not found:
            found = Counter({f"word{i}": 1_000_000 // (i + 1) for i in range(30_000)})
        self.words, self.weights = list(found), list(itertools.accumulate(found.values()))
        plain = {w.lower(): n for w, n in found.items() if w.isascii() and w.isalpha() and len(w) > 3}
        self.asked = [w for w, n in plain.items() if n >= 20] or self.words
        self.rare = [w for w, n in plain.items() if n < 20] or self.words

    def text(self, draw: random.Random) -> str:
        many = draw.randint(*WORDS_OF_A_MESSAGE)
        return " ".join([*draw.choices(self.words, cum_weights=self.weights, k=many), f"item{draw.randrange(10**6)}"])

    def query(self, draw: random.Random) -> str:
        """A question of 8 to 11 words."""
        return " ".join(["when did we", *draw.choices(self.asked, k=4), *draw.choices(self.rare, k=draw.randint(1, 4))])


def _said() -> Iterator[str]:
    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if isinstance(value.get("text"), str):
                yield value["text"]
            for inner in value.values():
                yield from texts(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from texts(inner)

    for path in sorted(FIXTURES.rglob("*.jsonl")):
        for line in path.read_text("utf-8", "replace").splitlines():
            try:
                yield from texts(json.loads(line))
            except ValueError:
                continue


def days_of_points(words: Words, count: int, dimension: int, seed: int = 0) -> Iterator[list[Point]]:
    """The points of day after day, made as the pipeline does, until there are so many passages."""
    draw, vectors = random.Random(seed), np.random.default_rng(seed)
    for number in range(count // PER_DAY):
        yield day_of_points(words, FIRST + timedelta(days=number), PER_DAY, dimension, draw, vectors)


def day_of_points(
    words: Words, day: date, count: int, dimension: int, draw: random.Random, vectors: np.random.Generator
) -> list[Point]:
    rows: list[Any] = [
        {
            "day": day,
            "session_id": f"{day}-{i // PER_SESSION}",
            "message_id": f"{day}#{i}",
            "role": ("user", "assistant")[i % 2],
            "said_at": datetime(day.year, day.month, day.day, tzinfo=UTC) + timedelta(seconds=i),
            "source_line": i,
            "text": words.text(draw),
            "untimed": None,
            "voided": False,
        }
        for i in range(count)
    ]
    points = points_of(pl.DataFrame(rows), {}, "me")
    return [
        Point(p.point_id, _unit(vectors, dimension) if p.payload["record"] == PASSAGE else None, p.payload, p.sparse)
        for p in points
    ]


def as_observations(points: list[Point], dimension: int, vectors: np.random.Generator) -> list[Point]:
    """A tenth of a day's passages, as what was observed of them."""
    said = [p for p in points if p.payload["record"] == PASSAGE][::10]
    shown = {"record": "observation", "priority": "medium", "kind": "decision"}
    return [
        Point(
            p.point_id,
            _unit(vectors, dimension),
            p.payload | shown,
            {WORDS: weigh(terms(p.payload["text"]), WORDS)},
        )
        for p in said
    ]


def _unit(vectors: np.random.Generator, dimension: int) -> list[float]:
    made = vectors.standard_normal(dimension)
    unit: list[float] = (made / np.linalg.norm(made)).tolist()
    return unit


def fill(settings: Settings, words: Words, count: int) -> None:
    """Both collections of the workspace, marked as complete."""
    dimension, vectors = Encoder(BUNDLED_MODEL).dimension, np.random.default_rng(1)
    observed: list[Point] = []
    with open_index(settings, dimension, MESSAGES) as index:
        for points in days_of_points(words, count, dimension):
            index.upsert(points)
            observed += as_observations(points, dimension, vectors)
        settle(index)
    with open_index(settings, dimension, COLLECTION) as index:
        index.upsert(observed)
        settle(index)
    for base in (MESSAGES, COLLECTION):
        mark_complete(settings, dimension, base)
    lines = "\n".join(f"- {words.text(random.Random(i))}" for i in range(60))
    settings.memory_file.write_text(f"# Memory\n\n## Hard Rules\n\n{lines}\n", "utf-8")
    (settings.lake_dir / "sessions").mkdir(parents=True)  # as after a run; a search in here is logged


def settle(index: Any) -> None:
    """As a run does it at its end."""
    if hasattr(index, "settle"):
        start = time.perf_counter()
        index.settle()
        print(f"settled in {time.perf_counter() - start:.1f} s", flush=True)


def warm(settings: Settings, words: Words) -> None:
    draw, took = random.Random(7), []
    with closing(Searcher(settings)) as ask:
        for query in [words.query(draw) for _ in range(QUERIES)]:
            start = time.perf_counter()
            found = ask.search(query)
            took.append(time.perf_counter() - start)
            assert found.hits and not found.notes, found.notes
    took = took[5:]
    print(
        f"warm: median {1000 * quantile(took, 0.5):.1f} ms, 95 % {1000 * quantile(took, 0.95):.1f} ms, "
        f"longest {1000 * max(took):.1f} ms (targets: 30, 80)",
        flush=True,
    )


def cold(settings: Settings, words: Words, times: int = 7) -> None:
    draw, wall, used = random.Random(8), [], []
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, "MEMORY_WORKSPACE": f"{settings.workspace}"}
        for _ in range(times):
            command = [sys.executable, "-m", "memory_pipeline.cli.main", "search", words.query(draw)]
            start = time.perf_counter()
            process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            assert process.stderr
            said = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            wall.append(time.perf_counter() - start)
            used.append(usage.ru_utime + usage.ru_stime)
            assert process.returncode == 0 and not said, said
    print(
        f"cold: fastest {min(wall):.2f} s, median {quantile(wall, 0.5):.2f} s, longest {max(wall):.2f} s; processor "
        f"{min(used):.2f} to {max(used):.2f} s (target: 1.0 s)",
        flush=True,
    )


def _write(settings: Settings, words: Words, stop: Any, written: Any) -> None:
    draw, vectors = random.Random(9), np.random.default_rng(9)
    dimension = Encoder(BUNDLED_MODEL).dimension
    day = FIRST - timedelta(days=1)
    versions = [day_of_points(words, day, n, dimension, draw, vectors) for n in (60, 300)]
    for points in itertools.cycle(versions):
        if stop.is_set():
            return
        with open_index(settings, dimension, MESSAGES) as index:  # as the stage does it
            index.delete(index.ids(day) - {p.point_id for p in points})
            index.upsert(points)
        written.value += 1
        time.sleep(0.2)  # far less than what encoding a day takes


def while_writing(settings: Settings, words: Words) -> None:
    """One process writes a day again and again, in two sizes; this one asks and opens the index for each question."""
    context = multiprocessing.get_context("spawn")
    stop, written = context.Event(), context.Value("i", 0)
    writer = context.Process(target=_write, args=(settings, words, stop, written))
    writer.start()
    draw, took, failures, by_words, halves = random.Random(10), [], 0, 0, 0
    day = FIRST - timedelta(days=1)
    while not written.value and writer.is_alive():
        time.sleep(0.05)
    begin = time.monotonic()
    while time.monotonic() - begin < WRITING_SECONDS and writer.is_alive():
        start = time.perf_counter()
        try:
            by_words += bool(search(settings, words.query(draw)).notes)
            took.append(time.perf_counter() - start)
            seen = search(settings, "item " + words.query(draw), Filters(day, day), limit=100)
            halves += not seen.notes and len({h.session_id for h in seen.hits}) not in (1, 3)
        except Exception as error:  # counted and told, whatever it is
            failures += 1
            print(f"failed: {error}")
    stop.set()
    writer.join()
    print(
        f"while {written.value} days were written: {len(took)} searches, longest {max(took):.2f} s, median "
        f"{quantile(took, 0.5):.2f} s, {failures} failures, {by_words} by words from the tables (target: 2 s, 0)",
        flush=True,
    )


def growth(words: Words, counts: list[int], dimension: int) -> None:
    draw = random.Random(11)
    print(f"\n{'points':>9}  {'points/s':>8}  {'bytes/point':>11}  {'load':>6}  {'median':>8}  {'95 %':>8}", flush=True)
    for count in counts:
        with tempfile.TemporaryDirectory() as place:
            settings = Settings(workspace=Path(place))
            seconds, made = 0.0, 0
            with open_index(settings, dimension, MESSAGES) as index:
                for points in days_of_points(words, count, dimension):
                    start = time.perf_counter()
                    index.upsert(points)
                    seconds += time.perf_counter() - start
                    made += len(points)
                settle(index)
            folder = settings.index_dir / collection_name(settings, MESSAGES, BUNDLED_MODEL, dimension)
            size = sum(f.stat().st_blocks * 512 for f in folder.rglob("*") if f.is_file())
            start = time.perf_counter()
            with open_index(settings, dimension, MESSAGES) as index:
                loaded = time.perf_counter() - start
                took = [_one_query(index, words, draw, dimension) for _ in range(40)]
        print(
            f"{made:9,}  {made / seconds:8,.0f}  {size / made:11,.0f}  {loaded:5.2f}s  "
            f"{1000 * quantile(took, 0.5):6.1f}ms  {1000 * quantile(took, 0.95):6.1f}ms",
            flush=True,
        )


def _one_query(index: Any, words: Words, draw: random.Random, dimension: int) -> float:
    from memory_pipeline.recall.fusion import Ranked, candidates
    from memory_pipeline.text.terms import query_terms

    wanted = query_terms(words.query(draw))
    vector = _unit(np.random.default_rng(draw.randrange(2**32)), dimension)
    start = time.perf_counter()
    Ranked(candidates(index, wanted, vector))
    return time.perf_counter() - start


def main() -> None:
    options = parser("recall_speed", __doc__)
    options.add_argument("--points", type=int, default=100_000, metavar="N", help="passages of the workspace")
    options.add_argument("--folder", type=Path, metavar="DIR", help="where the workspace is kept")
    options.add_argument("--growth", action="store_true", help="only how the index grows, to 100,000 points")
    options.add_argument("--million", action="store_true", help="only how the index grows, to 1,000,000 points")
    given: argparse.Namespace = options.parse_args()
    words = Words()
    if given.million:
        growth(words, [10_000, 100_000, 1_000_000], MILLION_DIMENSION)
        return
    if given.growth:
        growth(words, [10_000, 30_000, 100_000], Encoder(BUNDLED_MODEL).dimension)
        return
    with tempfile.TemporaryDirectory() as temporary:
        settings = Settings(workspace=(given.folder or Path(temporary)).absolute())
        if not settings.index_dir.exists():
            start = time.perf_counter()
            fill(settings, words, given.points)
            print(f"{given.points:,} passages indexed in {time.perf_counter() - start:.0f} s", flush=True)
        warm(settings, words)
        cold(settings, words)
        while_writing(settings, words)


if __name__ == "__main__":
    main()
