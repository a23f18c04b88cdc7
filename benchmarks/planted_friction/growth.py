"""A window of any size: a few weeks, each many times over under other names, in the tables.

A copy of a week has ids of its own; the words that belong to one topic alone are spelled otherwise, letter by letter,
so that evidence keeps its place in the text. So copies are strangers to each other, as the weeks of many people are.
"""

from __future__ import annotations

import re
import resource
import string
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.planted_friction.bank import Bank
from benchmarks.planted_friction.running import Ran, run, settings_of
from benchmarks.planted_friction.weeks import DAYS, make_week
from memory_pipeline.friction.active import points_in
from memory_pipeline.friction.stage import FrictionStage
from memory_pipeline.lake.store import Lake
from memory_pipeline.workspace.workspace import Workspace

COPIED = ("sessions", "messages", "windows", "segments", "observations")
WEEKS = 4
"""Seeds of which the copies are made."""
IDS = ("session_id", "message_id", "dedupe_key", "segment_id", "observation_id", "first_message_id", "last_message_id")
WORD = re.compile(r"\w+")
TEXTS = ("text", "narrative", "title", "name", "answered")


@dataclass(frozen=True)
class Window:
    """What a window of so many points took."""

    points: int
    seconds: float
    megabytes: float
    patterns: int


@dataclass(frozen=True)
class Respelling:
    """Spells the words of a single topic otherwise, each copy in its own way, and as long as before."""

    common: frozenset[str]

    @classmethod
    def of(cls, bank: Bank) -> Respelling:
        """Common are words of several topics, and all of the ordinary talk."""
        topics = [topic for kind in bank.data.values() if isinstance(kind, list) for topic in kind]
        counts = Counter(word for topic in topics for word in set(_words_in(topic)))
        return cls(frozenset({*_words_in([bank.talk, bank.decoys]), *(w for w, count in counts.items() if count > 1)}))

    def spelled(self, text: str, copy: int) -> str:
        if not copy:
            return text
        letters = string.ascii_lowercase
        turned = letters[copy % 26 :] + letters[: copy % 26]
        table = str.maketrans(letters + letters.upper(), turned + turned.upper())
        return WORD.sub(lambda word: word[0] if word[0].lower() in self.common else word[0].translate(table), text)


def grow(bank: Bank, sizes: Sequence[int], folder: Path) -> Iterator[Window]:
    """Measure the last day of a window of each size, in a process of its own."""
    weeks = [run(make_week(seed, bank, folder / f"{seed}")) for seed in range(1, WEEKS + 1)]
    for size in sizes:
        with tempfile.TemporaryDirectory(dir=folder) as place:
            fill(Path(place), weeks, Respelling.of(bank), size)
            with ProcessPoolExecutor(1, get_context("spawn")) as apart:
                yield apart.submit(measured, Path(place)).result()


def measured(workspace: Path) -> Window:
    """One day's friction, in this process: its peak is that of all it did."""
    opened = Workspace.open(settings_of(workspace, workspace / "sessions"))
    points = points_in(opened.lake, DAYS)
    stage = FrictionStage(opened)
    start = time.perf_counter()
    built = stage.build(DAYS[-1])
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return Window(points, seconds, peak, built.frames["friction_clusters"].height)


def fill(workspace: Path, weeks: Sequence[Ran], respelling: Respelling, size: int) -> None:
    """Tables of so many points, but for the rest of a session."""
    opened = Workspace.open(settings_of(workspace, workspace / "sessions"))
    frames: dict[str, list[pl.DataFrame]] = {name: [] for name in COPIED}
    number, left = 0, size
    while left > 0:
        lake, copy = weeks[number % len(weeks)].workspace.lake, number // len(weeks)
        kept, points = _enough(lake, left)
        for name in COPIED:
            own = lake.read(name, DAYS).filter(pl.col("session_id").is_in(kept))
            frames[name].append(_copied(own, copy, respelling))
        number, left = number + 1, left - points
    opened.lake.replace_all("files", pl.concat([week.workspace.lake.read("files") for week in weeks]))
    for name in COPIED:
        opened.lake.replace(name, pl.concat(frames[name]), DAYS)


def _enough(lake: Lake, points: int) -> tuple[list[str], int]:
    """Sessions of the week that have so many points together, or all of them, and how many those are."""
    counts = Counter(lake.read("observations", DAYS)["session_id"])
    messages = lake.read("messages", DAYS, ["session_id", "role", "voided"])
    counts.update(messages.filter((pl.col("role") == "user") & ~pl.col("voided").fill_null(False))["session_id"])
    kept, found = [], 0
    for session_id in sorted(counts):
        if found < points:
            kept.append(session_id)
            found += counts[session_id]
    return kept, found


def _copied(frame: pl.DataFrame, copy: int, respelling: Respelling) -> pl.DataFrame:
    if not copy:
        return frame
    spans = pl.element().struct.with_fields(message_id=pl.field("message_id") + f"~{copy}")
    new = {name: pl.col(name) + f"~{copy}" for name in IDS if name in frame.columns}
    if "evidence" in frame.columns:
        new["evidence"] = pl.col("evidence").list.eval(spans)
    for name in TEXTS:
        if name in frame.columns:
            texts = [text and respelling.spelled(text, copy) for text in frame[name]]
            new[name] = pl.lit(pl.Series(name, texts, dtype=pl.String))
    return frame.with_columns(**new)


def _words_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from WORD.findall(value.lower())
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _words_in(each)
    elif isinstance(value, list):
        for each in value:
            yield from _words_in(each)
