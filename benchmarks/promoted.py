"""What of the labelled facts reaches MEMORY.md when a reviewer approves all that is offered.

    python -m benchmarks.promoted [SESSIONS_DIR] [--workspace DIR] [--labels gold|own|all] [--unseen] [--list]

All sessions (SESSIONS_DIR, default ../shared/fixtures) go through `memory run --all` into an empty workspace, or a copy
of DIR is taken. Page after page, all that REVIEW.md offers is approved and promoted. At each stage the lines of the
labelled sessions are held against their labels by the rule of `../shared/gold/score.py`, without its limit of tokens:
the facts that were observed, those left after reflecting, those proposed, those that stand in MEMORY.md. `junk` is the
share of the lines that carry no labelled fact, `traps` the share of the labelled traps that a line repeats. Then the
first page of the queue, and the first three. Baselines: every high observation, as many observations as there are
proposals (by chance, and the first of each session), and proposals by chance instead of the first.
`--list` prints every high fact with the stage that lost it and every proposal with the fact that it carries.

Facts of windows that are not observed (fewer than five messages of a person) cannot be found; `observed windows` leaves
them out. The shipped observer was fitted on all labelled sessions. `--unseen` fits it on those of `benchmarks/labels`
alone, runs with these weights, and scores the gold sessions, which they have not seen.
"""

import json
import random
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks import fitting
from benchmarks.common import FIXTURES, GOLD, ROOT, parser
from benchmarks.labels import label_folder, scorer
from benchmarks.observing import sessions
from benchmarks.proposals import backfill
from memory_pipeline.lake.store import Lake
from memory_pipeline.observations.quotes import candidates as shipped
from memory_pipeline.proposals.events import APPROVED, ProposalLog
from memory_pipeline.proposals.memory_file import lines_of
from memory_pipeline.proposals.review import decide, on_display, reconcile
from memory_pipeline.settings import Settings
from memory_pipeline.text.priorities import HIGH
from memory_pipeline.workspace.workspace import Workspace

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
SHARE, TRAP_SHARE, MIN_SPAN = 0.35, 0.6, 12
"""The scorer's: share of words that carries a fact, that repeats a trap, and characters that a place is known by."""
PAGES = (20, 60)
"""Proposals of the labelled sessions that a reviewer sees first: a page, and three."""
FIGURES = ("facts", "found", "share", "high facts", "high found", "high share", "lines", "junk", "traps")


@dataclass(frozen=True)
class Line:
    """What a line of some stage says, and the words in the session that it rests on."""

    text: str
    spans: tuple[str, ...]


@dataclass(frozen=True)
class Labelled:
    file: str
    facts: list[dict[str, Any]]
    traps: list[dict[str, Any]]
    said: tuple[tuple[int, str], ...]
    """Line of the file and what was said there, white space collapsed."""

    def carries(self, line: Line, fact: dict[str, Any]) -> bool:
        """Whether the line says the fact: half of its keywords or a third of its words, and both or the right place."""
        text, words = line.text.lower(), set(scorer().words(line.text))
        keys = sum(k.lower() in text for k in fact["keywords"]) * 2 >= len(fact["keywords"])
        same = max(scorer().overlap(fact[part], words) for part in ("text", "quote")) >= SHARE
        if keys and same:
            return True
        named = {fact["line"], *fact.get("other_lines", [])}
        return (keys or same) and any(n in named and span in text for n, text in self.said for span in line.spans)


def main() -> None:
    options = parser("promoted", __doc__)
    options.add_argument("sessions", nargs="?", type=Path, default=FIXTURES)
    options.add_argument("--workspace", type=Path, help="score a copy of this workspace instead of making one")
    options.add_argument("--labels", choices=("gold", "own", "all"), default="all")
    options.add_argument(
        "--unseen", action="store_true", help="weights fitted without the gold sessions, scored on them"
    )
    options.add_argument("--list", action="store_true")
    asked = options.parse_args()
    if asked.unseen:
        asked.labels, asked.workspace = "gold", None
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "workspace"
        if asked.workspace:
            shutil.copytree(asked.workspace, copy, ignore=shutil.ignore_patterns("index*", "dagster*"))
        else:
            backfill(asked.sessions, copy, fitted_without_gold(Path(folder)) if asked.unseen else ROOT)
        settings = Settings(workspace=copy, default_session_dirs=False, memory_file=copy / "MEMORY.md")
        report(settings, list(labelled(asked.labels)), listing=asked.list)


def fitted_without_gold(folder: Path) -> Path:
    """A copy of the package whose observer has seen no gold session."""
    for name in ("memory_pipeline", "prompts"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "dagster.yaml", folder)
    target = folder / Path(shipped.__file__).with_name(shipped.FILE).relative_to(ROOT)
    with label_folder(with_gold=False) as labels:
        found = [fitting.labelled(session) for session in sessions(labels)]
    weights = fitting.weights_of(fitting.fit(found))
    target.write_text(json.dumps(json.loads(target.read_text("utf-8")) | vars(weights)), "utf-8")
    return folder


def labelled(which: str) -> Iterator[Labelled]:
    with label_folder(with_gold=which == "all") as own:
        for file in sorted((GOLD / "labels" if which == "gold" else own).glob("*.gold.json")):
            label = json.loads(file.read_text("utf-8"))
            said = scorer().spoken(FIXTURES / label["file"])
            flat = tuple((number, " ".join(text.split())) for number, text in said)
            yield Labelled(label["file"], label["facts"], label["traps"], flat)


class Stages:
    """What a workspace has at each stage, as lines by the name of the session's file."""

    def __init__(self, lake: Lake, files: Collection[str]) -> None:
        messages = lake.read("messages").select("message_id", "text", "source_file")
        self.texts = {i: (text, Path(source).name) for i, text, source in messages.iter_rows()}
        self.observations = {row["observation_id"]: row for row in lake.read("observations").iter_rows(named=True)}
        self.reflections = lake.read("reflections").to_dicts()
        self.queue = ProposalLog(lake).pending()
        self.files = files

    def lines(self, rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Line]]:
        """A line of several sessions belongs to each; one without evidence has that of its sources."""
        found: dict[str, list[Line]] = defaultdict(list)
        for row in rows:
            spans: dict[str, list[str]] = defaultdict(list)
            for span in row.get("evidence") or self._evidence(row):
                text, name = self.texts[span["message_id"]]
                spans[name].append(" ".join(text[span["start"] : span["end"]].split()))
            for name, words in spans.items():
                found[name].append(Line(row["text"], tuple(w for w in words if len(w) >= MIN_SPAN)))
        return found

    def _evidence(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        sources = [self.observations[s] for s in row["sources"] if s in self.observations]
        return [span for o in sources for span in o["evidence"]]

    def file_of(self, row: Mapping[str, Any]) -> str:
        return self.texts[row["evidence"][0]["message_id"]][1]

    def labelled(self, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        return [row for row in rows if self.file_of(row) in self.files]

    def baselines(self) -> dict[str, dict[str, list[Line]]]:
        observations, queue = self.labelled(self.observations.values()), self.labelled(self.queue)
        count = Counter(self.file_of(row) for row in queue)
        by_time = sorted(observations, key=lambda o: o["observed_at"])
        first = [o for name in self.files for o in [o for o in by_time if self.file_of(o) == name][: count[name]]]
        return {
            "every high observation": self.lines(o for o in observations if o["priority"] == HIGH),
            "as many as proposals, by chance": self.lines(random.Random(0).sample(observations, len(queue))),
            "as many as proposals, the first": self.lines(first),
            **{
                f"{n} proposals, by chance": self.lines(random.Random(1).sample(queue, min(n, len(queue))))
                for n in PAGES
            },
        }


def report(settings: Settings, chosen: Sequence[Labelled], *, listing: bool) -> None:
    lake = Lake.from_settings(settings)
    files = {Path(s.file).name: s for s in chosen}
    at = Stages(lake, files)
    queue = at.labelled(at.queue)
    proposals = {row["proposal_id"]: row for row in at.queue}
    remembered = approve_all(settings, lake)
    stages = {
        "observed": at.lines(at.observations.values()),
        "reflected": at.lines(at.reflections),
        "proposed": at.lines(at.queue),
        "in MEMORY.md": at.lines(proposals[p] | {"text": text} for p, text in remembered.items()),
    }
    pages = {f"the first {n} of the queue": at.lines(queue[:n]) for n in PAGES}
    baselines = {f"baseline: {name}": lines for name, lines in at.baselines().items()}
    observed = observed_files(lake)
    print(f"{'':42}" + "".join(f"{name:>12}" for name in FIGURES))
    for title, some in (("all", files), ("observed windows", {n: s for n, s in files.items() if n in observed})):
        print(f"{title}: {len(some)} sessions")
        for name, lines in (stages | pages | baselines).items():
            print(f"  {name:40}" + "".join(f"{value:>12}" for value in figures(some, lines)))
    if listing:
        show(files, stages)


def approve_all(settings: Settings, lake: Lake) -> dict[str, str]:
    """Approves page after page as a person does who likes everything; the lines of MEMORY.md by proposal id."""
    now = NOW
    reconcile(Workspace(settings, lake), now)
    while shown := on_display(Workspace(settings, lake), ProposalLog(lake)):
        now += timedelta(minutes=1)
        decide(Workspace(settings, lake), dict.fromkeys([row["proposal_id"] for row in shown], APPROVED), now)
        reconcile(Workspace(settings, lake), now)
    path = settings.memory_file
    lines = lines_of(path.read_bytes() if path.exists() else None)
    return {line.proposal_id: line.text for line in lines if line.proposal_id and not line.is_struck}


def observed_files(lake: Lake) -> set[str]:
    windows = lake.read("windows").filter(pl.col("observed"))
    return {Path(f).name for f in lake.read("messages").join(windows, on="dedupe_key", how="semi")["source_file"]}


def figures(chosen: dict[str, Labelled], found: dict[str, list[Line]]) -> list[object]:
    facts = hits = highs = high_hits = lines = junk = traps = trapped = 0
    for name, session in chosen.items():
        carried = {id(line): [session.carries(line, fact) for fact in session.facts] for line in found.get(name, [])}
        hit = [any(of_line) for of_line in zip(*carried.values(), strict=True)] or [False] * len(session.facts)
        facts, hits = facts + len(hit), hits + sum(hit)
        high = [h for h, fact in zip(hit, session.facts, strict=True) if fact["priority"] == "high"]
        highs, high_hits = highs + len(high), high_hits + sum(high)
        lines, junk = lines + len(carried), junk + sum(not any(of_line) for of_line in carried.values())
        said = [set(scorer().words(line.text)) for line in found.get(name, [])]
        traps += len(session.traps)
        trapped += sum(any(scorer().overlap(t["quote"], words) >= TRAP_SHARE for words in said) for t in session.traps)

    def share(part: int, whole: int) -> str:
        return f"{part / whole:.3f}" if whole else "-"

    return [
        *(facts, hits, share(hits, facts), highs, high_hits, share(high_hits, highs)),
        *(lines, share(junk, lines), share(trapped, traps)),
    ]


def show(files: dict[str, Labelled], stages: dict[str, dict[str, list[Line]]]) -> None:
    for name, session in files.items():
        print(f"\n{session.file}")
        for fact in session.facts:
            if fact["priority"] == "high":
                reached = [
                    s for s, found in stages.items() if any(session.carries(x, fact) for x in found.get(name, []))
                ]
                print(f"  {reached[-1] if reached else 'never observed':14} {fact['kind']:12} {fact['text'][:150]}")
        for line in stages["proposed"][name]:
            carried = [fact["id"] for fact in session.facts if session.carries(line, fact)]
            print(f"    offered {carried or 'JUNK'} {line.text[:150]}")


if __name__ == "__main__":
    main()
