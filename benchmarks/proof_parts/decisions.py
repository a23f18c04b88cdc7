"""sde-bench: as of the task, is the decision in the brief, in the first answer of recall, in MEMORY.md?"""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, run_everything
from benchmarks.proof_parts.measuring import Memory, Span, Words, keep, name_of, print_counts
from benchmarks.sde import DATA, Conversation, conversations, write
from memory_pipeline.recall.search import Searcher

BRIEF, FIRST, HITS = "the brief", "the first hit of recall", "the hits of recall"
FILE = "MEMORY.md, had everything offered been approved"
WORDS, WORDS_HITS = "BM25 over messages, the first", "BM25 over messages, the first eight"
SESSION, WORDS_SESSION = "the conversation is the first of recall", "the conversation is the first of BM25"
STALE = "the amended decision still in MEMORY.md"
SHOWN = 8


def run(workspace: Path, out: Path | None) -> None:
    """Print the shares over all tasks; of an amended decision only the newest counts."""
    data = json.loads(DATA.read_text("utf-8"))
    found = conversations(data)
    if not (workspace / "workspace").exists():
        write(found, workspace / "sessions")
        run_everything(ROOT, [workspace / "sessions"], workspace / "workspace", workspace / "home")
    memory = Memory(workspace / "workspace")
    after = max(one.at for one in found).date() + timedelta(days=1)
    cases = [
        _case(memory, task, [c for c in found if c.session.startswith(f"{task['id']}-")], after)
        for task in data["tasks"]
    ]
    keep(out, "decisions", cases)
    print_counts(
        "1. sde-bench, visible half, no model",
        cases,
        (BRIEF, FILE, FIRST, WORDS, HITS, WORDS_HITS, SESSION, WORDS_SESSION),
    )
    print_counts("   amended decisions", [case for case in cases if STALE in case], (BRIEF, FIRST, FILE, WORDS, STALE))
    tokens = [case["tokens"] for case in cases]
    print(f"  no memory: 0. The brief has {sum(tokens) / len(tokens):.0f} tokens on average.")


def _case(memory: Memory, task: dict[str, Any], chats: list[Conversation], after: Any) -> dict[str, Any]:
    decided = [_turn(chat) for chat in chats if chat.decided is not None]
    wanted = decided[-1:]
    project = chats[0].project
    brief = memory.brief(after, project)
    offered = memory.lines(after, "approved", "offered")
    searcher = Searcher(memory.settings)
    found = searcher.search(task["bug_report"])
    hits = found.hits[:SHOWN]
    searcher.close()
    shown = [_is_of(memory, hit.source_id, wanted) for hit in hits]
    ranked = [name for name, _ in Words(memory.lake, None, after).ranked(task["bug_report"])][:SHOWN]
    names = {span.message for span in wanted}
    case = {
        "task": task["id"],
        "tokens": brief.tokens,
        BRIEF: memory.rests_on(brief.shown, wanted),
        FIRST: bool(shown and shown[0]),
        HITS: any(shown),
        FILE: memory.rests_on(offered, wanted),
        WORDS: bool(ranked and ranked[0] in names),
        WORDS_HITS: bool(names & set(ranked)),
        SESSION: bool(found.sessions) and found.sessions[0] == chats[-1].session,
        WORDS_SESSION: bool(ranked) and ranked[0].partition("@")[2][:13] == f"{chats[-1].at:%Y-%m-%dT%H}",
    }
    if len(decided) > 1:
        case[STALE] = memory.rests_on(offered, decided[:-1])
    return case


def _turn(chat: Conversation) -> Span:
    """The turn that states the decision."""
    assert chat.decided is not None
    return Span(name_of(chat.session, chat.at + timedelta(minutes=chat.decided)), 0, 1_000_000)


def _is_of(memory: Memory, source_id: str, wanted: list[Span]) -> bool:
    return memory.names.get(source_id) in {span.message for span in wanted} or memory.rests_on([source_id], wanted)
