"""How long the page of `memory open` takes over a large workspace: its first screen, the others, a decision.

    python -m benchmarks.page [--messages N] [--proposals N] [--days N] [--folder DIR]

Makes a workspace of 300 days with 100,000 messages, indexed as `recall_speed` does it, and 5,000 proposals of which a
third is decided, then asks the page for its screens by HTTP, as a browser does. Printed are the milliseconds of the
first screen after the start, and of each screen asked for again: the median and the longest of twenty. A folder that is
named is kept, and used again as it is.
"""

from __future__ import annotations

import http.client
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import numpy as np
import polars as pl

from benchmarks.common import parser
from benchmarks.recall_speed import Words, as_observations, day_of_points
from memory_pipeline.embeddings.index import COLLECTION, MESSAGES
from memory_pipeline.embeddings.opening import mark_complete, open_index
from memory_pipeline.lake.store import Lake
from memory_pipeline.lake.tables import TABLES
from memory_pipeline.proposals.review import now_utc, reconcile
from memory_pipeline.quality.report import Report
from memory_pipeline.settings import Settings
from memory_pipeline.web.server import PageServer
from memory_pipeline.workspace.workspace import Workspace

LAST = date(2025, 12, 31)
PER_SESSION = 100
ROUNDS = 20
GOAL_MS = 300
DIMENSION = 384


def main() -> None:
    options = parser("page", __doc__)
    options.add_argument("--messages", type=int, default=100_000)
    options.add_argument("--proposals", type=int, default=5_000)
    options.add_argument("--days", type=int, default=300)
    options.add_argument("--folder", type=Path)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        settings = Settings(workspace=folder, timezone="UTC", default_session_dirs=False)
        words = Words()
        if not (folder / "made").exists():
            _fill(settings, words, given.messages, given.proposals, given.days)
            (folder / "made").touch()
        _measure(settings, words)


def _fill(settings: Settings, words: Words, messages: int, proposals: int, days: int) -> None:
    lake, draw, vectors = Lake.from_settings(settings), random.Random(1), np.random.default_rng(1)
    number = 0
    with open_index(settings, DIMENSION, MESSAGES) as said, open_index(settings, DIMENSION, COLLECTION) as observed:
        for n in range(days):
            day = LAST - timedelta(days=days - 1 - n)
            rows = _messages(words, draw, day, messages // days)
            _put(lake, "messages", rows, day)
            _put(lake, "sessions", _sessions(rows, day), day)
            of_day = range(number, min(proposals, number + -(-proposals // days)))
            number = of_day.stop
            _put(lake, "observations", [_observation(rows[i % len(rows)], day, i) for i in of_day], day)
            _put(lake, "proposals", [_proposal(rows[i % len(rows)], day, i) for i in of_day], day)
            _put(lake, "events", [_decision(day, i) for i in of_day if i % 3 == 0], day)
            points = day_of_points(words, day, messages // days, DIMENSION, draw, vectors)
            said.upsert(points)
            observed.upsert(as_observations(points, DIMENSION, vectors))
    mark_complete(settings, DIMENSION, MESSAGES)
    mark_complete(settings, DIMENSION, COLLECTION)
    reconcile(Workspace.open(settings), now_utc())


def _put(lake: Lake, table: str, rows: list[dict[str, Any]], day: date) -> None:
    columns = TABLES[table].columns
    lake.replace(table, pl.DataFrame([dict.fromkeys(columns) | row for row in rows], schema=columns), [day])


def _messages(words: Words, draw: random.Random, day: date, count: int) -> list[dict[str, Any]]:
    return [
        {
            "day": day,
            "session_id": f"{day}-{i // PER_SESSION}",
            "message_id": f"{day}#{i}",
            "role": ("user", "assistant")[i % 2],
            "said_at": datetime(day.year, day.month, day.day, 8, tzinfo=UTC) + timedelta(seconds=30 * i),
            "text": words.text(draw),
            "source_file": f"/sessions/{day}-{i // PER_SESSION}.jsonl",
            "source_line": i,
            "voided": False,
        }
        for i in range(count)
    ]


def _sessions(messages: list[dict[str, Any]], day: date) -> list[dict[str, Any]]:
    first = {row["session_id"]: row for row in reversed(messages)}
    return [
        {"day": day, "session_id": s, "harness": "pi", "name": row["text"][:60], "started_at": row["said_at"]}
        | {"source_file": row["source_file"], "project": f"project {hash(s) % 7}"}
        for s, row in first.items()
    ]


def _span(message: dict[str, Any]) -> dict[str, Any]:
    return {"message_id": message["message_id"], "start": 0, "end": len(message["text"])}


def _observation(message: dict[str, Any], day: date, number: int) -> dict[str, Any]:
    return {
        "day": day,
        "observation_id": f"o-{number:012x}",
        "session_id": message["session_id"],
        "priority": "high",
        "kind": "rule",
        "observed_at": message["said_at"],
        "text": message["text"],
        "evidence": [_span(message)],
        "trust": "user",
        "flags": [],
    }


def _proposal(message: dict[str, Any], day: date, number: int) -> dict[str, Any]:
    return {
        "day": day,
        "proposal_id": f"p-{day:%Y%m%d}-{number + 1:03d}",
        "section": ("Hard Rules", "Patterns")[number % 2],
        "text": message["text"],
        "priority": ("high", "medium")[number % 2],
        "sources": [f"o-{number:012x}"],
        "support": 1,
        "sessions": 1,
        "session_ids": [message["session_id"]],
        "content_hash": f"{number}",
        "evidence": [_span(message)],
        "last_seen": message["said_at"],
        "projects": [f"project {number % 7}"],
    }


def _decision(day: date, number: int) -> dict[str, Any]:
    return {
        "day": day,
        "proposal_id": f"p-{day:%Y%m%d}-{number + 1:03d}",
        "kind": "decided",
        "decision": "rejected",
        "happened_at": datetime(day.year, day.month, day.day, 20, tzinfo=UTC),
        "surface": "command",
        "text": "",
    }


def _measure(settings: Settings, words: Words) -> None:
    draw = random.Random(2)
    started = time.perf_counter()
    with PageServer(settings, _no_report) as server:
        running = threading.Thread(target=server.run)
        running.start()
        try:
            print(f"{'start':<24}{1000 * (time.perf_counter() - started):6.0f} ms, before the browser opens")
            ask = _Browser(server.first_address).ask
            _tell("first screen", [ask("/review")], GOAL_MS)
            _tell("review", _times(lambda: ask("/review")), GOAL_MS)
            _tell("review, page after page", [ask(f"/review?from={20 * n}") for n in range(1, ROUNDS)])
            ask(f"/search?q={quote_plus(words.query(draw))}")
            _tell("search", _times(lambda: ask(f"/search?q={quote_plus(words.query(draw))}")), GOAL_MS)
            _tell("memory", _times(lambda: ask("/memory")))
            _tell("session", _times(lambda: ask(f"/session?id={LAST}-2")))
            _tell("why", _times(lambda: ask("/why?id=o-000000000101")))
        finally:
            server.stop()
            running.join()


class _Browser:
    """Asks with the cookie that it got for the first address."""

    def __init__(self, first_address: str) -> None:
        self._host, _, first = first_address.removeprefix("http://").partition("/")
        self._cookie = ""
        self.ask(f"/{first}")

    def ask(self, path: str) -> float:
        """Milliseconds until the whole answer is there."""
        began = time.perf_counter()
        asked = http.client.HTTPConnection(self._host, timeout=120)
        asked.request("GET", path, headers={"Cookie": self._cookie} if self._cookie else {})
        got = asked.getresponse()
        got.read()
        took = 1000 * (time.perf_counter() - began)
        self._cookie = self._cookie or (got.getheader("set-cookie") or "").partition(";")[0]
        assert got.status in (200, 303), f"{path}: {got.status}"
        asked.close()
        return took


def _times(ask: Callable[[], float]) -> list[float]:
    return [ask() for _ in range(ROUNDS)]


def _tell(name: str, took: list[float], goal: int | None = None) -> None:
    over = "" if goal is None else f"   (goal {goal} ms: {'met' if statistics.median(took) <= goal else 'NOT met'})"
    print(f"{name:<24}{statistics.median(took):6.0f} ms, longest {max(took):6.0f} ms{over}", flush=True)


def _no_report() -> Report:
    raise AssertionError("no screen that is timed has the quality report")


if __name__ == "__main__":
    main()
