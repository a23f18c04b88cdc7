"""What the parts share: shown lines with their evidence, BM25 over messages at equal tokens, intervals, kept cases."""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from memory_pipeline.effect.history import LakeBefore, MemoryHistory, State
from memory_pipeline.lake.store import Lake
from memory_pipeline.recall.assembly import Briefing
from memory_pipeline.recall.briefing import brief_from
from memory_pipeline.settings import Settings
from memory_pipeline.text.terms import query_terms
from memory_pipeline.text.tokens import estimate
from memory_pipeline.workspace.workspace import Workspace

K1, B = 1.2, 0.75


class Span(NamedTuple):
    """Characters of a message, which is named by its session and its second."""

    message: str
    start: int
    end: int

    def overlaps(self, other: "Span") -> bool:
        return self.message == other.message and self.start < other.end and other.start < self.end


class Memory:
    """The memory of a workspace as it was before a day."""

    def __init__(self, workspace: Path) -> None:
        self.settings = Settings(workspace=workspace)
        self.workspace = Workspace.open(self.settings)
        self.lake = self.workspace.lake
        self.history = MemoryHistory(self.workspace)
        rows = self.lake.read("messages", columns=["message_id", "session_id", "said_at"])
        self.names = {i: name_of(session, at) for i, session, at in rows.iter_rows()}
        self.evidence: dict[str, list[Span]] = {}
        for table, key in (("observations", "observation_id"), ("proposals", "proposal_id")):
            for i, spans in self.lake.read(table, columns=[key, "evidence"]).iter_rows():
                self.evidence[i] = [
                    Span(self.names.get(s["message_id"], ""), s["start"], s["end"]) for s in spans or ()
                ]

    def brief(self, day: date, project: str | None, *states: State) -> Briefing:
        """The brief before the day, with the lines in these states as approved."""
        memory = self.history.memory_file_before(day, *states) if states else None
        return brief_from(self.settings, LakeBefore(self.lake, day), memory, project)

    def lines(self, day: date, *states: State) -> list[str]:
        """The ids of the lines in these states before the day."""
        return [line.line_id for line in self.history.lines if line.state_before(day) in states]

    def rests_on(self, ids: Iterable[str], wanted: Sequence[Span]) -> bool:
        """Whether one of these lines rests on one of the wanted words."""
        return any(span.overlaps(other) for i in ids for span in self.evidence.get(i, ()) for other in wanted)


def name_of(session: str, at: Any) -> str:
    """The name of a message; ids of messages depend on the place of the file."""
    return f"{session[:13]}@{at:%Y-%m-%dT%H:%M:%S}"


class Words:
    """BM25 over the messages of one project before a day."""

    def __init__(self, lake: Lake, project: str | None, day: date) -> None:
        sessions = lake.read("sessions", columns=["session_id", "project"])
        own = set(sessions.filter(pl.col("project").eq_missing(project))["session_id"]) if project else None
        rows = LakeBefore(lake, day).read("messages", columns=["session_id", "said_at", "role", "text"])
        rows = rows.filter(pl.col("role").is_in(["user", "assistant"]), pl.col("text") != "")
        rows = rows if own is None else rows.filter(pl.col("session_id").is_in(own))
        self.texts = [(name_of(s, at), text) for s, at, _, text in rows.iter_rows()]
        self.counts = [Counter(query_terms(text)) for _, text in self.texts]
        self.having = Counter(term for counts in self.counts for term in counts)
        self.mean = sum(c.total() for c in self.counts) / max(len(self.counts), 1)

    def ranked(self, query: str) -> Iterator[tuple[str, str]]:
        """Names and texts of the messages, best first."""
        n, scores = len(self.texts), defaultdict[int, float](float)
        for term in set(query_terms(query)):
            weight = math.log(1 + (n - self.having[term] + 0.5) / (self.having[term] + 0.5))
            for i, counts in enumerate(self.counts):
                if found := counts[term]:
                    scores[i] += weight * found * (K1 + 1) / (found + K1 * (1 - B + B * counts.total() / self.mean))
        for i in sorted(scores, key=lambda i: (-scores[i], i)):
            yield self.texts[i]

    def within(self, query: str, tokens: int) -> dict[str, str]:
        """The best messages that fit into so many tokens together: their texts by their names."""
        found, left = dict[str, str](), tokens
        for name, text in self.ranked(query):
            left -= estimate(text)
            if left < 0:
                break
            found[name] = text
        return found


def share(found: int, of: int) -> str:
    """A share with the interval of Wilson at 95 %; "none" where there is nothing to count."""
    if not of:
        return "none"
    z, p = 1.96, found / of
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    return f"{found} of {of} = {p:.2f} ({max(0, middle - half):.2f} to {min(1, middle + half):.2f})"


def keep(folder: Path | None, part: str, cases: Sequence[dict[str, Any]]) -> None:
    """Write the cases of a part as lines of JSON, for a reader."""
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(case, ensure_ascii=False, default=str) + "\n" for case in cases)
        (folder / f"{part}.jsonl").write_text(text, "utf-8")


def print_counts(title: str, cases: Sequence[dict[str, Any]], systems: Sequence[str]) -> None:
    """The share of the cases that each system answers, a system without an opinion on a case left out of it."""
    print(f"\n{title}")
    for system in systems:
        judged = [case[system] for case in cases if case.get(system) is not None]
        print(f"  {system:<58} {share(sum(judged), len(judged))}")
