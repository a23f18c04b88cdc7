"""What letting go of the review costs: wrong lines in MEMORY.md against lines that nobody had to look at.

    python -m benchmarks.auto_promotion [--lines N] [--people N]

Simulated people decide on N lines of one section, one after the other; each takes a line as it was offered with their
own chance, and notices a wrong line in MEMORY.md with a chance of one half. Every line could be promoted without
asking. Shown by rule: people whose section was ever on, decisions until it was, lines promoted without asking and, of
those, wrong ones, per 1,000 lines. The rules are the pipeline's; the same with the one-sided bound; and the baseline,
a plain rate of 90 % over the last 20 to 50 decisions, without a shadow. No real person's decisions are in this.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

from benchmarks.common import parser
from memory_pipeline.proposals.automatic import COUNTED, MIN_DECISIONS, TRUSTED_FROM, Rate

CHANCES = (0.80, 0.90, 0.95, 0.98, 0.99, 1.0)
NOTICED = 0.5
ONE_SIDED = 1.644854


def one_sided(rate: Rate) -> bool:
    if rate.counted < MIN_DECISIONS:
        return False
    n, p, zz = rate.counted, rate.good / rate.counted, ONE_SIDED**2
    lower = (p + zz / (2 * n) - ONE_SIDED * sqrt(p * (1 - p) / n + zz / (4 * n * n))) / (1 + zz / n)
    return lower >= TRUSTED_FROM


def plain(rate: Rate) -> bool:
    return rate.counted >= MIN_DECISIONS and rate.good >= TRUSTED_FROM * rate.counted


RULES: dict[str, tuple[Callable[[Rate], bool], bool]] = {
    "the pipeline's": (lambda rate: rate.is_trusted, True),
    "one-sided bound": (one_sided, True),
    "plain rate, no shadow": (plain, False),
}


@dataclass
class Life:
    """One person's lines: how many were decided before the section was on, and what came in without asking."""

    on_after: int | None = None
    promoted: int = 0
    wrong: int = 0


def live(chance: float, lines: int, trusted: Callable[[Rate], bool], has_shadow: bool, seed: str) -> Life:
    said, life = random.Random(seed), Life()
    decisions: list[bool] = []
    good = bad = 0  # of what would have been promoted
    for number in range(lines):
        last = decisions[-COUNTED:]
        in_question = trusted(Rate(sum(last), len(last)))
        right = said.random() < chance
        if in_question and (not has_shadow or trusted(Rate(good, good + bad))):
            life.on_after = number if life.on_after is None else life.on_after
            life.promoted += 1
            life.wrong += not right
            if not right and said.random() < NOTICED:
                decisions.append(False)
                bad += 1
            continue
        decisions.append(right)
        if in_question:
            good, bad = good + right, bad + (not right)
    return life


def main() -> None:
    options = parser("auto_promotion", __doc__)
    options.add_argument("--lines", type=int, default=1000)
    options.add_argument("--people", type=int, default=200)
    arguments = options.parse_args()
    print(f"{arguments.people} people of each kind, {arguments.lines:,} lines each\n")
    print(f"{'rule':24}{'takes as offered':>18}{'ever on':>10}{'decisions until':>17}{'unasked':>10}{'wrong':>8}")
    for name, (trusted, has_shadow) in RULES.items():
        for chance in CHANCES:
            seeds = [f"{n} {chance}" for n in range(arguments.people)]
            lives = [live(chance, arguments.lines, trusted, has_shadow, seed) for seed in seeds]
            on = sorted(life.on_after for life in lives if life.on_after is not None)
            per = 1000 / (arguments.lines * len(lives))
            unasked, wrong = sum(x.promoted for x in lives) * per, sum(x.wrong for x in lives) * per
            until = f"{on[len(on) // 2]}" if on else "-"
            print(f"{name:24}{chance:>18.0%}{len(on) / len(lives):>10.0%}{until:>17}{unasked:>10.0f}{wrong:>8.1f}")


if __name__ == "__main__":
    main()
