"""How much careful readers write down of a session when nobody limits them, beside what a model is allowed.

    python -m benchmarks.fair_size

For each labelled session of `../shared/gold` and of `benchmarks/labels/strangers`: messages, tokens said by people and
the model, tokens of the labelled facts, and the budget as it was (a tenth of what was said, 250 tokens at least) and
is. Last, how far the budgets lie from the facts in the middle and at the ends, and how much of the facts they have
room for together. The readers of the strangers were told to expect 6 to 20 facts in a session; those of the gold
labels were not.
"""

import statistics
import tempfile
from math import sqrt
from pathlib import Path

from benchmarks.common import FIXTURES, GOLD, MORE, parser
from benchmarks.labels import STRANGERS, restore
from benchmarks.observing import sessions
from memory_pipeline.observations.model.observer import model_token_budget
from memory_pipeline.observations.quotes.observer import token_budget
from memory_pipeline.text.tokens import estimate

SHARE = 0.1


def main() -> None:
    parser("fair_size", __doc__).parse_args()
    print(f"{'':44}{'messages':>10}{'said':>8}{'facts':>8}{'before':>8}{'now':>8}{'per root':>10}")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        restore(Path(folder), MORE, STRANGERS)
        for labels, files in ((GOLD / "labels", FIXTURES), (Path(folder), MORE)):
            for session in sessions(labels, files):
                said = sum(estimate(m.text) for m in session.said if m.role in ("user", "assistant"))
                facts = sum(estimate(fact["text"]) for fact in session.gold["facts"])
                before, now = token_budget(session.said, SHARE), model_token_budget(session.said, SHARE)
                found.append((facts, before, now, facts / sqrt(len(session.said))))
                print(f"{session.file[-44:]:44}{len(session.said):>10}{said:>8}{facts:>8}{before:>8}{now:>8}", end="")
                print(f"{found[-1][3]:>10.1f}")
    for name, column in (("before", 1), ("now", 2)):
        shares = sorted(row[column] / row[0] for row in found)
        room = sum(min(row[column], row[0]) for row in found) / sum(row[0] for row in found)
        ends = f"{shares[0]:.2f} to {shares[-1]:.2f}"
        print(f"budget {name}: {statistics.median(shares):.2f} of the facts in the middle, {ends}; room for {room:.2f}")
    roots = sorted(row[3] for row in found)
    middle = statistics.median(roots)
    print(f"facts: {roots[0]:.0f} to {roots[-1]:.0f} tokens per root of messages, {middle:.0f} in the middle")


if __name__ == "__main__":
    main()
