"""Other memory systems on the same sessions and questions: what they find, how long they take, how much disk.

    python -m benchmarks.recall_peers [DATASET]... [--conversations N] [--only NAME]... [--folder DIR] [--out FILE]

Datasets: `devmembench` (25 coding sessions, 175 questions), `locomo` (10 long dialogues of two people, 1,536 questions)
of ../shared/bench, `entireio_cli` (the sessions of one project in ../shared/more-sessions with the questions of
`recall_questions/`). Without a name: the first two. Each collection is searched on its own. A session counts by its
best message or chunk; R@k is the mean share of the sessions with the evidence that are among the first k.

Systems: MemPalace and Basic Memory as they come from PyPI, each in a venv of its own in `--folder` (kept, and used
again; a temporary one otherwise), asked the way an agent asks them; BM25 alone (bm25s); vectors alone; and our own
search. All with the bundled MiniLM weights: where a peer would download them, the same weights lie where it looks, as
ONNX, and are checked to embed alike. `index` is the time of the peer's own commands that store the sessions, with the
start of their processes; `ask` the middle of all questions in one process that is warm, `p95` what 19 of 20 stay below;
`cold` the middle of three questions on the command line, process and all. `--out` keeps what each system found on each
question, as ../shared/bench/retrieval.py scores it.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from benchmarks.common import BENCH, MORE, ROOT, parser
from benchmarks.peers.baselines import Vectors, Words
from benchmarks.peers.basic_memory import BasicMemory
from benchmarks.peers.mempalace import MemPalace
from benchmarks.peers.ours import Ours
from benchmarks.peers.system import Collection, Outcome, System
from memory_pipeline.lake.store import Lake
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.stage import SessionsStage
from memory_pipeline.settings import Settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace

QUESTIONS = ROOT / "benchmarks/recall_questions/entireio_cli.jsonl"

SYSTEMS: dict[str, Callable[[Path], System]] = {
    "bm25": Words,
    "minilm": Vectors,
    "ours": Ours,
    "mempalace": MemPalace,
    "basic-memory": BasicMemory,
}


@dataclass
class Tally:
    """What one system did in one mode on a dataset, collection after collection."""

    recalls: dict[int, list[float]] = field(default_factory=lambda: {k: [] for k in (1, 5, 10)})
    by_category: dict[str, list[float]] = field(default_factory=dict)
    """R@5 of each question."""
    seconds: list[float] = field(default_factory=list)
    indexing: float = 0.0
    index_bytes: int = 0
    cold: list[float] = field(default_factory=list)

    def add(self, collection: Collection, outcome: Outcome, mode: str) -> None:
        """Count what the outcome holds of this mode; a question without a ranking is one where nothing was found."""
        found = {ranking.query_id: ranking for ranking in outcome.rankings if ranking.mode == mode}
        for question in collection.questions:
            ranking = found.get(question["query_id"])
            sessions = ranking.sessions if ranking else []
            for k, values in self.recalls.items():
                values.append(recall(question["gold_sessions"], sessions[:k]))
            self.by_category.setdefault(question["category"], []).append(self.recalls[5][-1])
        self.seconds += [ranking.seconds for ranking in found.values()]
        self.indexing += outcome.indexing
        self.index_bytes += outcome.index_bytes
        self.cold += outcome.cold

    def row(self) -> str:
        """The figures in one line."""
        shares = " ".join(f"{100 * statistics.fmean(values):6.1f}" for values in self.recalls.values())
        disk = f"{self.index_bytes / 1e6:7.1f}" if self.index_bytes else "      –"
        cold = f"{statistics.median(self.cold):6.1f}" if self.cold else "     –"
        asked = f"{1000 * statistics.median(self.seconds):6.0f} {1000 * quantile(self.seconds, 0.95):6.0f}"
        return f"{shares} {self.indexing:8.1f} {asked} {cold} {disk}"


def recall(gold: Sequence[str], sessions: Sequence[str]) -> float:
    """The share of the sessions with the evidence that was found."""
    return sum(session in sessions for session in gold) / len(gold)


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that the share of all does not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def of_bench(dataset: str) -> Iterator[Collection]:
    """The collections of ../shared/bench. Raises CalledProcessError."""

    def rows(what: str) -> list[dict[str, str]]:
        command = [sys.executable, f"{BENCH / 'retrieval.py'}", what, dataset]
        printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [json.loads(line) for line in printed.splitlines()]

    messages, questions = rows("corpus"), rows("queries")
    for name in dict.fromkeys(message["collection"] for message in messages):
        yield Collection(
            dataset,
            name,
            [message for message in messages if message["collection"] == name],
            [question for question in questions if question["collection"] == name],
        )


def of_project() -> Iterator[Collection]:
    """The sessions of entireio/cli, what users and assistants said in them, with the questions that have an answer."""
    with tempfile.TemporaryDirectory() as made:
        sessions, workspace = Path(made) / "sessions", Path(made) / "workspace"
        sessions.mkdir()
        for path in MORE.glob("*/entireio-cli__*"):
            (sessions / path.name).symlink_to(path)
        settings = Settings(workspace=workspace, timezone="UTC", default_session_dirs=False, session_dirs=(sessions,))
        lake = Lake.from_settings(settings)
        stage = SessionsStage(Workspace(settings, lake), Catalogue(lake, settings), datetime.now(UTC))
        stage.look()
        for day in stage.catalogue.days():
            bring_up_to_date(stage, lake, day)
        said = lake.read("messages").filter(pl.col("role").is_in(["user", "assistant"]), pl.col("text") != "")
        messages = [
            {
                "id": row["message_id"],
                "session": row["session_id"],
                "said_at": row["said_at"].isoformat(),
                "speaker": row["role"],
                "text": row["text"],
            }
            for row in said.sort("said_at", "source_line").iter_rows(named=True)
        ]
    asked = [json.loads(line) for line in QUESTIONS.read_text("utf8").splitlines()]
    questions = [
        {
            "query_id": question["id"],
            "category": question["kind"],
            "query": question["question"],
            "gold": question["messages"],
            "gold_sessions": question["sessions"],
        }
        for question in asked
        if question["sessions"]
    ]
    yield Collection("entireio_cli", "entireio/cli", messages, questions)


DATASETS: dict[str, tuple[Path, Callable[[], Iterator[Collection]]]] = {
    "devmembench": (BENCH, lambda: of_bench("devmembench")),
    "locomo": (BENCH, lambda: of_bench("locomo")),
    "entireio_cli": (QUESTIONS, of_project),
}
"""How each dataset is loaded, and what has to be there."""


def main() -> None:
    options = _options()
    datasets = options.datasets or ["devmembench", "locomo"]
    for dataset in datasets:
        if dataset not in DATASETS:
            sys.exit(f"There is no dataset {dataset!r}; there are {', '.join(DATASETS)}.")
        if not DATASETS[dataset][0].exists():
            sys.exit(f"The data of {dataset} are not there: {DATASETS[dataset][0]} is missing.")
    with tempfile.TemporaryDirectory() as made:
        folder = (options.folder or Path(made)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        systems = {name: SYSTEMS[name](folder) for name in options.only or SYSTEMS}
        for dataset in datasets:
            _measure(dataset, list(DATASETS[dataset][1]())[: options.conversations], systems, options)


def _options() -> argparse.Namespace:
    options = parser("recall_peers", __doc__)
    options.add_argument("datasets", nargs="*", metavar="DATASET", help="devmembench, locomo, entireio_cli")
    options.add_argument("--conversations", type=int, metavar="N", help="only the first collections of each dataset")
    options.add_argument("--only", action="append", choices=SYSTEMS, help="one system; may be given again")
    options.add_argument("--folder", type=Path, metavar="DIR", help="where venvs are made and kept")
    options.add_argument("--cold", type=int, default=3, metavar="N", help="questions on the command line (3)")
    options.add_argument("--out", type=Path, metavar="FILE", help="JSON lines: what was found on each question")
    return options.parse_args()


def _measure(
    dataset: str, collections: Sequence[Collection], systems: dict[str, System], options: argparse.Namespace
) -> None:
    asked = sum(len(collection.questions) for collection in collections)
    messages = sum(len(collection.messages) for collection in collections)
    print(f"\n{dataset}: {len(collections)} collections, {messages} messages, {asked} questions", flush=True)
    head = f"{'R@1':>6} {'R@5':>6} {'R@10':>6} {'index s':>8} {'ask ms':>6} {'p95 ms':>6} {'cold s':>6} {'disk MB':>7}"
    print(f"{'':48}{head}", flush=True)
    for system in systems.values():
        tallies: dict[str, Tally] = {}
        for collection in collections:
            with tempfile.TemporaryDirectory() as work:
                cold = options.cold if collection is collections[0] else 0
                outcome = system.answer(collection, Path(work), cold=cold)
            for mode in dict.fromkeys(ranking.mode for ranking in outcome.rankings):
                tallies.setdefault(mode, Tally()).add(collection, outcome, mode)
            _keep(options.out, system.label(), collection, outcome)
        for mode, tally in tallies.items():
            print(f"{f'{system.label()}, {mode}':48}{tally.row()}", flush=True)
            kinds = (
                f"{kind} {100 * statistics.fmean(values):.1f}" for kind, values in sorted(tally.by_category.items())
            )
            print(f"    R@5 by kind: {', '.join(kinds)}", flush=True)


def _keep(out: Path | None, label: str, collection: Collection, outcome: Outcome) -> None:
    if out is None:
        return
    rows: Iterable[dict[str, object]] = (
        {
            "dataset": collection.dataset,
            "collection": collection.name,
            "query_id": ranking.query_id,
            "system": f"{label}, {ranking.mode}",
            "sessions": ranking.sessions,
            "ranking": [],
            "seconds": ranking.seconds,
        }
        for ranking in outcome.rankings
    )
    with out.open("a", encoding="utf8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
