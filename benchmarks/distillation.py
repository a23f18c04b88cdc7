"""What of the labelled facts still stands in a day, a week and a month, and whether every line is whole.

    python -m benchmarks.distillation [--show N]

The sessions with labels, those of `../shared/gold` and of `benchmarks/labels`, are read, observed and distilled as for
everybody, all in one workspace on the days on which they were held. A fact counts as kept where a line finds it, as
`../shared/gold/score.py` finds facts: the words of a line carry it, and where the line was observed may count too.
Of the highs and of all facts it is printed how many the observations and narratives find, and which share of those a
level still has.

"whole" is the share of lines that are, character for character, a row that they were made from; "words" are those kept
of what was observed. Beside each level, with as many words: the beginning of its periods' facts (truncated), and the
same words taken out of the middle of all lines (thinned: every line loses its most frequent words, as up to version 0.2
it did). `--show N` prints N lines of each level, spread over them, to be read.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.common import FIXTURES, GOLD, parser
from benchmarks.labels import label_folder, scorer
from memory_pipeline.distillation.lines import NARRATIVE, count_words, facts_of
from memory_pipeline.distillation.periods import LEVELS, NAMES, Period, periods_of
from memory_pipeline.distillation.stage import rows_in, stages_of, traced
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.stage import ObservationsStage
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace

LATER = date(2030, 1, 1)
CARRIED = 0.35
"""Of the words of a fact's text or quote, from which the scorer takes it as found."""
MAX_SPANS = 3
"""Spans of evidence that the scorer looks at."""


@dataclass(frozen=True)
class Found:
    """A text that may find facts, with where it was said: (file, line)."""

    text: str
    words: frozenset[str]
    said_at: frozenset[tuple[str, int]]

    @classmethod
    def from_text(cls, text: str, said_at: Iterable[tuple[str, int]] = ()) -> Found:
        return cls(text.lower(), frozenset(scorer().words(text)), frozenset(said_at))

    def finds(self, file: str, fact: Mapping[str, Any]) -> bool:
        """As `score.py` has it."""
        has_keywords = sum(k.lower() in self.text for k in fact["keywords"]) * 2 >= len(fact["keywords"])
        shares = max(scorer().overlap(fact["text"], self.words), scorer().overlap(fact["quote"], self.words))
        has_words = shares >= CARRIED
        lines = {(file, line) for line in (fact["line"], *fact.get("other_lines", []))}
        return (has_keywords and has_words) or ((has_keywords or has_words) and not lines.isdisjoint(self.said_at))


@dataclass(frozen=True)
class Fact:
    file: str
    label: Mapping[str, Any]

    @property
    def is_high(self) -> bool:
        return bool(self.label["priority"] == "high")

    def is_in(self, texts: Iterable[Found]) -> bool:
        return any(text.finds(self.file, self.label) for text in texts)


def labelled(folder: Path) -> list[Fact]:
    labels = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.gold.json"))]
    return [Fact(Path(label["file"]).name, fact) for label in labels for fact in label["facts"]]


def distil_all(workspace: Path, files: Iterable[Path]) -> Workspace:
    """Read, observe and distil these sessions."""
    sessions = workspace / "sessions"
    sessions.mkdir()
    for file in files:
        (sessions / file.name).symlink_to(file)
    settings = Settings(workspace=workspace, session_dirs=(sessions,), default_session_dirs=False, timezone="UTC")
    opened = Workspace(settings, Lake.from_settings(settings))
    reading = SessionsStage.from_workspace(opened)
    reading.look()
    observing = ObservationsStage.from_workspace(opened)
    days = reading.catalogue.days()
    for day in days:
        bring_up_to_date(reading, opened.lake, day)
        bring_up_to_date(observing, opened.lake, day)
    for stage in stages_of(opened, LATER):
        for period in periods_of(stage.level, days):
            bring_up_to_date(stage, opened.lake, period.last)
    return opened


def said_at(lake: Lake) -> dict[str, list[tuple[str, int]]]:
    """Of each observation: file and line of its first spans."""
    messages = lake.read("messages").select("message_id", "source_file", "source_line").iter_rows()
    place = {message_id: (Path(file).name, line) for message_id, file, line in messages}
    return {
        row["observation_id"]: [place[span["message_id"]] for span in row["evidence"][:MAX_SPANS]]
        for row in lake.read("observations").iter_rows(named=True)
    }


def truncated(lines: Sequence[str], budget: int) -> list[str]:
    kept = []
    for line in lines:
        if (cost := count_words(line)) > budget:
            break
        budget -= cost
        kept.append(line)
    return kept


def thinned(lines: Sequence[str], budget: int) -> list[str]:
    """Every line without its most frequent words."""
    pieces = [line.split() for line in lines]
    counts = Counter(piece.lower() for line in pieces for piece in line)
    places = sorted(
        ((counts[piece.lower()], n, i) for n, line in enumerate(pieces) for i, piece in enumerate(line)),
        key=lambda place: place[0],
    )
    kept = {(n, i) for _, n, i in places[:budget]}
    return [" ".join(p for i, p in enumerate(line) if (n, i) in kept) for n, line in enumerate(pieces)]


BASELINES: Mapping[str, Callable[[Sequence[str], int], list[str]]] = {"truncated": truncated, "thinned": thinned}


def observed_texts(lake: Lake, period: Period) -> list[str]:
    """The facts of a period without its narratives."""
    return [line.text for line in facts_of(lake, period.days).lines if line.kind != NARRATIVE]


def report(opened: Workspace, facts: Sequence[Fact], show: int) -> None:
    lake, places, days = opened.lake, said_at(opened.lake), opened.lake.days("observations")
    whole = facts_of(lake, days)
    observed = [Found.from_text(text, places.get(i, ())) for i, text in whole.texts.items()]
    known = [fact for fact in facts if fact.is_in(observed)]
    highs = [fact for fact in known if fact.is_high]
    print(
        f"{len(facts)} labelled facts, {sum(f.is_high for f in facts)} high; observations and narratives find "
        f"{len(known)}, {len(highs)} high"
    )
    print(f"{'':20}{'lines':>7}{'words':>8}{'whole':>8}{'highs kept':>12}{'all kept':>10}")

    def line(name: str, found: Sequence[Found], texts: Sequence[str], unaltered: float | None = None) -> None:
        kept, high = (sum(fact.is_in(found) for fact in some) / max(1, len(some)) for some in (known, highs))
        share = sum(map(count_words, texts)) / whole.words
        verbatim = "" if unaltered is None else f"{unaltered:.1%}"
        print(f"{name:20}{len(texts):7}{share:8.1%}{verbatim:>8}{high:12.1%}{kept:10.1%}", flush=True)

    texts_below = whole.texts
    for level in LEVELS:
        periods = periods_of(level, days)
        rows = [row for period in periods for row in rows_in(lake, period)]
        leaves = [each for period in periods for each in traced(lake, period, rows_in(lake, period))]
        texts = [text for text, _ in leaves]
        found = [Found.from_text(text, [p for i in ids for p in places.get(i, ())]) for text, ids in leaves]
        unaltered = sum(any(texts_below.get(i) == row["text"] for i in row["sources"]) for row in rows)
        line(NAMES[level], found, texts, unaltered / max(1, len(rows)))
        budgets = {period: sum(count_words(row["text"]) for row in rows_in(lake, period)) for period in periods}
        for name, baseline in BASELINES.items():
            made = [text for period in periods for text in baseline(observed_texts(lake, period), budgets[period])]
            line(f"  {name}", [Found.from_text(text) for text in made if text], [t for t in made if t])
        for row in rows[:: max(1, len(rows) // show)][:show] if show else ():
            print(f"    {row['priority']:6} {row['kind']:12} {row['text']}")
        texts_below = {row["distillation_id"]: row["text"] for row in rows}


def main() -> None:
    options = parser("distillation", __doc__)
    options.add_argument("--show", type=int, default=0, metavar="N", help="print N lines of each level")
    asked = options.parse_args()
    if not (GOLD / "score.py").exists():
        sys.exit(f"There is no score.py in {GOLD}: the labelled sessions lie in ../shared, which is missing.")
    with label_folder(with_gold=True) as labels, tempfile.TemporaryDirectory() as workspace:
        facts = labelled(labels)
        names = {fact.file for fact in facts}
        files = [path for path in sorted(FIXTURES.rglob("*")) if path.name in names]
        report(distil_all(Path(workspace), files), facts, asked.show)


if __name__ == "__main__":
    main()
