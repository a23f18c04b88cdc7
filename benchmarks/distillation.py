"""How much of what was said is still found after a distillation (LoCoMo): per level its words and its R@10.

    python -m benchmarks.distillation

A session of LoCoMo is a day, seven days are a week, which the extractive observer observes, one person as the user
and the other as the assistant; the stage then distils days, weeks and months as it does for everybody, with the gate
only counted. BM25 ranks the rows of a level for each question of the categories 1 to 4 that has evidence. R@10 is the
share of a question's evidence among ten messages, averaged over the questions: the best rows are followed back to the
messages that they come from, first to last, until there are ten. So only the words of the lines find anything, and a
line that was made from many facts hides the right one behind the others. "loss" is against "whole", the observations
themselves, with the same searcher.

Beside each level, with as many words of its periods' observations as it has: their beginning (truncation), a random
choice, and the best whole lines by `text/condense.py`. "refused" are the periods whose loss of recall, by questions
about highs, is above MEMORY_MAX_RECALL_LOSS; "worst" is the greatest. "words" are of observations and narratives.

All was chosen on three conversations; the seven others, which follow them, were only measured, with eight versions on
the way. On three, a point or two is chance: versions that were equal there differed by three points on the seven.
LoCoMo is CC BY-NC 4.0: for measuring, never a part of the product.
"""

import importlib.util
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from statistics import mean
from typing import Any, cast

import polars as pl

from benchmarks.common import BENCH, parser
from memory_pipeline.distillation.facts import Facts, facts_of
from memory_pipeline.distillation.lines import count_words
from memory_pipeline.distillation.periods import LEVELS, NAMES, Period, end_of_month, periods_of
from memory_pipeline.distillation.recall import recall
from memory_pipeline.distillation.stage import Levels, stages_of
from memory_pipeline.lake.rows import WindowRow
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.extractive.observer import ExtractiveObserver
from memory_pipeline.observations.model import WindowMessage
from memory_pipeline.observations.rows import rows_of
from memory_pipeline.settings import Settings
from memory_pipeline.stage import bring_up_to_date
from memory_pipeline.text.bm25 import BM25
from memory_pipeline.text.condense import condense
from memory_pipeline.workspace import Workspace

RETRIEVAL = BENCH / "retrieval.py"
CHOSEN_ON = 3
"""Conversations, in the order of the file, that the numbers were chosen on."""
MONDAY = date(2023, 5, 1)
FOUND_IN = 10

Row = tuple[str, Sequence[str]]
"""A text and the observations that it comes from, in order."""
Ways = Mapping[str, Callable[[Facts, int], list[Row]]]


@dataclass
class Figures:
    """Of one level or way: by conversation, by question, by period."""

    words: list[float] = field(default_factory=list)
    found: list[float] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)


def conversations() -> Iterator[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    """(messages, questions) of each."""
    spec = importlib.util.spec_from_file_location("retrieval", RETRIEVAL)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield from module.locomo()


def observe(messages: Sequence[Mapping[str, Any]], lake: Lake, settings: Settings) -> list[date]:
    """Store what is observed of each session, a day each; returns the days."""
    sessions: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for message in messages:
        sessions[message["session"]].append(message)
    days = [MONDAY + timedelta(days=n) for n in range(len(sessions))]
    for day, (session, said) in zip(days, sessions.items(), strict=True):
        start = datetime.combine(day, time(9), UTC)
        shown = [
            WindowMessage(m["id"], "user" if m["speaker"] == messages[0]["speaker"] else "assistant", at, m["text"])
            for m, at in zip(said, (start + timedelta(minutes=n) for n in range(len(said))), strict=True)
        ]
        window = {"day": day, "dedupe_key": session, "session_id": session, "started_at": start}
        frames = rows_of(
            cast("WindowRow", window), ExtractiveObserver().observe(shown), "extractive", settings.zone
        ).frames()
        for table, frame in {**frames, "windows": pl.DataFrame([window])}.items():
            lake.replace(table, frame, [day])
    return days


def lead(facts: Facts, room: int) -> list[Row]:
    return _that_fit(facts, range(len(facts.observed)), room)


def randomly(facts: Facts, room: int) -> list[Row]:
    return _that_fit(facts, random.Random(1).sample(range(len(facts.observed)), len(facts.observed)), room)


def whole_lines(facts: Facts, room: int) -> list[Row]:
    texts = [o.text for o in facts.observed]
    kept = condense(texts, room / max(1, sum(map(count_words, texts))), facts.rarity())
    return [(texts[i], [facts.observed[i].observation_id]) for i in kept]


def _that_fit(facts: Facts, order: Iterable[int], room: int) -> list[Row]:
    kept: list[Row] = []
    for o in (facts.observed[i] for i in order):
        if (cost := count_words(o.text)) <= room:
            room -= cost
            kept.append((o.text, [o.observation_id]))
    return kept


WAYS: Ways = {"truncated": lead, "random": randomly, "whole lines": whole_lines}


def in_order(levels: Levels, period: Period) -> list[Row]:
    """The rows of a period with the observations that they come from, in the order of their sources."""
    rows = levels.rows(period)
    if not period.parts:
        return [(row["text"], row["sources"]) for row in rows]
    below = {
        row["distillation_id"]: sources
        for part in period.parts
        for row, (_, sources) in zip(levels.rows(part), in_order(levels, part), strict=True)
    }
    return [(row["text"], [leaf for source in row["sources"] for leaf in below[source]]) for row in rows]


def measure(
    messages: Sequence[Mapping[str, Any]], questions: Sequence[Mapping[str, Any]], total: Mapping[str, Figures]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(workspace=Path(folder), timezone="UTC", max_recall_loss=1.0)
        lake = Lake(settings.lake_dir)
        days = observe(messages, lake, settings)
        all_days = [
            MONDAY + timedelta(days=n) for n in range((end_of_month(days[-1] + timedelta(days=7)) - MONDAY).days + 1)
        ]
        for stage in stages_of(Workspace(settings, lake), date(2030, 1, 1)):
            for period in periods_of(stage.level, all_days, all_days[-1]):
                bring_up_to_date(stage, lake, period.last)
        said = {
            row["observation_id"]: list(dict.fromkeys(span["message_id"] for span in row["evidence"]))
            for row in lake.read("observations").iter_rows(named=True)
        }
        whole = facts_of(lake, days)

        def add(name: str, rows: Sequence[Row], losses: Sequence[float] = ()) -> None:
            figures, index = total[name], BM25([text for text, _ in rows])
            for question in questions:
                found = [o for n in index.search(question["query"], FOUND_IN) for o in rows[n][1]]
                there = list(dict.fromkeys(m for o in found for m in said.get(o, ())))[:FOUND_IN]
                figures.found.append(len(set(question["gold"]) & set(there)) / len(question["gold"]))
            figures.words.append(sum(count_words(text) for text, _ in rows) / whole.words)
            figures.rows.append(len(rows))
            figures.losses += losses

        add("whole", [(o.text, [o.observation_id]) for o in whole.observed])
        levels = Levels(lake)
        for level in LEVELS:
            periods = [p for p in periods_of(level, all_days, all_days[-1]) if levels.rows(p)]
            made: dict[str, list[Row]] = defaultdict(list)
            losses: dict[str, list[float]] = defaultdict(list)
            for period in periods:
                facts, own = facts_of(lake, period.days), in_order(levels, period)
                room = sum(count_words(text) for text, _ in own)
                for name, rows in {NAMES[level]: own, **{w: way(facts, room) for w, way in WAYS.items()}}.items():
                    key = name if name == NAMES[level] else f"{NAMES[level]}: {name}"
                    made[key] += rows
                    losses[key].append(recall(facts.by_id(), facts.highs(), rows).loss)
            for key, rows in made.items():
                add(key, rows, losses[key])


def report(name: str, some: Sequence[tuple[list[dict[str, Any]], list[dict[str, Any]]]]) -> None:
    total: dict[str, Figures] = defaultdict(Figures)
    for messages, questions in some:
        measure(messages, questions, total)
    print(f"{len(some)} conversations {name}, {sum(len(questions) for _, questions in some)} questions")
    print(f"{'':20}{'lines':>7}{'words':>8}{'R@10':>7}{'loss':>7}{'refused':>12}{'worst':>7}")
    most = Settings.model_fields["max_recall_loss"].default
    for key, figures in total.items():
        found, whole = (100 * mean(total[one].found) for one in (key, "whole"))
        line = f"{key:20}{mean(figures.rows):7.0f}{mean(figures.words):8.1%}{found:7.1f}{whole - found:7.1f}"
        if figures.losses:
            refused = sum(loss > most for loss in figures.losses)
            line += f"{f'{refused} of {len(figures.losses)}':>12}{max(figures.losses):7.2f}"
        print(line)


def main() -> None:
    parser("distillation", __doc__).parse_args()
    if not RETRIEVAL.exists():
        sys.exit(f"There is no {RETRIEVAL}.")
    known = list(conversations())
    report("that all was chosen on", known[:CHOSEN_ON])
    report("that nothing was chosen on", known[CHOSEN_ON:])


if __name__ == "__main__":
    main()
