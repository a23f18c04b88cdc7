"""How fast texts become vectors with the bundled model: with sentence-transformers by default, and with
memory_pipeline in numpy.

    python -m benchmarks.embedding [FIXTURES_DIR] [--texts N] [--rounds N] [--threads N]

All encode the same texts of real sessions (FIXTURES_DIR, default ../shared/fixtures; the bundled examples where there
is none), each in a process of its own, in turns, with what a user has set: nothing. Loading is not counted,
the first 64 texts of messages, which warm up, neither. Texts are different ones, drawn with a fixed seed:

- messages: as users and agents wrote them, of all lengths.
- observations: what the extractive observer keeps of them.
- long: only messages that are cut at 256 tokens, where nothing is to be gained by leaving out padding.
- short: first words of messages, at most eight.

Texts per second are told of each round, and how many times as fast it is than sentence-transformers in the median of
the rounds: by the clock, and by seconds of the processor, which other programs disturb less (with `--threads 1` hardly;
with more, threads that wait for each other count too). Beside them the cosine of both vectors of a text, the least and
the mean; 1 is the same. Wanted: never slower, no cosine under .9999.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from benchmarks.common import ROOT, SESSIONS, parser
from benchmarks.observing_speed import is_said, messages
from memory_pipeline.observations.quotes.observer import ExtractiveObserver
from memory_pipeline.text.encoder import Encoder, bundled_folder
from memory_pipeline.text.minilm import MAX_TOKENS, tokenizer_of

DEFAULT, OURS = WAYS = ("sentence-transformers", "memory_pipeline")
WARM_UP, AT_ONCE, SHORT = 64, 400, 8
LEAST_COSINE = 0.9999
Texts = dict[str, list[str]]
Rounds = dict[str, dict[str, tuple[float, float]]]


def texts_of(folder: Path, count: int) -> Texts:
    """At most so many different texts of each kind."""
    known = messages(folder)
    said = list(dict.fromkeys(m.text for m in known if is_said(m)))
    observer = ExtractiveObserver()
    windows = (known[start : start + AT_ONCE] for start in range(0, len(known), AT_ONCE))
    kept = [fact.text for window in windows for segment in observer.observe(window) for fact in segment.facts]
    length = tokenizer_of(bundled_folder())
    kinds = {
        "messages": said,
        "observations": list(dict.fromkeys(kept)),
        "long": [text for text in said if len(length.encode(text).ids) == MAX_TOKENS],
        "short": list(dict.fromkeys(" ".join(text.split()[:SHORT]) for text in said)),
    }
    draw = random.Random(14)
    return {kind: draw.sample(texts, min(count, len(texts))) for kind, texts in kinds.items()}


def encoding(way: str) -> Callable[[Sequence[str]], object]:
    if way == OURS:
        return Encoder().encode
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(bundled_folder()), device="cpu", local_files_only=True).encode


def measure(way: str, folder: Path) -> None:
    """Encode the texts that lie there, in this process; print the seconds of each kind, keep the vectors."""
    texts: Texts = json.loads((folder / "texts.json").read_text())
    encode = encoding(way)
    encode(texts["messages"][:WARM_UP])
    seconds: dict[str, tuple[float, float]] = {}
    for kind, some in texts.items():
        clock, processor = time.perf_counter(), time.process_time()
        vectors = encode(some)
        seconds[kind] = time.perf_counter() - clock, time.process_time() - processor
        np.save(folder / f"{way}-{kind}.npy", np.asarray(vectors, dtype=np.float32))
    print(json.dumps(seconds))


def in_fresh_process(way: str, folder: Path, threads: int | None) -> dict[str, tuple[float, float]]:
    """Seconds by the clock and of the processor, of each kind."""
    command = [sys.executable, "-m", "benchmarks.embedding", f"{folder}", "--one", way]
    env = dict(os.environ) | ({"OMP_NUM_THREADS": f"{threads}"} if threads else {})
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    found: dict[str, tuple[float, float]] = json.loads(done.stdout)
    return found


def main() -> None:
    options = parser("embedding", __doc__)
    options.add_argument("folder", type=Path, nargs="?", default=SESSIONS, metavar="FIXTURES_DIR")
    options.add_argument("--texts", type=int, default=400, metavar="N", help="at most so many of a kind")
    options.add_argument("--rounds", type=int, default=3, metavar="N")
    options.add_argument("--threads", type=int, metavar="N", help="of each process; one per core where it is not given")
    options.add_argument("--one", choices=WAYS, help="measure this one with the texts of FIXTURES_DIR/texts.json")
    asked = options.parse_args()
    if asked.one:
        measure(asked.one, asked.folder)
        return
    texts = texts_of(asked.folder.resolve(), asked.texts)
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        (folder / "texts.json").write_text(json.dumps(texts))
        rounds = [{way: in_fresh_process(way, folder, asked.threads) for way in WAYS} for _ in range(asked.rounds)]
        print(f"{'':30}{'texts/s':>20}{'times':>8}{'processor':>11}{'cosine':>10}{'mean':>10}")
        for kind, some in texts.items():
            for way in WAYS:
                report(kind, some, way, rounds, folder)


def report(kind: str, some: list[str], way: str, rounds: list[Rounds], folder: Path) -> None:
    each = " ".join(f"{len(some) / found[way][kind][0]:.0f}" for found in rounds)
    line = f"{kind if way == DEFAULT else '':14}{len(some) if way == DEFAULT else '':>4} {way:22}{each:>20}"
    if way == DEFAULT:
        print(line)
        return
    clock, processor = (statistics.median(f[DEFAULT][kind][n] / f[way][kind][n] for f in rounds) for n in (0, 1))
    one, other = (np.load(folder / f"{name}-{kind}.npy") for name in (DEFAULT, way))
    cosines = (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    print(f"{line}{clock:>8.2f}{processor:>11.2f}{cosines.min():>10.5f}{cosines.mean():>10.5f}")
    if clock < 1 or cosines.min() < LEAST_COSINE:
        print(f"  missed: as fast, and a cosine of {LEAST_COSINE}")


if __name__ == "__main__":
    main()
