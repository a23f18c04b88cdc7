"""How much reviewing a backfill makes: near-duplicates among what it offers, and the time that 10,000 proposals take.

    python -m benchmarks.proposals [SESSIONS_DIR] [--workspace DIR] [--proposals N]

Offered: all sessions (SESSIONS_DIR, default ../shared/fixtures; the bundled examples where there is none) go through
`memory run --all` into an empty workspace, or DIR is taken as it is. Every pair of proposals is compared by their words
and by vectors of their own texts, not those by which the pipeline decided. A near-duplicate shares half of its words or
has a cosine of 0.75; none is wanted. The pairs that come closest are printed for the eye.

Time: N proposals over two years, a third pending, half approved and promoted, the rest rejected or expired, all with
days, sessions and observations of their own. Seconds of bringing REVIEW.md up to date, of the same when the 20 that it
shows expire, of deciding and promoting 20 and all that are pending at once, of the asset check over all days, and of
offering a day's lines beside so many known ones. The baseline only reads the tables, a file after the other. The bar is
two seconds.
"""

import itertools
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common import ROOT, SESSIONS, parser, run_everything
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.proposals.evaluation import judge_integrity
from memory_pipeline.proposals.events import APPROVED, ProposalLog
from memory_pipeline.proposals.review import decide, reconcile
from memory_pipeline.proposals.stage import ProposalsStage
from memory_pipeline.settings import Settings
from memory_pipeline.text.encoder import encoder_of
from memory_pipeline.text.relation import OBSERVED
from memory_pipeline.text.similarity import content_words, overlap
from memory_pipeline.workspace.workspace import Workspace

CLOSEST = 5
BAR = 2.0
DAYS = 730
ENDS = ("approved", "approved", "approved", "rejected", "expired", "pending")
FIRST = date(2024, 1, 1)
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def main() -> None:
    options = parser("proposals", __doc__)
    options.add_argument("sessions", nargs="?", type=Path, default=SESSIONS)
    options.add_argument("--workspace", type=Path, help="count in this workspace instead of making one")
    options.add_argument("--proposals", type=int, default=10_000)
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        workspace = arguments.workspace or backfill(arguments.sessions, Path(folder) / "backfill")
        duplicates(Settings(workspace=workspace))
        speed(Path(folder) / "many", arguments.proposals)


def backfill(sessions: Path, workspace: Path, code: Path = ROOT) -> Path:
    """All sessions into the workspace, by the package that stands in `code`."""
    with tempfile.TemporaryDirectory() as home:
        run_everything(code, [sessions], workspace, Path(home))
    return workspace


def duplicates(settings: Settings) -> None:
    lake = Lake.from_settings(settings)
    texts = dict(lake.read("proposals").select("proposal_id", "text").iter_rows())
    encoded = encoder_of(settings.embedding_model).encode(list(texts.values()))
    vectors = dict(zip(texts, map(np.asarray, encoded), strict=True))
    words = {p: content_words(text) for p, text in texts.items()}
    pairs = [
        (float(vectors[a] @ vectors[b]), overlap(words[a], words[b]), a, b) for a, b in itertools.combinations(texts, 2)
    ]
    near = [pair for pair in pairs if pair[0] >= OBSERVED.cosine or pair[1] >= OBSERVED.overlap]
    merged = lake.read("supports")
    print(f"{len(texts)} proposals on {lake.read('proposals')['day'].n_unique()} days; {merged.height} lines merged")
    print(f"near-duplicates: {len(near)} of {len(pairs)} pairs")
    for cosine, shared, a, b in sorted(pairs, reverse=True)[:CLOSEST]:
        print(f"  cosine {cosine:.2f}, words {shared:.2f}\n    {a} {texts[a][:110]}\n    {b} {texts[b][:110]}")


def speed(workspace: Path, count: int) -> None:
    settings = Settings(workspace=workspace, timezone="UTC", default_session_dirs=False)
    lake = Lake.from_settings(settings)
    fill(lake, count)
    names = ("proposals", "supports", "events")
    print(f"\n{count:,} proposals on {DAYS} days; {len(ProposalLog(lake).pending()):,} pending; seconds:")
    timed("tables read, and nothing else (baseline)", lambda: [lake.read(name) for name in names])
    timed("REVIEW.md made", lambda: reconcile(Workspace(settings, lake), NOW))
    timed("REVIEW.md up to date already", lambda: reconcile(Workspace(settings, lake), NOW + timedelta(minutes=1)))
    for days in range(1, settings.proposal_expiry_days):
        reconcile(Workspace(settings, lake), NOW + timedelta(days=days))
    later = NOW + timedelta(days=settings.proposal_expiry_days)
    timed("20 expire and 20 others are shown", lambda: reconcile(Workspace(settings, lake), later))
    first = [row["proposal_id"] for row in ProposalLog(lake).pending()[:20]]
    timed("20 decided", lambda: decide(Workspace(settings, lake), dict.fromkeys(first, APPROVED), later))
    timed("20 promoted, REVIEW.md filled up", lambda: reconcile(Workspace(settings, lake), later))
    rest = [row["proposal_id"] for row in ProposalLog(lake).pending()]
    timed(f"{len(rest):,} decided", lambda: decide(Workspace(settings, lake), dict.fromkeys(rest, APPROVED), later))
    timed(f"{len(rest):,} promoted, REVIEW.md up to date", lambda: reconcile(Workspace(settings, lake), later))
    timed("the check over all days", lambda: check(settings, lake))
    timed(
        "a day's lines offered",
        lambda: ProposalsStage(Workspace(settings, lake)).build(FIRST + timedelta(days=DAYS - 1)),
    )


def check(settings: Settings, lake: Lake) -> None:
    verdict = judge_integrity(lake, settings.memory_file)
    assert verdict.passed, verdict.offenders


def timed(name: str, work: Callable[[], object]) -> None:
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    print(f"  {seconds:6.2f}  {name}{'  ABOVE THE BAR' if seconds > BAR else ''}")


def fill(lake: Lake, count: int) -> None:
    """Proposals with words of their own; what became of the older ones; a reflection of 20 lines on the last day."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in ("proposals", "events")}
    observations, sessions = [], []
    for number in range(count):
        day = FIRST + timedelta(days=number * DAYS // count)
        moment = datetime(day.year, day.month, day.day, 9, tzinfo=UTC)
        observations.append(observed(number, day, moment))
        sessions.append({"day": day, "session_id": f"s-{number}", "name": f"session {number}", "started_at": moment})
        proposal = proposed(number, day, moment)
        rows["proposals"].append(proposal)
        end = ENDS[number % len(ENDS)] if number < count * 0.8 else "pending"
        own = {"day": day, "proposal_id": proposal["proposal_id"]}
        if end != "pending":
            own |= {"happened_at": moment, "surface": "REVIEW.md"}
            rows["events"].append(own | {"kind": "shown"})
            rows["events"].append(own | {"kind": "decided", "decision": end, "text": proposal["text"]})
        if end == "approved":
            line = {"section": "Hard Rules", "text": proposal["text"], "already_there": False}
            rows["events"].append(own | {"kind": "promoted"} | line)
    last = FIRST + timedelta(days=DAYS - 1)
    today = [o for o in observations if o["day"] == last][:20]
    lines = [reflected(o, last) for o in today]
    for name, made in (rows | {"observations": observations, "sessions": sessions, "reflections": lines}).items():
        frame = pl.DataFrame(made, schema_overrides=TABLES[name].columns)
        lake.replace(name, frame, [FIRST + timedelta(days=d) for d in range(DAYS)])
    remembered = "".join(
        f"- ({row['day']}) {row['text']} <!-- {row['proposal_id']} -->\n"
        for row in rows["events"]
        if row["kind"] == "promoted"
    )
    (lake.root.parent / "MEMORY.md").write_text(f"# Memory\n\n## Hard Rules\n{remembered}", "utf-8")


def words_of(number: int) -> str:
    return f"Always run tool{number} before step{number * 7} of part{number % 97}, never after check{number * 3}."


def observed(number: int, day: date, moment: datetime) -> dict[str, Any]:
    return {
        "day": day,
        "observation_id": f"o-{number}",
        "session_id": f"s-{number}",
        "priority": "high",
        "kind": "rule",
        "trust": "user",
        "observed_at": moment,
        "text": words_of(number),
        "flags": [],
        "evidence": [{"message_id": f"m-{number}", "start": 0, "end": 10}],
    }


def proposed(number: int, day: date, moment: datetime) -> dict[str, Any]:
    return {
        "day": day,
        "proposal_id": f"p-{day:%Y%m%d}-{number:05d}",
        "section": "Hard Rules",
        "text": words_of(number),
        "priority": "high",
        "sources": [f"r-{number}", f"o-{number}"],
        "support": 1,
        "evidence": [{"message_id": f"m-{number}", "start": 0, "end": 10}],
        "session_ids": [f"s-{number}"],
        "last_seen": moment,
        "supersedes": [],
    }


def reflected(observation: dict[str, Any], day: date) -> dict[str, Any]:
    return {
        "day": day,
        "reflection_id": f"new-{observation['observation_id']}",
        "section": "Hard Rules",
        "text": f"{observation['text']} Again, but with other words about {observation['session_id']} alone.",
        "priority": "high",
        "kind": "rule",
        "support": 1,
        "sessions": 1,
        "sources": [observation["observation_id"]],
        "last_seen": observation["observed_at"],
    }


if __name__ == "__main__":
    main()
