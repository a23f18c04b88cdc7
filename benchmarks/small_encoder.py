"""Whether a small encoder, fine-tuned on units in their context, tells better than the weights what is worth keeping.

    python -m benchmarks.small_encoder [--folds N] [--cap N] [--epochs N]

The observer without a model weighs seventeen features of a unit by a linear model. Here the last layers of the bundled
sentence model, and a head on the mean of the unit's tokens (`tuning.py`), learn the same from the same labels, with
what the features do not see: who says it and where, the other side's message before, the unit itself, the reply after.
Two targets: the scorer finds a labelled fact in the unit, and a high one.

All 48 labelled sessions, in folds of whole people as `people.py` knows them, the same for both; each unit is judged by
models that saw nothing of its person. The linear model is fitted as it is shipped, on all units, and once more for high
facts. The encoder trains on `--cap` units of each session drawn by chance, and both are measured on such units. As with
the linear model each session has an offset while fitting. All numbers of the training were set before the first run, so
nothing is chosen on a fold.

AUC: within sessions (the mean over sessions, as a session's units compete with each other; what decides), the mean over
people of that, and over all units at once. `gain` is that within sessions, with the interval of 95 % when people are
drawn anew. The encoder is worth its place from .05 on, with at most 30 MB, in the time of embedding the messages once.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from benchmarks.common import parser
from benchmarks.fitting import Labelled, fit
from benchmarks.people import everybody
from benchmarks.tuning import TARGETS, Example, Tuned, judged, targets
from memory_pipeline.text.encoder import BATCH, Encoder

FOLDS, CAP, EPOCHS = 4, 150, 3
DRAWS = 2_000
AREAS = ("session", "person", "all", "gain", "from", "to")


def folds_of(people: Sequence[str], count: int) -> list[int]:
    """The fold of each session, whole people in each and about as many sessions; 0: a fold for each person."""
    sizes = [0] * (count or len(set(people)))
    fold_of = {}
    for person, size in sorted(Counter(people).items(), key=lambda each: (-each[1], each[0])):
        fold_of[person] = sizes.index(min(sizes))
        sizes[fold_of[person]] += size
    return [fold_of[person] for person in people]


def area(logits: np.ndarray, labels: np.ndarray) -> float:
    """Under the curve: the share of pairs in which what carries the target is above what does not."""
    more, less = logits[labels > 0], np.sort(logits[labels == 0])
    places = np.searchsorted(less, more) + np.searchsorted(less, more, side="right")
    return float(places.mean() / 2 / len(less))


def report(
    target: int, people: Sequence[str], logits: Mapping[str, list[np.ndarray]], labels: list[np.ndarray]
) -> None:
    y = [each[:, target] for each in labels]
    known = [s for s in range(len(y)) if 0 < y[s].sum() < len(y[s])]
    names, rng = sorted({people[s] for s in known}), np.random.default_rng(0)
    of = {name: [i for i, s in enumerate(known) if people[s] == name] for name in names}
    drawn = [[i for name in rng.choice(names, len(names)) for i in of[name]] for _ in range(DRAWS)]
    within = {k: np.array([area(x[s][:, target], y[s]) for s in known]) for k, x in logits.items()}
    for model, found in within.items():
        pooled = area(np.concatenate(logits[model])[:, target], np.concatenate(y))
        gain = found - within["linear"]
        low, high = np.quantile([gain[some].mean() for some in drawn], (0.025, 0.975))
        values = (found.mean(), np.mean([found[some].mean() for some in of.values()]), pooled, gain.mean(), low, high)
        print(f"{TARGETS[target]:17}{model:15}" + "".join(f"{value:10.3f}" for value in values), flush=True)


def linear(data: Sequence[Labelled]) -> np.ndarray:
    """A column of weights for each target, the intercept last."""
    high = [replace(d, is_fact=targets(d)[:, 1], weight=np.ones(len(d.weight))) for d in data]
    return np.stack([fit(data), fit(high)], axis=1)


def seconds_of_embedding(data: Sequence[Labelled], count: int) -> float:
    """For all that was said, by as many messages drawn by chance."""
    said = [m.text for d in data for m in d.found.window.messages if m.role in ("user", "assistant") and m.text.strip()]
    some = [said[i] for i in np.random.default_rng(0).permutation(len(said))[:count]]
    encoder = Encoder()
    encoder.encode(some[:1])  # loads the model
    start = time.perf_counter()
    encoder.encode(some)
    return (time.perf_counter() - start) / len(some) * len(said)


def main() -> None:
    options = parser("small_encoder", __doc__)
    options.add_argument("--folds", type=int, default=FOLDS, help="of whole people; 0: each person")
    options.add_argument("--cap", type=int, default=CAP, help="units of a session")
    options.add_argument("--epochs", type=int, default=EPOCHS)
    asked = options.parse_args()
    torch.set_num_threads(1)
    with everybody() as known:
        data, people = known.all, [known.person(d) for d in known.all]
    fold, model, clock = folds_of(people, asked.folds), Tuned(), time.perf_counter
    drawn = [np.random.default_rng(s).permutation(len(d.features))[: asked.cap].tolist() for s, d in enumerate(data)]
    start = clock()
    examples: list[list[Example]] = [list(model.examples(d, some)) for d, some in zip(data, drawn, strict=True)]
    seconds, units = clock() - start, sum(map(len, examples))
    print(
        f"{units} units of {len(data)} sessions, {len(set(people))} people; layers below: {seconds:.0f} s", flush=True
    )
    logits: dict[str, list[np.ndarray]] = {k: [np.empty(0)] * len(data) for k in ("linear", "encoder", "both")}
    for number in sorted(set(fold)):
        train, test = ([s for s, f in enumerate(fold) if (f == number) is here] for here in (False, True))
        start = clock()
        layers, head, losses = model.fitted([e for s in train for e in examples[s]], asked.epochs, seed=number)
        told = f"trained {clock() - start:.0f} s, loss {np.mean(losses[:20]):.3f} to {np.mean(losses[-20:]):.3f}"
        print(f"fold {number}: {len(test)} sessions, {told}", flush=True)
        betas = linear([data[s] for s in train])
        for s in test:
            start = clock()
            batches = (examples[s][i : i + BATCH] for i in range(0, len(examples[s]), BATCH))
            with torch.no_grad():
                logits["encoder"][s] = torch.cat([judged(layers, head, batch) for batch in batches]).numpy()
            seconds += clock() - start
            logits["linear"][s] = data[s].features[[e.number for e in examples[s]]] @ betas[:-1] + betas[-1]
            logits["both"][s] = logits["linear"][s] + logits["encoder"][s]
    print(f"\n{'AUC, people left out':32}" + "".join(f"{name:>10}" for name in AREAS))
    for target in range(len(TARGETS)):
        report(target, people, logits, [np.stack([e.labels.numpy() for e in each]) for each in examples])
    once = seconds_of_embedding(data, asked.cap) / sum(len(d.features) for d in data)
    print(f"\nseconds per 1,000 units: {seconds / units * 1e3:.1f}; of embedding what was said once {once * 1e3:.1f}")
    size = sum(p.numel() * p.element_size() for p in (*layers.parameters(), *head.parameters())) / 1e6
    print(f"a file of {size:.1f} MB beside the bundled model")


if __name__ == "__main__":
    main()
