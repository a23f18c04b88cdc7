"""How many files and functions of memory_pipeline one thing goes through.

    python -m benchmarks.hops [--list]

Two walks, without Dagster and without a model, in a temporary workspace:

(a) one line of a pi session until it is a proposal: the stages sessions, observations, embeddings, reflections and
    proposals, over one small session that this script writes;
(b) an `[x]` in REVIEW.md until the line stands in MEMORY.md: the work of the asset `memory_file`, with how often each
    table is read and written.

A file counts when one of its functions runs, a function once however often it runs, lambdas and comprehensions with
the function that they stand in. What runs while a module is imported does not count, nor do settings and tests.
A climb is a call into a file that is waiting for the caller itself to return: A calls B, which calls back into A.

At commit 72ac1fa (2026-11-22): (a) 74 files, 404 functions, 19 climbs; (b) 22 files, 121 functions, 14 climbs,
20 reads and 2 writes of tables, decisions read five times.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest.mock import patch

import memory_pipeline
from benchmarks.common import parser

# Everything of the package that this script knows by name: adapt it here when modules move.
from memory_pipeline.lake.store import Lake
from memory_pipeline.planning import Stages
from memory_pipeline.proposals.review import reconcile
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources
from memory_pipeline.settings import Settings, load_settings
from memory_pipeline.stages import bring_up_to_date
from memory_pipeline.workspace.workspace import Workspace

STAGES = ("sessions", "observations", "embeddings", "reflections", "proposals")
READS, WRITES = ("read",), ("replace", "replace_all", "append")
"""Methods of `Lake` that take a table's name first; those that there are not are passed over."""
TARGETS = ("at most 70 files", "at most 14 files, decisions read once")

PACKAGE = Path(memory_pipeline.__file__).parent
SAID_ON = date(2026, 3, 2)
NOW = datetime(2026, 3, 3, 6, tzinfo=UTC)
RULE = "No, never use npm in this repository, always use pnpm."
TURNS = (
    ("The invoice export fails with a timeout.", "The cause was a missing index on parcels.customer_id; I added it."),
    (RULE, "I switched the scripts in package.json to pnpm."),
    ("Which port does the notifier use?", "The notifier listens on port 8123. Shall I write that down?"),
    ("Yes, do that. Deploys are on Tuesday from now on.", "Done: README.md names the port and the day of deploys."),
    ("The log says:\n```\nERROR export: timeout after 30 s\n```\nRun the tests again.", "All 214 tests pass."),
    ("That is all for today.", "Next I would move the export into a job of its own."),
)
"""What the user and the agent say in turn: a root cause, a rule, a question, an answer, a paste, a plan."""


def walk_to_proposal(sessions: Path, settings: Settings) -> None:
    """Walk (a): what the stages do with the session files."""
    lake = Lake.from_settings(settings)
    catalogue = Catalogue(lake, settings)
    catalogue.refresh(find_sources([sessions]))
    stages = Stages.from_settings(settings, catalogue, NOW)
    for name in STAGES:
        bring_up_to_date(getattr(stages, name), lake, SAID_ON)


def offer(settings: Settings) -> None:
    """Put what was proposed into REVIEW.md."""
    reconcile(Workspace.open(settings), NOW)


def walk_to_memory(settings: Settings) -> None:
    """Walk (b): what the asset `memory_file` does."""
    lake = Lake.from_settings(settings)
    reconcile(Workspace(settings, lake), NOW)


@dataclass
class Walk:
    """The functions of the package that ran, by file, and how often a call went back into a file that was waiting."""

    functions: dict[str, set[tuple[str, int]]] = field(default_factory=dict)
    climbs: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Reads and writes of the lake: (method, table)."""

    def count(self, *methods: str) -> int:
        return sum(n for (method, _), n in self.calls.items() if method in methods)


@contextmanager
def watched() -> Iterator[Walk]:
    """What runs in this thread and in those that it starts."""
    walk = Walk()
    with _calls_of_lake(walk):
        profile = _Profile(walk)
        threading.setprofile(profile)
        sys.setprofile(profile)
        try:
            yield walk
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


class _Profile:
    """Notes the functions of the package as they are entered, unless a module is just being imported."""

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.threads = threading.local()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(f"{PACKAGE}{os.sep}"):
            return
        waiting = self.threads.__dict__.setdefault("waiting", [])
        if event == "return":
            if waiting:
                waiting.pop()
            return
        file = str(Path(code.co_filename).relative_to(PACKAGE))
        is_import = not code.co_flags & inspect.CO_OPTIMIZED or (waiting and waiting[-1] is None)
        if not is_import:
            if _is_named(code):
                self.walk.functions.setdefault(file, set()).add((code.co_name, code.co_firstlineno))
            if waiting and waiting[-1] != file and file in waiting:
                self.walk.climbs[waiting[-1], file] += 1
        waiting.append(None if is_import else file)


def _is_named(code: CodeType) -> bool:
    """Whether it is a `def`: 3.11 and 3.12 differ in which comprehensions are functions."""
    return not code.co_name.startswith("<")


@contextmanager
def _calls_of_lake(walk: Walk) -> Iterator[None]:
    def counting(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(lake: Lake, table: str, *args: Any, **kwargs: Any) -> Any:
            walk.calls[name, table] += 1
            return method(lake, table, *args, **kwargs)

        return call

    with ExitStack() as stack:
        for name in (*READS, *WRITES):
            if method := getattr(Lake, name, None):
                stack.enter_context(patch.object(Lake, name, counting(name, method)))
        yield


def write_session(path: Path) -> None:
    """A session of pi, version 3, that certainly yields a proposal: its user lays down a rule."""
    records: list[dict[str, Any]] = []
    for number, texts in enumerate(TURNS):
        for role, text in zip(("user", "assistant"), texts, strict=True):
            at = datetime(SAID_ON.year, SAID_ON.month, SAID_ON.day, 9, number, role == "assistant", tzinfo=UTC)
            message = {"role": role, "content": [{"type": "text", "text": text}]}
            parent = records[-1]["id"] if records else None
            records.append({"type": "message", "id": f"{len(records):08x}", "parentId": parent} | _at(at, message))
    head = {"type": "session", "version": 3, "id": "one-line", "cwd": "/src/parcels"} | _at(
        datetime(SAID_ON.year, SAID_ON.month, SAID_ON.day, 9, tzinfo=UTC)
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in (head, *records)), "utf-8")


def _at(moment: datetime, message: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"timestamp": f"{moment:%Y-%m-%dT%H:%M:%S}.000Z"} | ({"message": message} if message else {})


def measure(home: Path) -> tuple[Walk, Walk]:
    """Both walks in a home of their own; raises AssertionError where one does not arrive."""
    os.environ |= {"HOME": f"{home}", "MEMORY_WORKSPACE": f"{home / 'workspace'}", "MEMORY_TIMEZONE": "UTC"}
    os.environ["MEMORY_DEFAULT_SESSION_DIRS"] = "false"
    write_session(home / "sessions/--src-parcels--/one-line.jsonl")
    settings = load_settings()
    with watched() as to_proposal:
        walk_to_proposal(home / "sessions", settings)
    offer(settings)
    review = settings.review_file.read_text("utf-8")
    assert RULE in review, "the session yielded no proposal"
    line = next(line for line in review.splitlines() if RULE in line and "[ ]" in line)
    settings.review_file.write_text(review.replace(line, line.replace("[ ]", "[x]")), "utf-8")
    with watched() as to_memory:
        walk_to_memory(settings)
    assert RULE in settings.memory_file.read_text("utf-8"), "the line did not reach MEMORY.md"
    return to_proposal, to_memory


def report(name: str, walk: Walk, target: str, *, is_listed: bool) -> None:
    functions = sum(map(len, walk.functions.values()))
    print(f"{name}: {len(walk.functions)} files, {functions} functions, {walk.climbs.total()} climbs; target: {target}")
    if is_listed:
        for file, found in sorted(walk.functions.items()):
            print(f"  {len(found):4}  {file}")
        for (lower, upper), times in sorted(walk.climbs.items()):
            print(f"  {times:4}  climbs {lower} -> {upper}")


def main() -> None:
    options = parser("hops", __doc__)
    options.add_argument("--list", action="store_true", help="name the files, and each climb")
    is_listed = options.parse_args().list
    with tempfile.TemporaryDirectory() as home:
        to_proposal, to_memory = measure(Path(home))
    report("(a) a line of a pi session to a proposal", to_proposal, TARGETS[0], is_listed=is_listed)
    report("(b) [x] in REVIEW.md to MEMORY.md", to_memory, TARGETS[1], is_listed=is_listed)
    print(f"    {to_memory.count(*READS)} reads and {to_memory.count(*WRITES)} writes of tables")
    for table in sorted({table for _, table in to_memory.calls}):
        reads, writes = (sum(to_memory.calls[method, table] for method in some) for some in (READS, WRITES))
        print(f"      {table:<18} {reads} read, {writes} written")


if __name__ == "__main__":
    main()
