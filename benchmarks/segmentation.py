"""How well topic shifts are found in two sets of labelled dialogues, beside simple methods in the same run.

    python -m benchmarks.segmentation [DATA_DIR] [--tune]

DATA_DIR (default ../shared/bench/data/segmentation) holds `dialseg_711.json`, tasks stitched together, and
`tiage.json`, chat that drifts. Figures are percentages, lower is better, means over dialogues with the standard error:
Pk, how often two utterances half a mean segment apart are wrongly told to be on one topic or on two, and WindowDiff,
how often the number of cuts between them is wrong. The methods know nothing of who speaks or how many topics there are.

`--tune` prints every setting on the dialogues kept for that, and the best: lowest mean Pk of both sets. These are the
first 200 of DialSeg_711 and the training part of TIAGE; the others, which are reported, chose nothing. All methods are
tuned alike, and each has one setting for both sets. On labelled sessions, `benchmarks/observing.py` prints Pk with
words alone (extractive lexical) and with vectors (encoded).
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import BENCH, parser
from memory_pipeline.observations.quotes.segmentation import CLEAR, FADE, deep_places, topic_shifts
from memory_pipeline.text.encoder import Encoder
from memory_pipeline.text.similarity import words

DATA = BENCH / "data/segmentation"
TUNED_ON = 200
"""Dialogues of DialSeg_711, which has no training part."""
CLEARS = (0.5, 0.8, 1.0, 1.2, 1.4, 1.6, 2.0, 2.5)


@dataclass(frozen=True, eq=False)
class Dialogue:
    """`starts` are the utterances that begin a topic, without the first."""

    utterances: tuple[str, ...]
    starts: tuple[int, ...]
    vectors: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Method:
    """`find` takes a dialogue and a setting; `chosen` is the best of the settings by `--tune`."""

    name: str
    find: Callable[..., list[int]]
    settings: tuple[tuple[float, ...], ...] = ((),)
    chosen: tuple[float, ...] = ()


def no_boundary(dialogue: Dialogue) -> list[int]:
    return []


def in_words(dialogue: Dialogue, reach: int, clear: float) -> list[int]:
    """TextTiling: cosine of the words counted in as many utterances before and after."""
    counts = [Counter(words(utterance)) for utterance in dialogue.utterances]

    def likeness(i: int) -> float:
        one = sum(counts[max(0, i - reach) : i], Counter[str]())
        other = sum(counts[i : i + reach], Counter[str]())
        norms = math.sqrt(sum(n * n for n in one.values()) * sum(n * n for n in other.values()))
        return sum(n * other[word] for word, n in one.items()) / norms if norms else 0.0

    return [i + 1 for i in deep_places([likeness(i) for i in range(1, len(counts))], clear)]


def in_vectors(dialogue: Dialogue, reach: int, clear: float) -> list[int]:
    """The same with the mean vectors of as many utterances before and after."""
    vectors = np.array(dialogue.vectors)

    def likeness(i: int) -> float:
        one, other = vectors[max(0, i - reach) : i].mean(axis=0), vectors[i : i + reach].mean(axis=0)
        return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))

    return [i + 1 for i in deep_places([likeness(i) for i in range(1, len(vectors))], clear)]


def shipped(dialogue: Dialogue, fade: float, clear: float) -> list[int]:
    return topic_shifts(dialogue.vectors, fade, clear)


WINDOWS = tuple(product((2, 3, 4), CLEARS))
METHODS = (
    Method("no boundary", no_boundary),
    Method("words, windows (TextTiling)", in_words, WINDOWS, (2, 1.6)),
    Method("vectors, windows", in_vectors, WINDOWS, (2, 1.4)),
    Method(
        "vectors, fading (topic_shifts)", shipped, tuple(product((0.5, 0.6, 0.65, 0.7, 0.8), CLEARS)), (FADE, CLEAR)
    ),
)


def pk_and_window_diff(true: Sequence[int], found: Sequence[int], length: int) -> tuple[float, float]:
    apart = max(2, round(length / (2 * (len(true) + 1))))
    cuts = [
        (sum(i < start <= i + apart for start in true), sum(i < start <= i + apart for start in found))
        for i in range(length - apart)
    ]
    pk = sum(bool(one) != bool(other) for one, other in cuts) / len(cuts)
    return pk, sum(one != other for one, other in cuts) / len(cuts)


def figures(dialogues: Iterable[Dialogue], method: Method, setting: tuple[float, ...]) -> np.ndarray:
    """Means of Pk and WindowDiff, then their standard errors, in percent."""
    each = np.array([pk_and_window_diff(d.starts, method.find(d, *setting), len(d.utterances)) for d in dialogues])
    return 100 * np.concatenate([each.mean(axis=0), each.std(axis=0, ddof=1) / math.sqrt(len(each))])


def dialogues(data: Path, is_tuning: bool, encoder: Encoder) -> dict[str, list[Dialogue]]:
    """By set, only what is asked for: nothing of what is reported is looked at when tuning."""
    sets: dict[str, list[dict[str, Any]]] = {}
    for dialogue in json.loads((data / "dialseg_711.json").read_text("utf-8")):
        if (dialogue["dial_id"] < TUNED_ON) == is_tuning:
            sets.setdefault("DialSeg_711", []).append(dialogue)
    for dialogue in json.loads((data / "tiage.json").read_text("utf-8")):
        if (dialogue["set"] == "train") == is_tuning:
            sets.setdefault(f"TIAGE {dialogue['set']}", []).append(dialogue)
    texts = sorted({text for found in sets.values() for dialogue in found for text in dialogue["utterances"]})
    vectors = {text: tuple(vector) for text, vector in zip(texts, encoder.encode(texts), strict=True)}
    return {name: [_dialogue(raw, vectors) for raw in found] for name, found in sets.items()}


def _dialogue(raw: dict[str, Any], vectors: dict[str, tuple[float, ...]]) -> Dialogue:
    utterances = tuple(raw["utterances"])
    starts = tuple(accumulate(raw["segments"]))[:-1]
    return Dialogue(utterances, starts, tuple(vectors[text] for text in utterances))


def heading(sets: dict[str, list[Dialogue]]) -> str:
    return f"{'Pk / WindowDiff':46}" + "".join(f"{f'{name} ({len(found)})':>28}" for name, found in sets.items())


def line(name: str, of_sets: Iterable[np.ndarray]) -> str:
    cells = (f"{pk:.1f} ±{pk_error:.1f} / {wd:.1f} ±{wd_error:.1f}" for pk, wd, pk_error, wd_error in of_sets)
    return f"{name:46}" + "".join(f"{cell:>28}" for cell in cells)


def tune(sets: dict[str, list[Dialogue]]) -> None:
    for method in METHODS:
        pks: dict[tuple[float, ...], float] = {}
        for setting in method.settings:
            of_sets = [figures(found, method, setting) for found in sets.values()]
            pks[setting] = float(np.mean([f[0] for f in of_sets]))
            print(line(f"{method.name} {' '.join(map(str, setting))}", of_sets))
        best = min(pks, key=lambda setting: pks[setting])
        print(f"{'':4}best: {best}, mean Pk {pks[best]:.2f}; chosen: {method.chosen}, {pks[method.chosen]:.2f}")


def main() -> None:
    options = parser("segmentation", __doc__)
    options.add_argument("data", type=Path, nargs="?", default=DATA, metavar="DATA_DIR")
    options.add_argument("--tune", action="store_true", help="print every setting on the dialogues kept for that")
    asked = options.parse_args()
    data = asked.data
    if not (data / "dialseg_711.json").exists():
        sys.exit(f"There are no labelled dialogues in {data}; name their directory.")
    sets = dialogues(data, asked.tune, Encoder())
    print(heading(sets))
    if asked.tune:
        tune(sets)
        return
    for method in METHODS:
        name = f"{method.name} {' '.join(map(str, method.chosen))}"
        print(line(name, [figures(found, method, method.chosen) for found in sets.values()]))


if __name__ == "__main__":
    main()
