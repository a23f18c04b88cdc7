"""Real history: what users had to say again, by two blind readers, and whether the memory of the day before held it."""

import csv
import shutil
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.common import FIXTURES, MORE, ROOT, run_everything
from benchmarks.proof_parts.measuring import Memory, Span, Words, keep, name_of, print_counts, share
from benchmarks.two_months import CarefulReader, play, run_with
from memory_pipeline.embeddings.index import Filters
from memory_pipeline.recall.search import QueryError, Searcher
from memory_pipeline.text.sentences import squeeze

AGENTV = Path(__file__).with_name("agentv")
"""A careful reader's answers to the requests about agentv's sessions, in the reader's words."""
LABELS = Path(__file__).with_name("repeats.csv")
"""The needs, found by two blind readers. In `stated` a third one says whether the repository's own CLAUDE.md or
AGENTS.md, as far as the sessions before quote it, says the same; "unknown" if none does."""
SHOWN = Path(__file__).with_name("shown.csv")
"""The lines of the briefs with the careful answers, each with the verdict of a blind reader for its day."""
HARMFUL = ("irrelevant", "stale", "wrong")
BRIEF, BRIEF_APPROVED = "the brief, nothing approved", "the brief, had everything offered been approved"
FILE, OBSERVED = "MEMORY.md, had everything offered been approved", "anything observed (a ceiling)"
ASKED, OWN = "recall, asked with the first prompt", "recall, asked with the user's own words"
WORDS, WORDS_OWN = (
    "BM25, asked with the first prompt, tokens of the brief",
    "BM25, asked with the user's own words, likewise",
)
INSTRUCTIONS = "the repository's own CLAUDE.md or AGENTS.md"
SYSTEMS = (BRIEF, BRIEF_APPROVED, FILE, OBSERVED, INSTRUCTIONS, ASKED, WORDS, OWN, WORDS_OWN)
MAX_PROMPT = 1_000


def run(workspace: Path, out: Path | None) -> None:
    """Without a model, over all recorded sessions of the labelled projects."""
    if not (workspace / "workspace").exists():
        run_everything(ROOT, [MORE, FIXTURES], workspace / "workspace", workspace / "home")
    _report([Memory(workspace / "workspace")], "2. real history, no model", out)


def run_careful(folder: Path, out: Path | None) -> None:
    """With the recorded careful answers, over the sessions that these cover: all of agentv, sixteen of the cli's."""
    if not (folder / "cli").exists():
        play(folder / "cli")
    if not (folder / "agentv").exists():
        sessions = folder / "agentv" / "sessions"
        sessions.mkdir(parents=True)
        for file in (file for place in (MORE, FIXTURES) for file in place.rglob("EntityProcess-agentv*")):
            shutil.copy(file, sessions)
        run_with(CarefulReader(AGENTV), sessions, folder / "agentv" / "workspace")
    memories = [Memory(folder / name / "workspace") for name in ("agentv", "cli")]
    _report(memories, "2b. real history, recorded careful answers", out, are_judged=True)


def _report(memories: Sequence[Memory], title: str, out: Path | None, *, are_judged: bool = False) -> None:
    """Print the shares over the needs that both readers found, and over those of which both are sure; if the shown
    lines were judged, also the share of harmful ones."""
    rows = list(csv.DictReader(LABELS.open(encoding="utf-8")))
    cases = [
        case
        for memory in memories
        for row in rows
        if row["message"] in set(memory.names.values()) and (case := _case(memory, row))
    ]
    both = [case for case in cases if case["readers"] == "ab"]
    keep(out, title.split(",")[0].split(". ")[-1].replace(" ", "_"), cases)
    agreed = sum(row["readers"] == "ab" for row in rows)
    print(f"\nreaders: {agreed} needs found by both, {len(rows) - agreed} by one of them")
    print_counts(f"{title}: found by both", both, SYSTEMS)
    print_counts("   both are sure", [case for case in both if case["sure"] == "2"], SYSTEMS)
    tokens, answered = sum(case["tokens"] for case in both), sum(case[BRIEF_APPROVED] for case in both)
    cost = f"{tokens / answered:,.0f}" if answered else "no need was answered"
    print(f"  tokens of the brief: {tokens / max(len(both), 1):.0f} a session; per answered need: {cost}")
    if are_judged:
        shown = {key: verdict for case in cases for key, verdict in case["verdicts"].items()}
        read = [verdict for verdict in shown.values() if verdict]
        harmful = sum(verdict in HARMFUL for verdict in read)
        print(
            f"  shown lines that are irrelevant, stale or wrong: {share(harmful, len(read))}, {len(shown) - len(read)} "
            "not read"
        )


def _case(memory: Memory, row: dict[str, str]) -> dict[str, Any] | None:
    day, name = date.fromisoformat(row["day"]), row["message"]
    wanted = [_span(part) for part in row["earlier"].split()]
    if not {span.message for span in wanted} <= set(memory.names.values()):
        return None
    message = _message(memory, name)
    said = message["text"][int(row["start"]) : int(row["end"])]
    first, project = _first_prompt(memory, message["session_id"]), _project(memory, message["session_id"])
    brief = memory.brief(day, project)
    approved = memory.brief(day, project, "approved", "offered")
    earlier = [_message(memory, span.message)["text"][span.start : span.end] for span in wanted]
    words = Words(memory.lake, project, day)
    return {
        **{key: row[key] for key in ("project", "day", "message", "readers", "sure")},
        "said": said,
        "tokens": approved.tokens,
        BRIEF: memory.rests_on(brief.shown, wanted),
        BRIEF_APPROVED: memory.rests_on(approved.shown, wanted),
        FILE: memory.rests_on(memory.lines(day, "approved", "offered"), wanted),
        OBSERVED: memory.rests_on(memory.lines(day, "approved", "offered", "observed"), wanted),
        ASKED: _recalled(memory, first, day, project, wanted, earlier),
        OWN: _recalled(memory, said, day, project, wanted, earlier),
        INSTRUCTIONS: {"yes": True, "no": False}.get(row["stated"]),
        "verdicts": {
            key: _verdicts().get(key) for i in approved.shown for key in [f"{row['project']} {row['day']} {i}"]
        },
        WORDS: _holds(words.within(first, memory.settings.brief_tokens), wanted, earlier),
        WORDS_OWN: _holds(words.within(said, memory.settings.brief_tokens), wanted, earlier),
    }


@cache
def _verdicts() -> dict[str, str]:
    """The verdicts on shown lines, by project, day and id."""
    with SHOWN.open(encoding="utf-8") as file:
        return {f"{r['project']} {r['day']} {r['id']}": r["verdict"] for r in csv.DictReader(file)}


def _span(part: str) -> Span:
    name, _, places = part.rpartition(":")
    start, end = map(int, places.split("-"))
    return Span(name, start, end)


def _message(memory: Memory, name: str) -> dict[str, Any]:
    day = date.fromisoformat(name.partition("@")[2][:10])
    days = [day + timedelta(days=n) for n in (-1, 0, 1)]
    rows = memory.lake.read("messages", days, ["session_id", "said_at", "role", "text"]).filter(
        pl.col("role") == "user"
    )
    return next(row for row in rows.to_dicts() if name_of(row["session_id"], row["said_at"]) == name)


def _first_prompt(memory: Memory, session_id: str) -> str:
    rows = memory.lake.read("messages", columns=["session_id", "said_at", "role", "text"])
    rows = rows.filter(pl.col("session_id") == session_id, pl.col("role") == "user").sort("said_at")
    return str(rows["text"][0])[:MAX_PROMPT]


def _project(memory: Memory, session_id: str) -> str | None:
    rows = memory.lake.read("sessions", columns=["session_id", "project"]).filter(pl.col("session_id") == session_id)
    return next(iter(rows["project"]), None)


def _recalled(
    memory: Memory, query: str, day: date, project: str | None, wanted: Sequence[Span], earlier: Sequence[str]
) -> bool:
    searcher = Searcher(memory.settings)
    try:
        found = searcher.search(
            query, Filters(None, day - timedelta(days=1), {"project": [project]} if project else {})
        )
    except QueryError:
        return False
    finally:
        searcher.close()
    hits = found.hits if found.is_likely else ()
    shown = {memory.names.get(hit.source_id, hit.source_id): hit.text for hit in hits}
    return _holds(shown, wanted, earlier) or memory.rests_on([hit.source_id for hit in hits], wanted)


def _holds(shown: Mapping[str, str], wanted: Sequence[Span], earlier: Sequence[str]) -> bool:
    """Whether one of the messages is shown, or their words within another text, as in the summary of a topic."""
    texts = [squeeze(text) for text in shown.values()]
    return any(span.message in shown for span in wanted) or any(
        squeeze(words) in text for words in earlier for text in texts
    )
