"""Fit what tells that a line of MEMORY.md or AGENTS.md holds no longer, and print how well that does on left-out files.

    python -m benchmarks.fit_stale_lines [--weeks N] [--first N] [--write FOLDER]

The files of `stale_lines/` have lines, each with remarks of users from which one can tell that it is over (`over`), and
with others about the very same thing after which it still stands (`holds`: a request that fits it, a question, a plan,
an agent that broke it). Each file was written by a language model that saw nothing of the others or of the code.

Two judgements (`memory_pipeline/friction/stale.py`). Whether a sentence is news, that something is otherwise by now: by
its words and its vector, `over` against `holds` and against the wordings of `fit_objections.py`. And whether it says so
of a line: by that, and by how alike the two are, in planted weeks with as many lines that are talked of and hold as
lines that are over; and in weeks of the banks `tuning` and `reporting`.

Printed is, by weights fitted without the file: the area under the curve of news against what holds, and against the
ordinary talk of another file; and recall and precision of lines, that two sessions or more say are over. In the weeks
of a file every line that holds is talked of in words that are meant to deceive, so that its figures are lower than any
week would give. `cues` are the lines that the cues of `stale_lines` find, without any weights; `recorded` are the days
of ../shared/fixtures and ../shared/more-sessions, where how many lines are shown tells, for none of them is known to be
over.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.common import FIXTURES, MORE, parser
from benchmarks.fit_corrections import Window, planted_windows, recorded_windows, write
from benchmarks.fit_objections import RECORDED, Example, Fitting, area, examples, use
from benchmarks.planted_friction.bank import (
    KEPT_ASIDE,
    LANGUAGES,
    REPORTING,
    TUNING,
    UNHEARD,
    Bank,
    Topic,
    bank_of,
)
from benchmarks.planted_friction.model import RULE_VIOLATED, STALE_MEMORY
from memory_pipeline.friction import stale, weights
from memory_pipeline.friction.about_rules import AboutRules
from memory_pipeline.friction.sentence_weights import NEWS
from memory_pipeline.friction.stale import OVER, lines_over, over_features, stale_lines

FILES = Path(__file__).with_name("stale_lines")
BANKS = (TUNING, REPORTING)
"""Those that have lines of their own."""
AROUND = (TUNING, UNHEARD, REPORTING, KEPT_ASIDE)
"""Banks that in turn lend the rest of a file's weeks."""
A_WEEK = 4
"""Lines that are over, and as many that hold."""
PER_WEEK = {STALE_MEMORY: A_WEEK, RULE_VIOLATED: 3}
ORDINARY = "ordinary_talk"
STRENGTH = 0.3
"""Inverse of the ridge."""
MIN_LIKE = 0.15
"""How alike a sentence and a line must be, to be fitted on: of all others nothing can be learnt."""


@dataclass(frozen=True)
class Week:
    """What was said, and which lines are over."""

    window: Window
    over: Mapping[str, str]
    """The plant of each line."""

    def about(self) -> AboutRules:
        return self.window.heard.weighed()[1]


def told(path: Path) -> list[Topic]:
    return list(tomllib.loads(path.read_text("utf-8"))["line"])


def sentences(source: str, topics: Iterable[Topic]) -> Iterator[Example]:
    for topic in topics:
        for part in ("over", "holds"):
            for language, texts in topic[part].items():
                yield from (Example(t, part == "over", f"{source}/{topic['name']}", language, source) for t in texts)


def others() -> Iterator[Example]:
    """None of which is news: what users objected to, and what else they said, also in recorded sessions."""
    for example in examples():
        yield example._replace(label=False, topic=f"other/{example.topic}")


def bank_with(source: str, topics: Sequence[Topic], around: str) -> Bank:
    lines = [
        {
            "name": topic["name"],
            "line": topic["line"],
            "says": {language: topic["over"][language] for language in LANGUAGES},
            "holds": {language: topic["holds"][language] for language in LANGUAGES},
        }
        for topic in topics
    ]
    data = {**bank_of(around).data, STALE_MEMORY: lines, "lines_that_hold": A_WEEK}
    return Bank(f"stale lines/{source}", data)


def weeks_of(banks: Iterable[tuple[Bank, int]]) -> list[Week]:
    """Each bank with the seed of its week."""
    found = []
    for bank, seed in banks:
        lines = {topic["name"]: set(topic["line"].values()) for topic in bank.topics(STALE_MEMORY)}
        for window in planted_windows(bank, [seed], PER_WEEK):
            plants = [name for name, plant in window.plants.items() if plant.kind == STALE_MEMORY]
            over = {line: name for name in plants for line in lines[name.partition("/")[2]]}
            found.append(Week(window, over))
    return found


def measured(week: Week) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names of the features; of each sentence beside each line that is like it the features, and whether it says that
    the line is over."""
    about = week.about()
    features = over_features(about, week.window.heard.vectors)
    size = len(about.events), len(about.rules)
    reaches = np.array([[r.reaches(e) for r in about.rules] for e in about.events], dtype=bool).reshape(size)
    counts = reaches & (features["like"] >= MIN_LIKE)
    plants = np.array([week.over.get(rule.text, "-") for rule in about.rules])
    of = np.array([week.window.of.get(e.event_id, "") for e in about.events])
    label = of[:, None] == plants[None, :]
    return list(features), np.stack([f[counts] for f in features.values()], axis=1), label[counts]


def fit_lines(rows: Sequence[tuple[list[str], np.ndarray, np.ndarray]]) -> dict[str, Any]:
    x, y = np.vstack([features for _, features, _ in rows]), np.concatenate([label for *_, label in rows])
    found = LogisticRegression(C=STRENGTH, max_iter=5_000).fit(x, y)
    by_name = {name: round(float(w), 3) for name, w in zip(rows[0][0], found.coef_[0], strict=True)}
    return {"intercept": round(float(found.intercept_[0]), 3), "by_name": by_name}


def figures(weeks: Sequence[Week], line_is_over: Mapping[str, Any]) -> str:
    """Recall and precision of lines by the weights, at several thresholds, and by the cues alone."""
    shipped = {**weights.shipped(), weights.LINE_IS_OVER: weights.Weights(**line_is_over)}
    planted = max(1, sum(len(set(week.over.values())) for week in weeks))
    found: dict[str, list[tuple[Week, set[str]]]] = {}
    with patch.object(weights, "shipped", lambda: shipped):
        for week in weeks:
            about = week.about()
            for over in (OVER - 1, OVER, OVER + 1):
                with patch.object(stale, "OVER", over):
                    texts = {rule.text for rule in lines_over(about, week.window.heard.vectors)}
                found.setdefault(f"from {over}", []).append((week, texts))
            by_cues = {rule.text for rule in stale_lines(about.events, about.rules)}
            found.setdefault("cues", []).append((week, by_cues))
    shares = []
    for name, of_weeks in found.items():
        right = sum(len({w.over[text] for text in texts if text in w.over}) for w, texts in of_weeks)
        shown = sum(len(texts) for _, texts in of_weeks)
        shares.append(f"{name} {right / planted:.2f} {right / max(1, shown):.2f} of {shown}")
    return "   ".join(shares)


def main() -> None:
    options = parser("fit_stale_lines", __doc__)
    options.add_argument("--weeks", type=int, default=24, help="of each file and bank")
    options.add_argument("--first", type=int, default=500, help="the first seed")
    options.add_argument("--write", type=Path, metavar="FOLDER", help="where the weights go")
    chosen = options.parse_args()
    files = {path.stem: told(path) for path in sorted(FILES.glob("*.toml"))}
    given = [e for source, topics in files.items() for e in sentences(source, topics)]
    fitting = Fitting([*given, *others()])
    seeds = range(chosen.first, chosen.first + chosen.weeks)
    planted = {
        source: weeks_of((bank_with(source, topics, AROUND[seed % len(AROUND)]), seed) for seed in seeds)
        for source, topics in files.items()
    }
    planted |= {name: weeks_of((bank_of(name), seed) for seed in seeds) for name in BANKS}
    recorded = [Week(w, {}) for place in (FIXTURES, MORE) if place.is_dir() for w in recorded_windows(place)]
    news = {source: fitting.without(source) for source in (*planted, RECORDED)}
    rows = {}
    for source, weeks in planted.items():
        use(NEWS, news[source])
        rows[source] = [measured(week) for week in weeks]
        if source in files:
            own, is_over = fitting.sources == source, fitting.label == 1
            over, holds, talk = (
                fitting.logits(news[source], some)
                for some in (own & is_over, own & ~is_over, fitting.sources == ORDINARY)
            )
            print(f"{source:<20}news: area {area(over, holds):.2f}, against ordinary talk {area(over, talk):.2f}")
    for source, weeks in {**planted, RECORDED: recorded}.items():
        use(NEWS, news[source])
        found = fit_lines([row for other, of in rows.items() if other != source for row in of])
        print(f"{source:<20}lines, recall and precision: {figures(weeks, found)}", flush=True)
    if chosen.write:
        told_of_news = fitting.fit(range(len(fitting.given)))
        (chosen.write / NEWS).write_text(json.dumps(told_of_news, ensure_ascii=False, indent=1) + "\n", "utf-8")
        found = fit_lines([row for of in rows.values() for row in of])
        write(chosen.write / weights.FILE, {weights.LINE_IS_OVER: found})


if __name__ == "__main__":
    main()
